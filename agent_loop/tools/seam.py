"""The tool seam: what a tool declares, is given, and answers (contract tools-and-bash.md §1).

May not know: ACP, files of any one tool. Invariant: presentation is pure — arguments, result and logged meta in, card
out — so that a card shown live and a card shown on load are the same.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_loop.abort import AbortSignal
from agent_loop.tools.files.disk import DiskFiles
from agent_loop.tools.files.seam import FileBackend
from agent_loop.vocabulary import Block, JsonObject, text_block

Effect = Literal["read", "edit", "execute", "none"]
"""What a call does to the world; the permission policy decides on it."""

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model made it: `arguments` parsed, `id` unique in the session.

    `raw` is the JSON text as it is logged and shown: a secret in the arguments is redacted there.
    """

    id: str
    name: str
    arguments: JsonObject
    raw: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call touches, as far as its arguments say: what a permission can be bound to.

    `command`: a command line for bash, `directory` where it runs. `paths`: files and directories that are read or
    changed. Every path is absolute and resolved (no symbolic link, no `..`).
    """

    command: str | None = None
    directory: str | None = None
    paths: tuple[str, ...] = ()


def resolved_path(cwd: str, path: str) -> str:
    """`path`, relative to the absolute `cwd` or absolute, without `..` and links; what is missing stays as it is."""
    joined = os.path.join(cwd, path)
    # no file has a NUL in its name; whoever opens this one says so
    return joined if "\0" in joined else os.path.realpath(joined)


def _no_output(_data: bytes) -> None:
    return


def _no_record(_event_type: str, _data: JsonObject) -> None:
    return


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call runs. The body watches `signal` and ends soon after it aborts, with an outcome that says so.

    `on_output` takes raw bytes while the call runs (live display only). `record(event_type, data)` appends one event of
    a log-only type (session-log.md §3) between the call and its result. `roots` are the directories of the workspace.
    `permitted` are the paths of the subject that the policy has decided on: with the roots, all that a file tool may
    touch, however the links lie when it runs. `files` is where texts are read and written.
    """

    session_id: str
    cwd: str
    signal: AbortSignal
    on_output: Callable[[bytes], None] = _no_output
    call_id: str = ""
    record: Callable[[str, JsonObject], object] = _no_record
    permitted: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    files: FileBackend = field(default_factory=DiskFiles)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What goes into `tool/result`: blocks for the model, display facts in `meta` (JSON)."""

    content: list[Block]
    is_error: bool = False
    error: JsonObject | None = None  # {name, code}
    meta: JsonObject | None = None

    @classmethod
    def failed(cls, message: str, *, name: str, code: str) -> "ToolOutcome":
        """`Error: <message>` for the model, with its error identity."""
        return cls([text_block(f"Error: {message}")], is_error=True, error={"name": name, "code": code})


@dataclass(frozen=True, slots=True)
class GenericCard:
    """A card of plain content blocks (text for people, Markdown)."""

    title: str
    kind: ToolKind = "other"
    content: list[Block] = field(default_factory=list[Block])
    locations: list[JsonObject] = field(default_factory=list[JsonObject])  # {path, line?} 1-based


@dataclass(frozen=True, slots=True)
class TerminalCard:
    """A foreground command: `title` is the bare command, `cwd` absolute."""

    title: str
    description: str | None = None
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class TerminalResult:
    """How a terminal card ends: stored `output`, then exactly one of exit code and signal.

    Both None: the command never started; `text` then says why.
    """

    output: str
    exit_code: int | None = None
    signal: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class DiffCard:
    """Changed files. A diff is `{path, oldText, newText}`: `path` absolute, `oldText` None for a new file.

    Of a large file each hunk is a diff of its own.
    """

    title: str
    diffs: list[JsonObject] = field(default_factory=list[JsonObject])
    locations: list[JsonObject] = field(default_factory=list[JsonObject])  # {path, line?} 1-based
    kind: ToolKind = "edit"


CallCard = GenericCard | TerminalCard | DiffCard
ResultCard = GenericCard | TerminalResult | DiffCard


class Tool(ABC):
    """One tool. `parameters` is the JSON Schema sent to the model and checked on every call."""

    name: str
    description: str
    parameters: JsonObject
    effect: Effect = "execute"
    concurrency_safe: bool = False

    @abstractmethod
    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """Run with validated arguments. May raise: the registry turns it into an error outcome."""

    def subject(self, arguments: JsonObject, cwd: str) -> Subject:  # noqa: ARG002 - a tool that names nothing
        """What the call with these validated arguments touches; may resolve links on the disk. Never raises."""
        return Subject()

    async def prepare(self, arguments: JsonObject, context: ToolContext) -> JsonObject | None:  # noqa: ARG002 - nothing to show
        """What an ask shows before the call runs (JSON, logged): the same means as `run`, but changes nothing.

        Given to `present_call`. Raises a `HarnessError` when the call can only fail: it fails so, and nobody is asked;
        after any other exception the ask is made without a preview.
        """
        return None

    @abstractmethod
    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:
        """The card of a call. Pure; may raise on odd arguments (the generic card is shown then)."""

    @abstractmethod
    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:
        """The end of that card from the logged result; None = the result's text as it is. Pure."""


@dataclass(frozen=True, slots=True)
class Form:
    """A question to the user: flat JSON Schema `properties`, of which those in `required` must be answered."""

    message: str
    properties: JsonObject
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """What came of a form. `content` belongs to `accept` and is as the editor sent it, unchecked.

    `unavailable`: nobody can be asked so, `reason` says why; `failed`: the editor could not show the form.
    """

    action: Literal["accept", "decline", "cancel", "unavailable", "failed"]
    content: JsonObject = field(default_factory=dict[str, Any])
    reason: str = ""


class AskUser(ABC):
    """Puts a form before the user; implemented by the editor's side."""

    @abstractmethod
    async def ask(self, context: ToolContext, form: Form) -> FormAnswer:
        """Wait for the answer, as long as it takes; `cancel` at once when `context.signal` aborts. Never raises."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Run it. `grant`: the standing rule that lets it, for the log; None = nobody has to be asked in this mode."""

    digest: str = ""
    grant: JsonObject | None = None
    subject: Subject = Subject()


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the user first; `digest` binds the answer to arguments + cwd, `preview` is logged and shown.

    `subject` and `roots` are what the verdict rests on.
    """

    digest: str
    preview: JsonObject | None = None
    subject: Subject = Subject()
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run it, and do not ask. `reason` is a clause for the model; `grant` the rule that forbids it."""

    reason: str
    digest: str
    grant: JsonObject | None = None


Verdict = Allow | Ask | Deny


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to an ask. `by`: `user`, `client`, `policy`, `abort`. `grant`: the rule that the answer has made."""

    outcome: Literal["allow", "reject", "cancelled"]
    by: str
    grant: JsonObject | None = None


class PermissionPolicy(ABC):
    """Who may do what; implemented by the editor's side, evaluated by the step before dispatch."""

    @abstractmethod
    def evaluate(self, session_id: str, tool: Tool, call: ToolCall, cwd: str, roots: tuple[str, ...]) -> Verdict:
        """Decide without waiting. `roots`: the directories of the workspace, absolute, the first is `cwd`."""

    @abstractmethod
    async def ask(self, session_id: str, tool: Tool, call: ToolCall, ask: Ask, signal: AbortSignal) -> Decision:
        """Wait for the user; returns at once with `cancelled` when `signal` aborts. Never raises."""


class AllowAll(PermissionPolicy):
    """No questions: for agents without an editor."""

    def evaluate(self, session_id: str, tool: Tool, call: ToolCall, cwd: str, roots: tuple[str, ...]) -> Verdict:  # noqa: ARG002 - every call is allowed
        return Allow()

    async def ask(self, session_id: str, tool: Tool, call: ToolCall, ask: Ask, signal: AbortSignal) -> Decision:  # noqa: ARG002 - there is nobody to ask
        return Decision("allow", "policy")
