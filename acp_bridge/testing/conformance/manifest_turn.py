"""The rules of prompts, updates, tools, cancelling, options, client methods and the end (sections F to L).

May not know: how a rule is checked. Invariant: order and ids are those of the suite's tables.
"""

from acp_bridge.testing.conformance.rule import Rule

_LOAD = "loadSession"

PROMPT_RULES = (
    Rule(
        "PROMPT-01", "MUST", "prompt-turn", "Each prompt is answered: with one of the five stop reasons, or an error."
    ),
    Rule(
        "PROMPT-02",
        "MUST",
        "initialization, content",
        "Text and resource links are taken, each alone and both mixed, in the order given.",
    ),
    Rule(
        "PROMPT-03",
        "MUST",
        "prompt-turn, schema:PromptRequest",
        "A block of a kind that was not advertised is refused or passed over; the agent lives on.",
    ),
    Rule(
        "PROMPT-04",
        "MUST",
        "initialization",
        "A block of a kind that was advertised is taken: images, audio, resources as text and as blobs.",
    ),
    Rule(
        "PROMPT-05",
        "MUST",
        "schema",
        "A prompt for no session or for an unknown one, or that is no list, is an error and runs nothing.",
    ),
    Rule(
        "PROMPT-06",
        "CLIENT",
        "v1 is silent",
        "A second prompt for a busy session comes to an end by itself, and no update of one follows its own answer.",
    ),
    Rule(
        "PROMPT-07",
        "CLIENT",
        "multi-window clients",
        "Two sessions that talk at once do not mix: each update names the session it belongs to.",
    ),
    Rule(
        "PROMPT-08",
        "MUST",
        "prompt-turn",
        "An answer that the token limit cut ends as max_tokens, a turn at its cap of requests as max_turn_requests.",
    ),
    Rule(
        "PROMPT-09",
        "MUST",
        "schema:StopReason",
        "After a refusal the refused prompt, and all that came of it, is gone from what the model sees next.",
    ),
    Rule(
        "PROMPT-10",
        "CLIENT",
        "Zed, CodeCompanion, Toad",
        "A model that fails makes a readable error without a secret in it, and the session goes on.",
    ),
    Rule(
        "PROMPT-11",
        "MUST",
        "slash-commands",
        "An advertised command runs when its name comes behind a slash as the text, also beside other blocks.",
    ),
    Rule("PROMPT-12", "CLIENT", "users", "A text that begins with a path is a text: no command swallows it."),
)

UPDATE_RULES = (
    Rule("UPD-01", "MUST", "prompt-turn", "Whatever a turn has to show comes before its answer."),
    Rule(
        "UPD-02",
        "SHOULD",
        "prompt-turn",
        "The chunks of a message share its id, and no other message has that one.",
    ),
    Rule(
        "UPD-03",
        "CLIENT",
        "Zed",
        "Chunks hold text, and a prompt is not sent back to the client that has just written it.",
    ),
    Rule(
        "UPD-04",
        "MUST",
        "initialization, schema",
        "Notices, compaction and plan_update go to clients that advertised them, to no others.",
    ),
    Rule("UPD-05", "MUST", "agent-plan", "A plan is sent whole each time."),
    Rule(
        "UPD-06",
        "MUST",
        "schema:UsageUpdate",
        "Usage says how full the context is now, and of what real size: never zero, never a sum of calls.",
    ),
    Rule(
        "UPD-07",
        "MUST",
        "slash-commands, schema",
        "The list of commands is whole, without doubles, slashes and blanks; it follows each opening of a session.",
    ),
)

TOOL_RULES = (
    Rule(
        "TOOL-01",
        "MUST",
        "tool-calls",
        "The id of a tool call is unique in its session, also when the model repeats its own, and over a load.",
    ),
    Rule("TOOL-02", "MUST", "tool-calls", "A card is announced once, and updated only after that."),
    Rule(
        "TOOL-03",
        "SHOULD",
        "tool-calls, prompt-turn",
        "A card's status only goes forward, and has come to its end when the prompt is answered.",
    ),
    Rule(
        "TOOL-04",
        "MUST",
        "schema:ToolCallUpdate",
        "Content and locations in an update are all there are, not what was added.",
    ),
    Rule(
        "TOOL-05",
        "CLIENT",
        "Toad, Zed",
        "rawInput and rawOutput are objects; the title of a command is the command itself, without backticks.",
    ),
    Rule(
        "TOOL-06",
        "MUST",
        "tool-calls",
        "A diff tells the truth: what stood in the file before, what stands in it afterwards.",
    ),
    Rule(
        "TOOL-07",
        "CLIENT",
        "Zed",
        "A terminal block names a terminal that exists: the client's own, or one opened in the same announcement.",
    ),
    Rule(
        "TOOL-08",
        "CLIENT",
        "Zed",
        "Output for a display terminal holds new bytes only, and each opened one is told its exit once.",
    ),
    Rule(
        "PERM-01",
        "MUST",
        "tool-calls, schema",
        "A permission request names its call and offers options with distinct ids and valid kinds.",
    ),
    Rule(
        "PERM-02",
        "CLIENT",
        "Zed, Toad, CodeCompanion",
        "The card stands before permission is asked for, and the request repeats its title, kind and input.",
    ),
    Rule(
        "PERM-03",
        "CLIENT",
        "CodeCompanion",
        "Permission for an edit shows the real diff first: the old text is what the disk holds.",
    ),
    Rule(
        "PERM-04",
        "MUST",
        "tool-calls",
        "A rejected call has no effect, its card fails, and the turn comes to an end.",
    ),
    Rule(
        "PERM-05",
        "MUST",
        "tool-calls",
        "Anything but a clear yes is a no: cancelled, an option nobody offered, no outcome, an error, nonsense.",
    ),
    Rule(
        "PERM-06",
        "CLIENT",
        "CodeCompanion",
        "A question that is never answered blocks neither the cancel nor the next prompt; a late yes does nothing.",
    ),
    Rule(
        "PERM-07",
        "CLIENT",
        "hotkeys",
        "There is one option of a kind at most, and reject_once stands before reject_always.",
    ),
    Rule(
        "PERM-08",
        "CLIENT",
        "scope",
        "allow_once holds for one call, and allow_always for no more than its name says.",
    ),
)

CANCEL_RULES = (
    Rule(
        "CANCEL-01",
        "MUST",
        "prompt-turn, schema:StopReason",
        "A cancelled prompt ends with the result cancelled, wherever it stood: before a token, in the stream, in a "
        "tool, waiting to retry, waiting for permission.",
    ),
    Rule(
        "CANCEL-02",
        "MUST",
        "prompt-turn",
        "What the cancel stirs up comes before the answer, nothing comes after it, and model and tools stop soon.",
    ),
    Rule(
        "CANCEL-03",
        "CLIENT",
        "claude-agent-acp",
        "A cancel that meets nothing, comes twice or speaks of another session leaves the next prompt alone.",
    ),
    Rule(
        "CANCEL-04",
        "MUST",
        "cancellation",
        "A request that $/cancel_request names is answered, validly or with -32800; names of nothing are ignored.",
    ),
    Rule(
        "CANCEL-05",
        "CLIENT",
        "queueing agents",
        "$/cancel_request for a prompt that waits its turn ends that one alone.",
    ),
    Rule(
        "CANCEL-06",
        "SHOULD",
        "cancellation",
        "What the agent still wants from the client when it is cancelled, it takes back with $/cancel_request.",
    ),
)

MODE_RULES = (
    Rule(
        "MODE-01",
        "MUST",
        "session-modes, schema:CurrentModeUpdate",
        "The current mode is one of those available, in every answer and update that names it.",
    ),
    Rule(
        "MODE-02",
        "MUST",
        "session-modes, session-config-options",
        "Mode and options can be set at rest and in a turn; an unknown mode is an error.",
    ),
    Rule("CFG-01", "MUST", "session-config-options", "The current value of an option is one of its values."),
    Rule(
        "CFG-02",
        "MUST",
        "session-config-options",
        "Setting an option is answered with all options, the new value among them.",
    ),
    Rule(
        "CFG-03",
        "MUST",
        "session-config-options",
        "A boolean option is offered to clients that advertised booleans only, and set as one.",
    ),
    Rule(
        "CFG-04",
        "MUST",
        "schema",
        "An unknown option, an unknown value or a wrong type is an error, and changes nothing.",
    ),
    Rule("CFG-05", "SHOULD", "session-config-options", "The mode and the option for it agree, whichever was set."),
    Rule(
        "CFG-06", "CLIENT", "JetBrains", "Options go by the ids that clients look for: mode, model, reasoning_effort."
    ),
)

CLIENT_RULES = (
    Rule("FS-01", "MUST", "file-system", "A file method of the client is called only if its own flag is true."),
    Rule(
        "FS-02",
        "CLIENT",
        "Zed, CodeCompanion, Toad",
        "Null and an empty object are success for methods without a result; an error fails the tool, not the agent.",
    ),
    Rule(
        "FS-03",
        "CLIENT",
        "unsaved buffers",
        "With a client that has the files, what is read is the client's text, and what is written goes through it.",
    ),
    Rule("TERM-01", "MUST", "terminals", "Terminals of the client are used only when it said that it has them."),
    Rule("TERM-02", "MUST", "terminals", "Each terminal that was created is released once, however its call ended."),
    Rule(
        "TERM-03",
        "CLIENT",
        "Zed",
        "A terminal is shown before it is released, read after it was killed, and waiting for it holds up no cancel.",
    ),
    Rule("ELIC-01", "MUST", "elicitation", "The user is asked in a mode that the client advertised, or not at all."),
    Rule("ELIC-02", "MUST", "elicitation", "Declined, cancelled and wrongly filled forms are dealt with."),
    Rule("ELIC-03", "MUST", "elicitation", "A form is flat, made of the allowed field types, and asks for no secret."),
    Rule("MCP-01", "MUST", "session-setup", "An MCP server on stdio is started, and the model is offered its tools."),
    Rule(
        "MCP-02",
        "MUST",
        "initialization",
        "MCP over http or sse is used where advertised; where not, the session starts without it.",
    ),
    Rule(
        "MCP-03",
        "CLIENT",
        "hosts that inject servers",
        "An MCP server that is dead, slow, missing or of an unknown type neither fails nor delays a session.",
    ),
    Rule("MCP-04", "CLIENT", "leaks", "The processes of MCP servers end with their session, and with the agent."),
)

END_RULES = (
    Rule(
        "END-01",
        "SHOULD",
        "transports",
        "When its input ends, the agent ends with status 0 within five seconds, whatever it is doing.",
    ),
    Rule(
        "END-02",
        "CLIENT",
        "leaks, EPIPE",
        "No child outlives the agent, ended by its input, by SIGTERM or by a closed stdout (which is no traceback).",
    ),
    Rule(
        "END-03",
        "CLIENT",
        "Toad, Zed",
        "Killed in the middle of a turn, the session loads again with everything that had been shown.",
        _LOAD,
    ),
)

TURN_RULES = PROMPT_RULES + UPDATE_RULES + TOOL_RULES + CANCEL_RULES + MODE_RULES + CLIENT_RULES + END_RULES
