"""What the broken agent can be told to do wrong.

May not know: how. Invariant: a fault's rules are all that it turns red, whichever other rules are run against it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """`rules` are the ids that it breaks; one that is `alone` would hide the others and is only on when it is named.

    `schema_only` are those of `rules` that nobody sees without the official schema (`ACP_SCHEMA`).
    """

    sentence: str
    rules: tuple[str, ...]
    alone: bool = False
    schema_only: tuple[str, ...] = ()


FAULTS: dict[str, Fault] = {
    "raw-newlines": Fault("Writes a line separator of a text as a newline.", ("WIRE-01",)),
    "prints-on-stdout": Fault("Prints on the protocol's stdout when a tool runs.", ("WIRE-02", "WIRE-01"), alone=True),
    "no-jsonrpc": Fault("Leaves `jsonrpc` out of its frames.", ("WIRE-03", "WIRE-14"), alone=True),
    "zero-as-string": Fault("Answers the id 0 as a string.", ("WIRE-04", "WIRE-05"), alone=True),
    "answers-twice": Fault("Sends each result twice.", ("WIRE-05", "WIRE-04", "X-CANCEL-RACE"), alone=True),
    "answers-notifications": Fault(
        "Answers notifications that it does not know with an error.", ("WIRE-06", "X-INIT-EARLY")
    ),
    "null-for-unknown": Fault("Answers unknown methods with a null result.", ("WIRE-07", "WIRE-13"), alone=True),
    "dies-of-garbage": Fault(
        "Exits at the first line that is no request.",
        ("WIRE-08", "X-EOF-EARLY", "X-WIRE-DEEP", "X-WIRE-GARBAGE", "X-WIRE-OVERSIZE"),
        alone=True,
    ),
    "answers-responses": Fault("Answers responses that it did not ask for.", ("WIRE-09", "WIRE-05", "X-PERM-LATE")),
    "needs-params": Fault("Refuses requests without params.", ("WIRE-10",)),
    "short-lines-only": Fault("Reads no line above 64 KiB.", ("WIRE-11",)),
    "long-lines": Fault("Sends the output of a tool uncut.", ("WIRE-12",)),
    "errors-without-message": Fault(
        "Leaves the message out of errors.", ("WIRE-13", "AUTH-05", "PROMPT-10"), alone=True
    ),
    "null-error-data": Fault("Sends `data: null` in errors.", ("WIRE-13",)),
    "root-keys": Fault("Adds a key to the params of its frames.", ("WIRE-14",), schema_only=("WIRE-14",)),
    "one-location": Fault("Sends the one location of a card where a list of them belongs.", ("WIRE-14",), alone=True),
    "relative-paths": Fault("Shows paths as relative ones.", ("WIRE-15",)),
    "lines-from-0": Fault("Counts lines from 0.", ("WIRE-16",)),
    "waits-for-output": Fault("Reads no input while its output is not read.", ("WIRE-17",)),
    "another-version": Fault("Answers version 1 with version 2.", ("INIT-01",)),
    "refuses-versions": Fault("Refuses versions that it does not speak.", ("INIT-02",)),
    "dies-of-odd-versions": Fault("Exits when the version is no integer.", ("INIT-03",), alone=True),
    "no-agent-info": Fault("Does not introduce itself.", ("INIT-04",)),
    "null-is-yes": Fault("Takes a capability of null or false as one that is there.", ("INIT-05", "TERM-01")),
    "advertises-more": Fault("Advertises logout, which it does not have.", ("INIT-06", "AUTH-06")),
    "needs-home": Fault("Exits without HOME.", ("INIT-07",)),
    "early-requests-lost": Fault("Never answers what came before initialize.", ("INIT-08", "X-INIT-EARLY")),
    "env-var-method": Fault(
        "Offers an authentication of a type that is not in the protocol.",
        ("AUTH-01", "WIRE-14"),
        schema_only=("WIRE-14",),
    ),
    "terminal-login-always": Fault("Offers the terminal login to clients that have none.", ("AUTH-01",)),
    "any-method": Fault("Authenticates with any method.", ("AUTH-02",)),
    "forgets-authentication": Fault("Wants an authentication after each one.", ("AUTH-03",), alone=True),
    "authenticate-fails": Fault("Fails to authenticate with a good key.", ("AUTH-04",), alone=True),
    "vague-about-keys": Fault("Hides that a key is missing.", ("AUTH-05", "AUTH-06")),
    "ignores-logout": Fault("Goes on after a logout.", ("AUTH-06",)),
    "ids-come-back": Fault("Gives a new session the id of a closed one.", ("NEW-01",)),
    "process-directory": Fault("Runs commands in its own directory.", ("NEW-02",)),
    "relative-directories": Fault("Takes a relative cwd.", ("NEW-03",)),
    "needs-lists": Fault("Refuses mcpServers of null.", ("NEW-03",)),
    "early-updates": Fault("Speaks of a session before it has said its id.", ("NEW-04", "UPD-07"), alone=True),
    "late-options": Fault("Sends the options of a session behind the response.", ("NEW-05",), alone=True),
    "relative-roots": Fault("Takes relative additional directories.", ("NEW-06",)),
    "answers-load-first": Fault(
        "Answers session/load before it replays.", ("LOAD-01", "END-03", "LOAD-07", "TOOL-01", "TOOL-08"), alone=True
    ),
    "loses-thoughts": Fault("Does not replay thoughts.", ("LOAD-01", "END-03")),
    "loads-updates-only": Fault(
        "Replays cards by their updates only.", ("LOAD-02", "LOAD-01", "TOOL-02", "TOOL-07", "TOOL-08")
    ),
    "open-cards": Fault("Leaves the cards of a killed process open on load.", ("LOAD-02",)),
    "new-ids-on-load": Fault("Gives messages other ids on each load.", ("LOAD-03",)),
    "invents-sessions": Fault("Opens a new session when an unknown one is loaded.", ("LOAD-04",)),
    "locked-is-invalid": Fault("Says that the params are invalid when another process has the session.", ("LOAD-05",)),
    "impatient-load": Fault("Ends slowly, and does not wait for one that does.", ("LOAD-06",)),
    "load-cancels": Fault("Cancels the running turn when its session is loaded.", ("LOAD-07",)),
    "forgets-options": Fault("Starts a loaded session with the first mode and options.", ("LOAD-08",)),
    "compares-spelling": Fault("Wants the cwd of a session spelled as it was.", ("LOAD-09",)),
    "resume-replays": Fault("Replays on session/resume.", ("RES-01",)),
    "lists-own-directory": Fault("Lists the sessions of its own directory only.", ("LIST-01", "LIST-02")),
    "filters-a-page": Fault("Filters by cwd after it has cut the page.", ("LIST-02",)),
    "overlapping-pages": Fault("Shows a session on two pages.", ("LIST-03",)),
    "null-cursor": Fault("Ends the list with a cursor of null.", ("LIST-03",)),
    "takes-any-cursor": Fault("Takes any cursor.", ("LIST-04",)),
    "odd-dates": Fault("Writes dates as words.", ("LIST-05",)),
    "closes-first": Fault("Answers session/close before the prompt has ended.", ("CLOSE-01",)),
    "closed-stays-live": Fault("Answers session/close, and goes on.", ("CLOSE-02",), alone=True),
    "unknown-close-hangs": Fault("Never answers the close of an unknown session.", ("CLOSE-03",)),
    "delete-keeps": Fault("Answers session/delete, and keeps the session.", ("DEL-01", "DEL-02")),
    "delete-needs-it": Fault("Refuses to delete an unknown session.", ("DEL-01",)),
    "live-delete-hangs": Fault("Never answers the delete of a live session.", ("DEL-02", "DEL-01")),
    "odd-stop-reason": Fault("Ends a turn that was cut as `length`.", ("PROMPT-08", "PROMPT-01", "WIRE-14")),
    "refuses-links": Fault("Refuses resource links.", ("PROMPT-02",), alone=True),
    "dies-of-audio": Fault("Exits when it is sent audio.", ("PROMPT-03",), alone=True),
    "refuses-blobs": Fault("Refuses the embedded blobs that it advertises.", ("PROMPT-04",)),
    "unknown-session-runs": Fault(
        "Answers prompts of unknown sessions as if they had run.", ("PROMPT-05", "CLOSE-02", "LIST-05", "X-WIRE-PARAMS")
    ),
    "busy-is-deaf": Fault("Never answers a second prompt.", ("PROMPT-06", "CANCEL-05", "X-CANCEL-QUEUE"), alone=True),
    "crossed-sessions": Fault(
        "Shows everything in the session that was opened last.",
        ("PROMPT-07", "TOOL-02", "TOOL-03", "X-SESSIONS-CANCEL", "X-SESSIONS-TOOLS"),
    ),
    "length-is-end": Fault("Ends a turn that was cut as one that is complete.", ("PROMPT-08",)),
    "keeps-refused": Fault("Tells the model again what it refused.", ("PROMPT-09",)),
    "leaks-key": Fault("Writes the key into errors.", ("PROMPT-10",)),
    "commands-to-model": Fault("Sends its commands to the model.", ("PROMPT-11",)),
    "paths-are-commands": Fault("Takes a path for a command.", ("PROMPT-12",), alone=True),
    "late-updates": Fault("Shows more after the answer of a cancelled prompt.", ("UPD-01", "CANCEL-02")),
    "new-id-per-chunk": Fault("Gives each chunk an id of its own.", ("UPD-02",)),
    "empty-chunks": Fault("Shows empty chunks.", ("UPD-03",)),
    "echoes-prompts": Fault("Shows the prompt that it was sent.", ("UPD-03", "LOAD-01")),
    "notices": Fault("Sends notices to clients that did not ask for them.", ("UPD-04", "INIT-05", "WIRE-14")),
    "plan-deltas": Fault("Sends the last entry of a plan only.", ("UPD-05",)),
    "usage-without-size": Fault("Reports a context of size 0.", ("UPD-06",)),
    "slash-names": Fault("Advertises commands with their slash.", ("UPD-07", "PROMPT-11")),
    "model-call-ids": Fault("Uses the model's ids for its cards.", ("TOOL-01", "TOOL-02", "TOOL-03", "TOOL-08")),
    "update-first": Fault("Updates a card before it is announced.", ("TOOL-02", "LOAD-02", "TOOL-07")),
    "announces-twice": Fault("Announces each card twice.", ("TOOL-02",)),
    "status-back": Fault("Sets a card that runs back to pending.", ("TOOL-03",)),
    # what a card shows at its end stays unseen
    "open-cards-at-end": Fault("Never ends a card.", ("TOOL-03", "FS-02", "LOAD-01", "PERM-04", "TOOL-08"), alone=True),
    "content-deltas": Fault("Sends the last line of an output as its content.", ("TOOL-04",)),
    "raw-strings": Fault("Sends rawInput and rawOutput as strings.", ("TOOL-05",)),
    "empty-old-text": Fault("Shows every file as empty before an edit.", ("TOOL-06", "PERM-03")),
    "terminal-unasked": Fault("Shows display terminals to every client.", ("TOOL-07",), alone=True),
    "repeats-terminal-output": Fault("Sends the whole output of a display terminal again and again.", ("TOOL-08",)),
    "no-terminal-exit": Fault("Never ends a display terminal.", ("TOOL-08",)),
    "same-option-ids": Fault("Gives two options one id.", ("PERM-01",)),
    "asks-first": Fault("Asks before the card is announced.", ("PERM-02", "TOOL-02")),
    "asks-without-diff": Fault("Asks for an edit without its diff.", ("PERM-03",)),
    "reject-runs": Fault("Runs what was rejected.", ("PERM-04", "NEW-06", "X-PERM-TWICE")),
    "cancelled-allows": Fault("Runs what got no decision.", ("PERM-05",)),
    "unknown-allows": Fault("Runs what was answered with an option it never offered.", ("PERM-05",)),
    "waits-for-answers": Fault(
        "Waits for the answer to a permission after a cancel.",
        ("PERM-06", "CANCEL-01", "CANCEL-06", "X-PERM-LATE", "X-PERM-OTHER-SESSION"),
    ),
    "late-allow": Fault("Runs a tool whose permission came after the cancel.", ("PERM-06", "X-PERM-LATE")),
    "two-of-a-kind": Fault("Offers two options of one kind.", ("PERM-07",)),
    "once-is-always": Fault("Asks only once for the same command.", ("PERM-08",)),
    "always-is-everything": Fault("Takes one permanent permission for all.", ("PERM-08",)),
    "cancel-is-error": Fault(
        "Answers a prompt that is cancelled before the first token with an error.",
        ("CANCEL-01", "CANCEL-03", "X-CANCEL-HEAD", "X-CANCEL-RACE"),
    ),
    "answers-cancel-first": Fault(
        "Answers a cancelled prompt before it has stopped.", ("CANCEL-02", "TOOL-03", "UPD-01"), alone=True
    ),
    "cancel-sticks": Fault(
        "Lets an idle cancel end the next prompt.",
        ("CANCEL-03", "CANCEL-04", "X-CANCEL-RACE", "X-CANCEL-TWICE"),
        alone=True,
    ),
    "dies-of-cancel-request": Fault("Exits when it shall cancel a request with an odd id.", ("CANCEL-04",), alone=True),
    "cancels-all-requests": Fault("Cancels every prompt of a session when one is named.", ("CANCEL-05",)),
    "no-cascade": Fault("Leaves its own requests open after a cancel.", ("CANCEL-06",)),
    "unlisted-mode": Fault("Starts in a mode that is not in its list.", ("MODE-01", "CFG-05", "LOAD-08", "NEW-05")),
    "mode-id": Fault("Names the mode of an update in the wrong field.", ("MODE-01", "CFG-05", "WIRE-14")),
    "modes-when-idle": Fault("Refuses to change the mode in a turn.", ("MODE-02",)),
    "any-mode": Fault("Takes unknown modes.", ("MODE-02",)),
    "unlisted-value": Fault(
        "Shows an option with a value that is none of its values.",
        ("CFG-01", "CFG-02", "CFG-04", "CFG-05", "LOAD-08", "NEW-05"),
    ),
    "partial-options": Fault("Answers with the changed option alone.", ("CFG-02", "CFG-04")),
    "boolean-unasked": Fault("Offers a boolean option to every client.", ("CFG-03", "INIT-05")),
    "takes-any-value": Fault("Takes any value of an option.", ("CFG-04", "MODE-02"), alone=True),
    "modes-apart": Fault("Does not tell that an option changed the mode.", ("CFG-05",)),
    "own-option-ids": Fault("Has ids of its own for its options.", ("CFG-06",)),
    "fs-unasked": Fault("Calls the client's file methods unasked.", ("FS-01", "PERM-03", "TOOL-06"), alone=True),
    "null-is-failure": Fault("Takes null for a failure of the client.", ("FS-02",)),
    "client-errors-crash": Fault("Exits when the client answers with an error.", ("FS-02",), alone=True),
    "reads-disk-only": Fault("Reads files past the client.", ("FS-03",)),
    "client-terminal-unasked": Fault(
        "Calls the client's terminals unasked.", ("TERM-01", "INIT-05", "NEW-02"), alone=True
    ),
    "no-release": Fault("Keeps the client's terminals.", ("TERM-02",)),
    "releases-twice": Fault("Releases the client's terminals twice.", ("TERM-02",)),
    "releases-first": Fault("Shows a terminal that it has released.", ("TERM-03",)),
    "waits-for-terminals": Fault("Waits for the exit of a terminal after a cancel.", ("TERM-03", "TERM-02")),
    "elicitation-unasked": Fault("Asks the user in a form that the client does not have.", ("ELIC-01",)),
    "decline-is-fatal": Fault("Fails the turn when the user declines.", ("ELIC-02", "ELIC-03")),
    "asks-for-passwords": Fault("Asks for a password.", ("ELIC-03",)),
    "no-servers": Fault("Starts no MCP server.", ("MCP-01",), alone=True),
    "http-servers-are-fatal": Fault("Refuses a session for an MCP server that it cannot reach.", ("MCP-02", "MCP-03")),
    "waits-for-servers": Fault("Waits for MCP servers before it answers.", ("MCP-03",)),
    "keeps-servers": Fault("Leaves the MCP servers of a closed session alive.", ("MCP-04",)),
    "exit-code": Fault("Exits with code 3 at the end of its input.", ("END-01", "X-EOF-EARLY", "X-EOF-PROMPT")),
    "leaves-orphans": Fault("Leaves the processes that it started.", ("END-02",)),
    "saves-at-the-end": Fault("Saves a turn when it is over.", ("END-03",)),
}
"""By name."""
