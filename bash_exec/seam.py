"""The executor seam: resolve, run, start, read, kill (contract tools-and-bash.md §3).

May not know: the agent, its tools, its log. Invariant: outcomes are data — `run` raises only for infrastructure
failures (`ExecutorError`); a command that fails, is killed or times out is a result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """What a caller asks for. `workdir` absolute, or relative to `cwd`; `timeout_ms` None = the default.

    `owner` is the session that the command belongs to: other owners may not see its background tasks.
    """

    command: str
    cwd: str
    owner: str
    workdir: str | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What will be run: every default and cap applied by `resolve`."""

    command: str
    cwd: str
    owner: str
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class StreamCapture:
    """One output stream: head and tail joined by nothing; `spill_path` holds it whole when it was truncated."""

    text: str
    truncated: bool = False
    dropped_bytes: int = 0
    dropped_lines: int = 0
    spill_path: str | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process of the command that is still alive when the result is given; `command` is shown without secrets."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Independent facts of one finished command.

    `exit_code` XOR `signal` (a name such as `SIGTERM`); `timed_out`, `aborted`, `output_limit` say why it was killed;
    `survivors` could not be killed; `background` still run after a normal exit and belong to the owner.
    """

    exit_code: int | None
    signal: str | None
    timed_out: bool
    aborted: bool
    timeout_ms: int
    stdout: StreamCapture
    stderr: StreamCapture
    survivors: tuple[Survivor, ...] = ()
    background: tuple[Survivor, ...] = ()
    output_limit: int | None = None


TaskStatus = Literal["running", "exited", "killed", "timed-out"]


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """A part of a task's output: `text` is its bytes from `offset` to `next_offset`, counted from its beginning.

    The `lost_bytes` before `offset` are no longer kept; `spill_path` has them.
    """

    text: str
    status: TaskStatus
    exit_code: int | None
    signal: str | None
    lost_bytes: int = 0
    spill_path: str | None = None
    offset: int = 0
    next_offset: int = 0


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """A command started with `start`; `id` is `bash-N`, `command` is shown without secrets."""

    id: str
    owner: str
    command: str
    status: TaskStatus
    exit_code: int | None = None
    signal: str | None = None


class Abort(Protocol):
    """The part of an abort signal that an executor needs."""

    @property
    @abstractmethod
    def aborted(self) -> bool:
        """True from the first abort on."""
        ...

    @abstractmethod
    def on_abort(self, callback: Callable[[], None], /) -> Callable[[], None]:
        """Call `callback` once on abort, at once when it has happened; returns a remover."""
        ...


OutputListener = Callable[[bytes], None]


class CommandRunner(Protocol):
    """Something that runs one command in the foreground: an executor, or a terminal of somebody else."""

    @abstractmethod
    async def run(
        self, spec: CommandSpec, *, abort: Abort | None = None, on_output: OutputListener | None = None
    ) -> CommandResult:
        """As `BashExecutor.run`."""
        ...


class BashExecutor(ABC):
    """Runs shell commands. One per agent process; `dispose` ends everything it started."""

    @abstractmethod
    def resolve(self, request: CommandRequest) -> CommandSpec:
        """Apply defaults and caps (timeout 120 s, at most 600 s). Raises `InvalidCommand`."""

    @abstractmethod
    async def run(
        self, spec: CommandSpec, *, abort: Abort | None = None, on_output: OutputListener | None = None
    ) -> CommandResult:
        """Run in the foreground. Raises `ExecutorError` (bad cwd, missing shell, already aborted).

        On abort, timeout, cancellation or an exception the kill ladder runs to its end before this returns or
        raises. `on_output` gets raw chunks of both streams in order of arrival.
        """

    @abstractmethod
    async def start(self, spec: CommandSpec) -> BackgroundTask:
        """Start in the background, without timeout. Raises `ExecutorError`."""

    @abstractmethod
    def get(self, task_id: str) -> BackgroundTask | None:
        """The task's present state, None when unknown."""

    @abstractmethod
    def owner_of(self, task_id: str) -> str | None:
        """The session that started it."""

    @abstractmethod
    def list(self, owner: str) -> list[BackgroundTask]:
        """The tasks of one owner, oldest first."""

    @abstractmethod
    def read_output(self, task_id: str, *, offset: int | None = None) -> TaskOutput:
        """New output since the last call without `offset`. Raises `UnknownTask`.

        With `offset` (0 or more, such as the `next_offset` of an earlier read) the output from there on, which no
        other read is affected by; both streams are one, in order of arrival.
        """

    @abstractmethod
    async def kill(self, task_id: str) -> BackgroundTask:
        """Kill ladder on a task; idempotent. Raises `UnknownTask`."""

    @abstractmethod
    def on_task_done(self, listener: Callable[[BackgroundTask], None]) -> Callable[[], None]:
        """Call `listener` when a background task ends by itself; returns a remover."""

    @abstractmethod
    async def release(self, owner: str) -> tuple[Survivor, ...]:
        """End everything that still runs for `owner` (session closed); returns what could not be killed."""

    @abstractmethod
    async def dispose(self) -> None:
        """End every command, release every descriptor, remove what is no longer readable. Idempotent, never raises."""
