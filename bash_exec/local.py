"""Runs commands on this machine (contract tools-and-bash.md §4).

May not know: the agent, its tools, its log. Invariant: a command is registered before anything is started for it and
stays registered until its monitor says that all its processes are gone, so that whatever happens there is somebody who
ends it; every path of failure runs the kill ladder before it leaves.
"""

import contextlib
import errno
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.abc

from bash_exec import capture, wire
from bash_exec.command import RunningCommand, open_channels
from bash_exec.enclosure import Enclosure
from bash_exec.errors import AlreadyAborted, ExecutorError, SpawnFailed, UnknownTask
from bash_exec.output import BackgroundOutput, ForegroundOutput, OutputSink
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
)
from bash_exec.secrets import SecretRegistry
from bash_exec.spill import SpillFolder
from bash_exec.start_check import check_start
from bash_exec.supervisor import BARE_INTERPRETER, Supervisor
from bash_exec.tasks import TaskListeners, TaskRecord

SPILL_CAP = 1 << 30
_LOST = "the process that held the command was killed, so the command was ended; its exit status is not known"


class LocalBashExecutor(BashExecutor):
    """`bash -c` below a supervisor process.

    `environment` is the whole (already scrubbed) environment of commands; output is redacted of `secrets`. Seconds:
    `grace` from TERM to KILL, `drain` for output after the shell's exit. Bytes: `head` and `tail` of each stream are
    kept, `spill_cap` ends a command. `portable` uses process groups and `ps` alone, for systems without /proc and
    subreapers. Background commands run in `task_group`, which must outlive them: call `dispose` before it ends. An
    `enclosure` separates owners: each has a supervisor of its own, made with its first command and gone with its
    `release`.
    """

    def __init__(
        self,
        *,
        task_group: anyio.abc.TaskGroup,
        environment: Mapping[str, str],
        spill_root: Path,
        secrets: SecretRegistry | None = None,
        shell: str = "bash",
        default_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_timeout_ms: int = MAX_TIMEOUT_MS,
        grace: float = 3.0,
        drain: float = 0.2,
        head: int = capture.HEAD,
        tail: int = capture.TAIL,
        spill_cap: int = SPILL_CAP,
        portable: bool = sys.platform != "linux",
        interpreter: Sequence[str] = BARE_INTERPRETER,
        enclosure: Enclosure | None = None,
    ) -> None:
        self._task_group = task_group
        self._shell = shell
        self._default_timeout_ms = default_timeout_ms
        self._max_timeout_ms = max_timeout_ms
        self._grace = grace
        self._drain = drain
        self._head = head
        self._tail = tail
        self._spill_cap = spill_cap
        self._portable = portable
        self._folder = SpillFolder(spill_root)
        self._secrets = secrets or SecretRegistry()
        self._new_supervisor = partial(
            Supervisor, environment=environment, grace=grace, portable=portable, interpreter=interpreter
        )
        self._supervisor = self._new_supervisor()
        self._enclosure = enclosure
        self._enclosed: dict[str, Supervisor] = {}
        self._commands: dict[str, RunningCommand] = {}
        self._tasks: dict[str, TaskRecord] = {}
        self._task_count = 0
        self._listeners = TaskListeners()
        self._disposed = False

    @property
    def supervisor_pid(self) -> int | None:
        """The supervisor process, None before the first command."""
        return self._supervisor.pid

    def resolve(self, request: CommandRequest) -> CommandSpec:
        return resolve_request(
            request, default_timeout_ms=self._default_timeout_ms, max_timeout_ms=self._max_timeout_ms
        )

    async def run(
        self, spec: CommandSpec, *, abort: Abort | None = None, on_output: OutputListener | None = None
    ) -> CommandResult:
        if abort is not None and abort.aborted:
            raise AlreadyAborted("the call was aborted before its command started")
        command = await self._launch(spec)
        output = ForegroundOutput(
            self._folder,
            head=self._head,
            tail=self._tail,
            cap=self._spill_cap,
            listener=on_output,
            secrets=self._secrets,
        )
        with contextlib.ExitStack() as at_end:
            if abort is not None:
                at_end.callback(abort.on_abort(lambda: command.stop("abort")))
            await self._watch(command, output, timeout=spec.timeout_ms / 1000)
        if command.reason == "lost":
            output.discard()
            raise ExecutorError(_LOST)
        out, err = output.captures()
        return CommandResult(
            exit_code=command.exit_code,
            signal=command.signal,
            timed_out=command.reason == "timeout",
            aborted=command.reason == "abort",
            timeout_ms=spec.timeout_ms,
            stdout=out,
            stderr=err,
            survivors=self._shown(command.survivors),
            background=self._shown(command.background),
            output_limit=self._spill_cap if command.reason == "limit" else None,
        )

    async def start(self, spec: CommandSpec) -> BackgroundTask:
        command = await self._launch(spec)
        output = BackgroundOutput(
            self._folder, head=self._head, tail=self._tail, cap=self._spill_cap, secrets=self._secrets
        )
        self._task_count += 1
        task = TaskRecord(f"bash-{self._task_count}", command, output, shown=self._secrets.redact(spec.command))
        self._tasks[task.id] = task
        self._task_group.start_soon(self._drive, task)
        return task.view()

    async def _drive(self, task: TaskRecord) -> None:
        """Follow a background task to its end."""
        try:
            await self._watch(task.command, task.output, timeout=None)
        finally:
            task.finish()
        if task.command.reason == "limit":
            task.output.note(f"stopped at the output limit of {self._spill_cap} bytes")
        elif task.command.reason == "lost":
            task.output.note(_LOST)
        if task.command.reason != "kill":
            self._listeners.tell(task.view())

    async def _launch(self, spec: CommandSpec) -> RunningCommand:
        """Start a command. Raises `ExecutorError`; then, and on cancellation, nothing of it is left."""
        try:
            channels = open_channels()
        except OSError as error:
            raise SpawnFailed(f"no pipes for the command: {error.strerror}") from error
        marker = secrets.token_hex(16)
        command = RunningCommand(spec, marker=marker, channels=channels, grace=self._grace, portable=self._portable)
        self._commands[marker] = command
        try:
            try:
                supervisor = await self._supervisor_of(spec.owner)
                request = wire.Request(marker, spec.cwd, self._shell, spec.command)
                taker = await supervisor.request(request, channels.theirs)
            finally:
                for descriptor in channels.theirs:
                    os.close(descriptor)
            if self._enclosure is not None:
                command.end_enclosure = partial(supervisor.end, taker)
            with anyio.move_on_after(supervisor.answer_bound):
                await command.control.begun.wait()
            await check_start(command.control, supervisor, partial(self._explain, command.spec))
        except BaseException:
            await command.end()
            self._drop(command)
            raise
        return command

    async def _supervisor_of(self, owner: str) -> Supervisor:
        """Who starts the commands of `owner`; once disposed, one that refuses. Raises `ExecutorError`."""
        if self._enclosure is not None and owner not in self._enclosed and not self._disposed:
            prefix = await self._enclosure.prefix(owner)
            if not self._disposed:  # it may have happened meanwhile
                self._enclosed.setdefault(owner, self._new_supervisor(prefix=prefix))
        return self._enclosed.get(owner, self._supervisor)

    def _explain(self, spec: CommandSpec, number: int, stage: str) -> str:
        reason = os.strerror(number)
        if stage == wire.STAGE_DIRECTORY:
            which = "existing directory" if self._enclosure is None else "existing directory that the sandbox shows"
            return f"the command cannot run in {spec.cwd!r}: {reason}; give an {which}"
        if stage == wire.STAGE_FORK:
            return f"the system gives no process for the command: {reason}"
        if number == errno.E2BIG:
            return f"the command is too long ({len(spec.command)} characters): put it into a script file and run that"
        return f"the shell {self._shell!r} cannot be started: {reason}; install it or put it on PATH"

    async def _watch(self, command: RunningCommand, output: OutputSink, *, timeout: float | None) -> None:
        """Watch a command to its end; whatever interrupts that ends the command first."""
        try:
            await command.watch(output, timeout=timeout, drain=self._drain)
            await output.finish()
        except BaseException:
            command.stop("kill")
            await command.end()
            output.discard()
            raise
        finally:
            output.close()
            self._let_go(command)

    def _let_go(self, command: RunningCommand) -> None:
        """Nobody watches it any more: keep it only while processes of it are left for somebody to end."""
        command.close_pipes()
        if self._disposed or command.control.ended.is_set():
            self._drop(command)
        else:
            command.control.on_end = lambda: self._drop(command)

    def _drop(self, command: RunningCommand) -> None:
        command.close()
        del self._commands[command.marker]

    def get(self, task_id: str) -> BackgroundTask | None:
        task = self._tasks.get(task_id)
        return None if task is None else task.view()

    def owner_of(self, task_id: str) -> str | None:
        task = self._tasks.get(task_id)
        return None if task is None else task.owner

    def list(self, owner: str) -> list[BackgroundTask]:
        return [task.view() for task in self._tasks.values() if task.owner == owner]

    def read_output(self, task_id: str, *, offset: int | None = None) -> TaskOutput:
        return self._task(task_id).read(offset)

    def _task(self, task_id: str) -> TaskRecord:
        try:
            return self._tasks[task_id]
        except KeyError:
            raise UnknownTask(f"there is no background task {task_id!r}") from None

    async def kill(self, task_id: str) -> BackgroundTask:
        task = self._task(task_id)
        await self._end_all([task.command])
        await task.done.wait()
        return task.view()

    def on_task_done(self, listener: Callable[[BackgroundTask], None]) -> Callable[[], None]:
        return self._listeners.add(listener)

    async def release(self, owner: str) -> tuple[Survivor, ...]:
        tasks = [task for task in self._tasks.values() if task.owner == owner]
        survivors = await self._end_all([c for c in self._commands.values() if c.spec.owner == owner])
        for task in tasks:
            await task.done.wait()
            self._tasks.pop(task.id, None)
        if enclosed := self._enclosed.pop(owner, None):
            enclosed.refuse()
            await enclosed.close()
        return self._shown(survivors)

    def _shown(self, survivors: Iterable[Survivor]) -> tuple[Survivor, ...]:
        """The same processes without the secrets on their command lines, whose ends are cut off."""
        return tuple(Survivor(one.pid, self._secrets.redact(one.command, cut=True)) for one in survivors)

    async def _end_all(self, commands: Sequence[RunningCommand]) -> tuple[Survivor, ...]:
        """Kill ladders side by side."""
        survivors: list[Survivor] = []

        async def end(command: RunningCommand) -> None:
            command.stop("kill")
            survivors.extend(await command.end())

        with anyio.CancelScope(shield=True):  # bounded: each ladder is
            async with anyio.create_task_group() as ladders:
                for command in commands:
                    ladders.start_soon(end, command)
        return tuple(survivors)

    async def dispose(self) -> None:
        self._disposed = True
        supervisors = [self._supervisor, *self._enclosed.values()]
        for supervisor in supervisors:
            supervisor.refuse()
        self._listeners.clear()
        await self._end_all(list(self._commands.values()))
        for command in list(self._commands.values()):
            if command.control.on_end is not None:  # what could not be killed, and nobody watches
                self._drop(command)
        self._tasks.clear()
        with anyio.CancelScope(shield=True):  # each is bounded
            async with anyio.create_task_group() as closing:
                for supervisor in supervisors:
                    closing.start_soon(supervisor.close)
        self._folder.close()
