"""The tools `bash`, `bash_output` and `bash_kill` over the executor seam.

May not know: which executor runs, how the editor shows it. Invariant: a background task belongs to the session that
started it (owner token = session id) and no other session can read, end or even detect it; what a person wrote as
`description` never reaches the executor. Source: contract tools-and-bash.md §2.
"""

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from agent_loop.hooks import Remover
from agent_loop.tools.bash_text import (
    completion_text,
    fenced_console,
    killed_text,
    model_text,
    output_meta,
    result_meta,
    started_text,
    task_meta,
    task_output_text,
    tasks_text,
)
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import (
    CallCard,
    Effect,
    GenericCard,
    ResultCard,
    Subject,
    TerminalCard,
    TerminalResult,
    Tool,
    ToolContext,
    ToolKind,
    ToolOutcome,
    resolved_path,
)
from agent_loop.tools.terminal_text import TerminalCapture
from agent_loop.vocabulary import Block, JsonObject, text_block
from bash_exec.errors import AlreadyAborted, ExecutorError, InvalidCommand
from bash_exec.seam import BackgroundTask, BashExecutor, CommandRequest, CommandRunner

Notify = Callable[[str, str], None]
"""`notify(session_id, text)`: put one notice before the model of that session."""

ChooseRunner = Callable[[ToolContext], CommandRunner]
"""Who runs the foreground command of a call, when that is not always the executor."""

_BASH: Final = SchemaSpec(
    {
        "command": Property("string", required=True, description="The command line, run by bash -c."),
        "description": Property(
            "string", required=True, description="What the command does, in five to ten words, for the person watching."
        ),
        "timeoutMs": Property(
            "integer", description="Milliseconds until the command is ended; default 120000, at most 600000."
        ),
        "workdir": Property(
            "string", description="Directory to run in: absolute, or relative to the session's directory (the default)."
        ),
        "run_in_background": Property(
            "boolean", description="Return at once with a task id; for servers, watchers and other long commands."
        ),
    }
)
_TASK: Final = SchemaSpec(
    {
        "task_id": Property("string", required=True, description="The id that bash gave, such as bash-1."),
    }
)


class BashTool(Tool):
    """Runs one command, in the foreground with live output, or in the background with one notice at its end."""

    name = "bash"
    description = (
        "Run a shell command with bash. Every call is a fresh, non-interactive shell: no terminal, no standard input, "
        "nothing carried over from the call before (use workdir, or cd inside the command). A non-zero exit code is "
        "reported, not an error. Long output keeps its beginning and end; the whole is in a file that is named."
    )
    parameters = to_json_schema(_BASH)
    effect: Effect = "execute"

    def __init__(self, executor: BashExecutor, *, notify: Notify, runner: ChooseRunner | None = None) -> None:
        self._executor = executor
        self._notify = notify
        self._runner: ChooseRunner = runner or (lambda _context: executor)

    def register_completion(self) -> Remover:
        """From now on a background command that ends by itself tells its session so, once."""

        def ended(task: BackgroundTask) -> None:
            self._notify(task.owner, completion_text(task))

        return self._executor.on_task_done(ended)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """Foreground: `meta` as in `result_meta`. Background: `meta {taskId}`. An abort is an error outcome."""
        if not arguments["description"].strip():
            return _invalid("the description is blank; say in a few words what the command does")
        timeout = arguments.get("timeoutMs")
        request = CommandRequest(
            command=arguments["command"],
            cwd=context.cwd,
            owner=context.session_id,
            workdir=arguments.get("workdir"),
            timeout_ms=None if timeout is None else int(timeout),
        )
        try:
            if arguments.get("run_in_background"):
                return await self._start(request)
            return await self._run(request, context)
        except InvalidCommand as error:
            return _invalid(str(error))
        except AlreadyAborted as error:
            return ToolOutcome.failed(str(error), name="AbortError", code="aborted")
        except ExecutorError as error:
            return ToolOutcome.failed(str(error), name=type(error).__name__, code="EXECUTOR")

    async def _start(self, request: CommandRequest) -> ToolOutcome:
        task = await self._executor.start(self._executor.resolve(request))
        return ToolOutcome([text_block(started_text(task))], meta={"taskId": task.id})

    async def _run(self, request: CommandRequest, context: ToolContext) -> ToolOutcome:
        shown = TerminalCapture()

        def output(data: bytes) -> None:
            shown.feed(data)
            context.on_output(data)

        spec = self._executor.resolve(request)
        result = await self._runner(context).run(spec, abort=context.signal, on_output=output)
        stored = shown.finish()
        return ToolOutcome(
            [text_block(model_text(result, command=request.command))],
            is_error=result.aborted,
            error={"name": "AbortError", "code": "aborted"} if result.aborted else None,
            meta=result_meta(result, stored, output_dropped=shown.dropped),
        )

    def subject(self, arguments: JsonObject, cwd: str) -> Subject:
        """The command line, and where it runs."""
        return Subject(command=arguments["command"], directory=resolved_path(cwd, arguments.get("workdir") or ""))

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:  # noqa: ARG002 - a command has no preview
        """A terminal card titled with the bare command; a generic one when it goes to the background."""
        if arguments.get("run_in_background"):
            return GenericCard(arguments["command"], "execute", [text_block(arguments["description"])])
        return TerminalCard(arguments["command"], arguments["description"], _directory(cwd, arguments.get("workdir")))

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:
        """The end of that card. `TerminalResult.text` is the result's text: what an editor without terminals shows.

        Without stored output the command never ran (rejected, not spawned, cut off): both ends stay None.
        """
        if arguments.get("run_in_background"):
            return None
        text = _text(content)
        if meta is None or "output" not in meta:
            return TerminalResult("", text=text)
        return TerminalResult(meta["output"], meta.get("exitCode"), meta.get("signal"), text)


class _TaskTool(Tool):
    """What the two tools about a background task share: its id, its owner check, its card."""

    parameters = to_json_schema(_TASK)
    # a task can only be one that the user let this session start: looking at it or ending it needs no new question
    effect: Effect = "none"
    kind: ToolKind
    verb: str

    def __init__(self, executor: BashExecutor) -> None:
        self._executor = executor

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta` as in `task_meta` or `output_meta`.

        Unknown and foreign tasks answer `UNKNOWN_TASK` alike; such an error, and that of an empty id, lists the tasks
        that the session has.
        """
        task_id: str = arguments["task_id"]
        known = tasks_text(self._executor.list(context.session_id))
        if not task_id.strip():
            return _invalid(f"the task_id is empty; pass one of this session: {known}")
        if self._executor.owner_of(task_id) != context.session_id:
            return ToolOutcome.failed(
                f"this session has no background task {task_id!r}; {known}",
                name="UnknownTaskError",
                code="UNKNOWN_TASK",
            )
        return await self._answer(task_id)

    @abstractmethod
    async def _answer(self, task_id: str) -> ToolOutcome:
        """The outcome for a task that is the caller's own."""

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:  # noqa: ARG002 - no path is shown
        """A generic card that names the task."""
        return GenericCard(self._title(arguments), self.kind)

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:
        """The answer as a fenced console block; an error as it is."""
        if meta is None:
            return None
        return GenericCard(self._title(arguments), self.kind, [text_block(fenced_console(_text(content)))])

    def _title(self, arguments: JsonObject) -> str:
        return f"{self.verb} {arguments['task_id']}"


class BashOutputTool(_TaskTool):
    """What a background command has printed since the last look, and how it stands."""

    name = "bash_output"
    description = "Read what a background command has printed since the last read, and whether it still runs."
    kind = "read"
    verb = "Output of"

    async def _answer(self, task_id: str) -> ToolOutcome:
        output = self._executor.read_output(task_id)
        return ToolOutcome([text_block(task_output_text(output))], meta=output_meta(output))


class BashKillTool(_TaskTool):
    """Ends a background command and everything it started."""

    name = "bash_kill"
    description = "End a background command and all of its processes."
    kind = "execute"
    verb = "End"

    async def _answer(self, task_id: str) -> ToolOutcome:
        task = await self._executor.kill(task_id)
        return ToolOutcome([text_block(killed_text(task))], meta=task_meta(task))


def _invalid(message: str) -> ToolOutcome:
    return ToolOutcome.failed(message, name="InvalidArgumentsError", code="INVALID_ARGS")


def _text(content: list[Block]) -> str:
    return "".join(block["text"] for block in content if block["type"] == "text")


def _directory(cwd: str | None, workdir: str | None) -> str | None:
    path = os.path.normpath(os.path.join(cwd or "", workdir or ""))
    return path if os.path.isabs(path) else None
