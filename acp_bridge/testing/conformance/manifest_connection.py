"""The rules of the wire, the start and the sessions (sections A to E), in our own words.

May not know: how a rule is checked. Invariant: order and ids are those of the suite's tables.
"""

from acp_bridge.testing.conformance.rule import Rule

_LOAD = "loadSession"
_RESUME = "sessionCapabilities.resume"
_LIST = "sessionCapabilities.list"
_CLOSE = "sessionCapabilities.close"
_DELETE = "sessionCapabilities.delete"

WIRE_RULES = (
    Rule(
        "WIRE-01",
        "MUST",
        "transports",
        "Split stdout at line feeds only, and each piece is one JSON object in UTF-8, whatever text runs through it.",
    ),
    Rule(
        "WIRE-02",
        "MUST",
        "transports",
        "What a tool or a child process prints never lands on stdout: frames of the protocol are all there is.",
    ),
    Rule(
        "WIRE-03",
        "MUST",
        "jsonrpc, overview",
        'Each frame says jsonrpc "2.0" and is a request, a notification, a result or an error, and only one of these.',
    ),
    Rule(
        "WIRE-04",
        "MUST",
        "schema:RequestId",
        "A response carries the id of its request unchanged: the same value and type, be it 0, negative or text.",
    ),
    Rule(
        "WIRE-05",
        "MUST",
        "jsonrpc, prompt-turn",
        "A request is answered once; a cancel that meets the end of its turn makes no second answer and loses none.",
    ),
    Rule(
        "WIRE-06",
        "MUST",
        "overview, extensibility",
        "Notifications get no answer and do no harm: unknown ones, private ones, malformed ones, those of no session.",
    ),
    Rule(
        "WIRE-07",
        "MUST",
        "jsonrpc, extensibility",
        "A request for a method that does not exist, private or not, is answered with the error -32601.",
    ),
    Rule(
        "WIRE-08",
        "CLIENT",
        "jsonrpc, TS SDK, login shells",
        "Garbage on stdin does not end the connection: it is answered with an error of id null; blank lines are not.",
    ),
    Rule(
        "WIRE-09",
        "CLIENT",
        "Toad",
        "A response that answers nothing the agent asked is dropped silently, an error with id null likewise.",
    ),
    Rule(
        "WIRE-10",
        "CLIENT",
        "acp.el",
        "Where every parameter is optional, a request without params, or with null, means the same as an empty object.",
        _LIST,
    ),
    Rule(
        "WIRE-11",
        "CLIENT",
        "Python SDK, images",
        "Lines of twelve megabytes are read, as are frames that come byte by byte and many frames in one piece.",
    ),
    Rule("WIRE-12", "CLIENT", "Toad, Go SDK", "The agent writes no line above eight MiB, however much a tool prints."),
    Rule(
        "WIRE-13",
        "MUST",
        "jsonrpc, schema:Error",
        "An error has an integer code and a text as its message; its data, and a result, are absent rather than null.",
    ),
    Rule(
        "WIRE-14",
        "MUST",
        "schema, extensibility",
        "Every frame fits the schema's definition for its method and direction, and adds no key that it does not name.",
    ),
    Rule("WIRE-15", "MUST", "overview", "Paths in the agent's frames are absolute."),
    Rule("WIRE-16", "MUST", "overview", "Line numbers start at 1: a read from line n says n."),
    Rule(
        "WIRE-17",
        "CLIENT",
        "slow clients",
        "A client that does not read for a while can still cancel: the agent listens while its output is stuck.",
    ),
)

START_RULES = (
    Rule(
        "INIT-01",
        "MUST",
        "initialization",
        "initialize is answered with a whole-number protocol version and the agent's capabilities; a version that the "
        "agent speaks comes back as it was asked for.",
    ),
    Rule(
        "INIT-02",
        "MUST",
        "initialization",
        "Asked for a version it does not speak, the agent names one that it speaks, as a result and not as an error.",
    ),
    Rule(
        "INIT-03",
        "CLIENT",
        "Rust SDK, acplint",
        "A version written as a string or as 1.0 leaves the connection able to initialize.",
    ),
    Rule("INIT-04", "SHOULD", "initialization", "The agent introduces itself with a name and a version."),
    Rule(
        "INIT-05",
        "MUST",
        "initialization",
        "A client capability that is missing, null or empty is not there: nothing that needs it is sent.",
    ),
    Rule("INIT-06", "MUST", "initialization", "What the agent advertises exists: none of those methods is unknown."),
    Rule(
        "INIT-07",
        "CLIENT",
        "IDEs",
        "initialize is answered within two seconds in an empty environment, also when a configuration file is broken.",
    ),
    Rule(
        "INIT-08",
        "CLIENT",
        "pipelining clients",
        "Requests before initialize, and a second initialize, are answered and leave living sessions as they are.",
    ),
)

AUTH_RULES = (
    Rule(
        "AUTH-01",
        "MUST",
        "authentication, schema:AuthMethod",
        "Authentication methods have distinct ids and are of a stable kind; terminal ones only for clients that said "
        "auth.terminal.",
    ),
    Rule("AUTH-02", "MUST", "authentication", "authenticate with an id that was not offered is an error."),
    Rule("AUTH-03", "MUST", "authentication", "Once authenticate succeeded, no new session asks for it again."),
    Rule(
        "AUTH-04",
        "CLIENT",
        "CodeCompanion",
        "The method that is listed first needs no terminal, and works when a credential is at hand.",
    ),
    Rule(
        "AUTH-05",
        "CLIENT",
        "acpx, Zed",
        'A missing credential is the error -32000, says "Authentication required", and its data lists the methods.',
    ),
    Rule(
        "AUTH-06",
        "MUST",
        "authentication",
        "logout answers an empty object, and what needs a credential needs it anew afterwards.",
        "auth.logout",
    ),
)

SESSION_RULES = (
    Rule(
        "NEW-01", "MUST", "session-setup", "No session id is ever handed out twice, over processes and closed ones too."
    ),
    Rule("NEW-02", "MUST", "session-setup", "A session works in its own cwd, wherever the process was started."),
    Rule(
        "NEW-03",
        "MUST",
        "overview, schema:NewSessionRequest",
        "A session without a cwd, or with a relative one, is refused; a list that is null counts as empty.",
    ),
    Rule("NEW-04", "CLIENT", "Zed, JetBrains", "Nothing speaks of a new session before the answer that names it."),
    Rule(
        "NEW-05",
        "CLIENT",
        "Zed",
        "Options come with the session's answer itself, and what is sent right behind it works at once.",
    ),
    Rule(
        "NEW-06",
        "MUST",
        "session-setup",
        "Additional directories are absolute or refused; an agent without that capability starts the session anyway.",
    ),
    Rule(
        "LOAD-01",
        "MUST",
        "session-setup",
        "Loading shows the whole conversation in its order, and answers after the last of it.",
        _LOAD,
    ),
    Rule(
        "LOAD-02",
        "MUST",
        "tool-calls, Zed",
        "In what a load shows, cards are announced before they are updated, and none stays open.",
        _LOAD,
    ),
    Rule(
        "LOAD-03",
        "SHOULD",
        "session-setup",
        "Message ids tell messages apart and are the same in every load.",
        _LOAD,
    ),
    Rule("LOAD-04", "SHOULD", "session-list", "Loading a session that never was is an error.", _LOAD),
    Rule(
        "LOAD-05",
        "CLIENT",
        "CodeCompanion, acpx",
        "A session that is there but held by another process is not refused as unknown: clients would start a new one.",
        _LOAD,
    ),
    Rule(
        "LOAD-06",
        "CLIENT",
        "editors",
        "A session loads in a new process right after the old one lost its client, even if that one is still ending.",
        _LOAD,
    ),
    Rule(
        "LOAD-07",
        "CLIENT",
        "gemini-cli",
        "Loading a session that is live shows it again and lets its running turn end as it would have.",
        _LOAD,
    ),
    Rule(
        "LOAD-08",
        "SHOULD",
        "session-config-options, session-setup",
        "Mode and options that were chosen come back with the answer of a load, and of a resume.",
        _LOAD,
    ),
    Rule(
        "LOAD-09",
        "CLIENT",
        "macOS, worktrees",
        "The same directory spelled otherwise, with a slash behind or through a link, opens the session.",
        _LOAD,
    ),
    Rule(
        "RES-01",
        "MUST",
        "session-setup",
        "Resuming shows no history, and yet the next prompt knows it.",
        _RESUME,
    ),
)

STORE_RULES = (
    Rule(
        "LIST-01",
        "MUST",
        "session-list",
        "Without a filter the list spans all directories; where nothing matches it is empty.",
        _LIST,
    ),
    Rule(
        "LIST-02",
        "MUST",
        "session-list",
        "With a cwd the list holds that directory's sessions alone, chosen before they are cut into pages.",
        _LIST,
    ),
    Rule(
        "LIST-03",
        "MUST",
        "session-list",
        "Cursor after cursor, each session comes once, and the last page has no cursor.",
        _LIST,
    ),
    Rule("LIST-04", "SHOULD", "session-list", "A cursor that the agent never gave is an error.", _LIST),
    Rule(
        "LIST-05",
        "MUST",
        "session-list",
        "Listed sessions have an absolute cwd and ISO 8601 times, and are not opened by being listed.",
        _LIST,
    ),
    Rule(
        "CLOSE-01",
        "MUST",
        "session-setup",
        "Closing a session whose prompt runs ends that prompt as cancelled, then answers the close.",
        _CLOSE,
    ),
    Rule(
        "CLOSE-02",
        "MUST",
        "session-setup",
        "A closed session has no processes and sends nothing, its id is dead, and it can be loaded again.",
        _CLOSE,
    ),
    Rule(
        "CLOSE-03",
        "CLIENT",
        "Zed",
        "Closing a session that is closed or unknown is answered, one way or the other.",
        _CLOSE,
    ),
    Rule(
        "DEL-01",
        "MUST",
        "session-delete",
        "A deleted session is not listed any more, and deleting what is not there succeeds.",
        _DELETE,
    ),
    Rule(
        "DEL-02",
        "CLIENT",
        "multi-window clients",
        "Deleting a session whose prompt runs answers both, and the session does not come back.",
        _DELETE,
    ),
)

CONNECTION_RULES = WIRE_RULES + START_RULES + AUTH_RULES + SESSION_RULES + STORE_RULES
