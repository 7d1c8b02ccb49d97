"""Programs that speak over their standard streams until they are ended, such as servers of a session.

May not know: what is spoken. Invariant: a program is registered before anything is started for it and stays so until
its whole process tree is gone or cannot be killed; it dies with this process, by the same supervisor as commands do.
Source: contract tools-and-bash.md §4.
"""

import contextlib
import os
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial

import anyio

from bash_exec import wire
from bash_exec.command import READ_BUDGET, Channels, RunningCommand, open_channels
from bash_exec.errors import SpawnFailed
from bash_exec.seam import CommandSpec
from bash_exec.start_check import check_start
from bash_exec.supervisor import BARE_INTERPRETER, Supervisor

GRACE_SECONDS = 1.0
"""From TERM to KILL: a session must close soon, and who was told that its input has ended has had time already."""
FAREWELL_SECONDS = 0.5
"""How long a program whose input has ended may take to end by itself."""

_SHELL = "bash"


class Service:
    """A running program. Whoever reads or writes stops before `end`, called once, closes the descriptors."""

    def __init__(self, command: RunningCommand, *, stdin: int, stdout: int, stderr: int) -> None:
        self._command = command
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr

    @property
    def pid(self) -> int | None:
        """The program's process."""
        return self._command.control.shell

    @property
    def ending(self) -> str | None:
        """How the program ended, for people; None while it runs and when nobody knows."""
        if self._command.signal is not None:
            return f"it was ended by {self._command.signal}"
        code = self._command.exit_code
        return None if code is None else f"it ended with exit code {code}"

    async def send(self, data: bytes) -> None:
        """Write all of it. Raises `BrokenPipeError` when the program reads no more."""
        rest = memoryview(data)
        while rest:
            await anyio.wait_writable(self._stdin)
            rest = rest[os.write(self._stdin, rest) :]

    async def read_output(self) -> bytes:
        """The next bytes of stdout, empty at its end."""
        await anyio.wait_readable(self._stdout)
        return os.read(self._stdout, READ_BUDGET)

    async def read_errors(self) -> bytes:
        """The next bytes of stderr, empty at its end."""
        await anyio.wait_readable(self._stderr)
        return os.read(self._stderr, READ_BUDGET)

    async def exited(self) -> None:
        """Return when the program has ended, whatever else of it is alive."""
        await self._command.exited()

    async def end(self) -> None:
        """Close its input, give it a moment, then run the kill ladder on its whole tree. Bounded, never raises."""
        with anyio.CancelScope(shield=True):
            os.close(self._stdin)
            with anyio.move_on_after(FAREWELL_SECONDS):
                await self._command.control.ended.wait()
            if not self._command.control.gone:
                self._command.stop("kill")
                await self._command.end()
        self._command.close()


class Services:
    """Starts programs. `environment` is the whole (already scrubbed) environment that they get, less their own.

    `portable`, `interpreter`: as for the executor of commands.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        portable: bool = sys.platform != "linux",
        interpreter: Sequence[str] = BARE_INTERPRETER,
    ) -> None:
        self._portable = portable
        self._supervisor = Supervisor(
            environment=environment, grace=GRACE_SECONDS, portable=portable, interpreter=interpreter
        )

    async def start(self, argv: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> Service:
        """Start a program in `directory`, found on the PATH that it gets. Raises `ExecutorError`.

        A program that cannot be found or run ends at once, with the shell's words on its stderr.
        """
        channels, their_input, our_input = _open_streams()
        marker = secrets.token_hex(16)
        # the shell becomes the program; it looks for it on the PATH of `environment`
        text = f"exec -- {shlex.join(argv)}"
        spec = CommandSpec(text, directory, owner="", timeout_ms=0)
        command = RunningCommand(spec, marker=marker, channels=channels, grace=GRACE_SECONDS, portable=self._portable)
        os.set_blocking(our_input, False)
        service = Service(command, stdin=our_input, stdout=channels.pipes[0], stderr=channels.pipes[1])
        try:
            theirs = (*channels.theirs, their_input)
            entries = tuple(f"{name}={value}" for name, value in environment.items())
            request = wire.Request(marker, directory, _SHELL, text, has_input=True, environment=entries)
            try:
                await self._supervisor.request(request, theirs)
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
            with anyio.move_on_after(self._supervisor.answer_bound):
                await command.control.begun.wait()
            await check_start(command.control, self._supervisor, partial(_explain, directory))
        except BaseException:
            await service.end()
            raise
        return service

    async def close(self) -> None:
        """See the supervisor off, which ends what is left. Idempotent; nothing can be started afterwards."""
        self._supervisor.refuse()
        await self._supervisor.close()


def _open_streams() -> tuple[Channels, int, int]:
    """The channels of a command, and both ends of its input, ours last."""
    with contextlib.ExitStack() as undo:
        try:
            their_input, our_input = os.pipe()
            undo.callback(os.close, their_input)
            undo.callback(os.close, our_input)
            channels = open_channels()
        except OSError as error:
            raise SpawnFailed(f"no pipes for the program: {error.strerror}") from error
        undo.pop_all()
    return channels, their_input, our_input


def _explain(directory: str, number: int, stage: str) -> str:
    reason = os.strerror(number)
    if stage == wire.STAGE_DIRECTORY:
        return f"it cannot run in {directory!r}: {reason}"
    return f"the system gives no process for it: {reason}"
