"""An executor that plays scripted commands: no process, no disk (ships beside the real one, same contract suite).

May not know: shells. Invariant: whatever the seam promises of a real executor holds here too — owners, timeouts,
aborts, idempotent kills — so that a tool tested on it needs no second look on the real one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import anyio
import anyio.abc
import anyio.lowlevel

from bash_exec.capture import OutputWindow, UnreadOutput
from bash_exec.errors import AlreadyAborted, ExecutorError, UnknownTask
from bash_exec.resolve import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, resolve_request
from bash_exec.seam import (
    Abort,
    BackgroundTask,
    BashExecutor,
    CommandRequest,
    CommandResult,
    CommandSpec,
    OutputListener,
    Survivor,
    TaskOutput,
    TaskStatus,
)
from bash_exec.tasks import TaskListeners


@dataclass(frozen=True, slots=True)
class FakeCommand:
    """What one command does: its chunks in order (stream 0 stdout, 1 stderr), then its end.

    `hangs`: it does not end by itself; a kill ends it with SIGTERM. `error` is raised instead of a start.
    """

    chunks: tuple[tuple[int, bytes], ...] = ()
    exit_code: int = 0
    hangs: bool = False
    background: tuple[Survivor, ...] = ()
    error: ExecutorError | None = None

    @classmethod
    def printing(cls, stdout: bytes, *, stderr: bytes = b"", exit_code: int = 0) -> "FakeCommand":
        """The ordinary case: some output, then an exit."""
        return cls(((0, stdout), (1, stderr)), exit_code)


class _Run:
    """One command in play."""

    def __init__(self, spec: CommandSpec, script: FakeCommand) -> None:
        self.spec = spec
        self.script = script
        self.stopped = anyio.Event()

    async def play(self) -> bool:
        """Wait for the end; False when it was stopped before it ended by itself."""
        if self.script.hangs:
            await self.stopped.wait()
        else:
            await anyio.lowlevel.checkpoint()
        return not self.script.hangs


class _Task:
    def __init__(self, task_id: str, run: _Run) -> None:
        self.id = task_id
        self.run = run
        self.unread = UnreadOutput()
        self.status: TaskStatus = "running"
        self.done = anyio.Event()

    def view(self) -> BackgroundTask:
        exited, killed = self.status == "exited", self.status == "killed"
        return BackgroundTask(
            self.id,
            self.run.spec.owner,
            self.run.spec.command,
            self.status,
            self.run.script.exit_code if exited else None,
            "SIGTERM" if killed else None,
        )


class FakeBashExecutor(BashExecutor):
    """Plays `scripts` (command text → what it does); other commands print nothing and exit with 127.

    `task_group` runs background tasks. `specs` is every spec that was started, in order.
    """

    def __init__(
        self,
        scripts: Mapping[str, FakeCommand],
        *,
        task_group: anyio.abc.TaskGroup,
        default_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_timeout_ms: int = MAX_TIMEOUT_MS,
    ) -> None:
        self.specs: list[CommandSpec] = []
        self._scripts = dict(scripts)
        self._task_group = task_group
        self._default_timeout_ms = default_timeout_ms
        self._max_timeout_ms = max_timeout_ms
        self._runs: set[_Run] = set()
        self._tasks: dict[str, _Task] = {}
        self._task_count = 0
        self._listeners = TaskListeners()
        self._disposed = False

    def resolve(self, request: CommandRequest) -> CommandSpec:
        return resolve_request(
            request, default_timeout_ms=self._default_timeout_ms, max_timeout_ms=self._max_timeout_ms
        )

    def _launch(self, spec: CommandSpec) -> _Run:
        if self._disposed:
            raise ExecutorError("the executor has been disposed: no command can be started")
        script = self._scripts.get(spec.command, FakeCommand(exit_code=127))
        if script.error is not None:
            raise script.error
        self.specs.append(spec)
        run = _Run(spec, script)
        self._runs.add(run)
        return run

    async def run(
        self, spec: CommandSpec, *, abort: Abort | None = None, on_output: OutputListener | None = None
    ) -> CommandResult:
        if abort is not None and abort.aborted:
            raise AlreadyAborted("the call was aborted before its command started")
        run = self._launch(spec)
        forget_abort = abort.on_abort(run.stopped.set) if abort is not None else None
        windows = (OutputWindow(), OutputWindow())
        ended = False
        try:
            for stream, data in run.script.chunks:
                if data:
                    windows[stream].feed(data)
                    if on_output is not None:
                        on_output(data)
            with anyio.move_on_after(spec.timeout_ms / 1000) as limit:
                ended = await run.play()
        finally:
            self._runs.discard(run)
            if forget_abort is not None:
                forget_abort()
        return CommandResult(
            exit_code=run.script.exit_code if ended else None,
            signal=None if ended else "SIGTERM",
            timed_out=limit.cancelled_caught,
            aborted=abort is not None and abort.aborted and not ended,
            timeout_ms=spec.timeout_ms,
            stdout=windows[0].capture(),
            stderr=windows[1].capture(),
            background=run.script.background if ended else (),
        )

    async def start(self, spec: CommandSpec) -> BackgroundTask:
        run = self._launch(spec)
        self._task_count += 1
        task = _Task(f"bash-{self._task_count}", run)
        self._tasks[task.id] = task
        for _stream, data in run.script.chunks:
            task.unread.feed(data)
        self._task_group.start_soon(self._drive, task)
        return task.view()

    async def _drive(self, task: _Task) -> None:
        ended = await task.run.play()
        self._runs.discard(task.run)
        task.status = "exited" if ended else "killed"
        task.done.set()
        if ended:
            self._listeners.tell(task.view())

    def get(self, task_id: str) -> BackgroundTask | None:
        task = self._tasks.get(task_id)
        return None if task is None else task.view()

    def owner_of(self, task_id: str) -> str | None:
        task = self._tasks.get(task_id)
        return None if task is None else task.run.spec.owner

    def list(self, owner: str) -> list[BackgroundTask]:
        return [task.view() for task in self._tasks.values() if task.run.spec.owner == owner]

    def _task(self, task_id: str) -> _Task:
        try:
            return self._tasks[task_id]
        except KeyError:
            raise UnknownTask(f"there is no background task {task_id!r}") from None

    def read_output(self, task_id: str, *, offset: int | None = None) -> TaskOutput:
        task = self._task(task_id)
        state, final = task.view(), task.done.is_set()
        piece = task.unread.take(final=final) if offset is None else task.unread.peek(offset, final=final)
        return TaskOutput(
            piece.text,
            state.status,
            state.exit_code,
            state.signal,
            piece.lost,
            offset=piece.offset,
            next_offset=piece.next_offset,
        )

    async def kill(self, task_id: str) -> BackgroundTask:
        task = self._task(task_id)
        task.run.stopped.set()
        await task.done.wait()
        return task.view()

    def on_task_done(self, listener: Callable[[BackgroundTask], None]) -> Callable[[], None]:
        return self._listeners.add(listener)

    async def release(self, owner: str) -> tuple[Survivor, ...]:
        for run in self._runs:
            if run.spec.owner == owner:
                run.stopped.set()
        for task in [task for task in self._tasks.values() if task.run.spec.owner == owner]:
            await task.done.wait()
            self._tasks.pop(task.id, None)
        return ()

    async def dispose(self) -> None:
        self._disposed = True
        self._listeners.clear()
        for run in self._runs:
            run.stopped.set()
        self._tasks.clear()
