"""The agent's side of the supervisor process: start it with the first command, hand it requests, see it off.

May not know: results, output, owners. Invariant: at most one supervisor takes requests; one that is dead or deaf is
replaced for the next request and reaped; it inherits no descriptor but its lifeline.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

import anyio

import bash_exec
from bash_exec import wire
from bash_exec.errors import ExecutorError, SpawnFailed
from bash_exec.exits import has_ended
from bash_exec.process import KILL_ROUNDS, read_proc

BARE_INTERPRETER = (sys.executable, "-I", "-S")
_BOOT = "import sys; sys.path.append(sys.argv[1]); from bash_exec.supervisor_main import main; main(sys.argv[2:])"
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(bash_exec.__file__)))
_ORPHAN_GRACE = 1.0  # seconds between TERM and KILL for the commands of an agent that died: all is over within three
_REAP_BOUND = 2.0  # seconds


class Supervisor:
    """Starts commands. `answer_bound` is how long, in seconds, the process may leave a request unread.

    `prefix` is the argv of an enclosure (see `Enclosure`), empty without one.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        grace: float,
        portable: bool = sys.platform != "linux",
        interpreter: Sequence[str] = BARE_INTERPRETER,
        prefix: Sequence[str] = (),
        answer_bound: float = 10.0,
    ) -> None:
        self._environment = dict(environment)
        self._grace = grace
        self._orphan_grace = min(grace, _ORPHAN_GRACE)
        self._portable = portable
        self._argv = (*prefix, *interpreter)
        self._enclosed = bool(prefix)
        self.answer_bound = answer_bound
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: socket.socket | None = None
        self._sending = anyio.Lock()
        self._refusing = False

    @property
    def pid(self) -> int | None:
        """The process that takes requests now, None before the first."""
        return None if self._process is None else self._process.pid

    def refuse(self) -> None:
        """Take no request any more."""
        self._refusing = True

    async def request(self, request: wire.Request, descriptors: Sequence[int]) -> int | None:
        """Hand over a command and its descriptors (the caller closes its copies). Raises `SpawnFailed`.

        Returns the process that took it, None when two in a row did not. Not cancelled in the middle: half a frame
        would cost every later command.
        """
        frame = wire.encode_request(request)
        with anyio.CancelScope(shield=True):
            async with self._sending:
                if self._refusing:
                    raise ExecutorError("the executor has been disposed: no command can be started")
                try:
                    taker = await self._deliver(frame, descriptors)
                    if taker is None:
                        await self.replace()
                        taker = await self._deliver(frame, descriptors)
                except OSError as error:
                    raise SpawnFailed(f"the supervisor of commands cannot be started: {error.strerror}") from error
                return taker

    async def _deliver(self, frame: bytes, descriptors: Sequence[int]) -> int | None:
        """The process that took it; None when that is dead or takes nothing for `answer_bound` seconds."""
        lifeline = self._lifeline or self._start()
        taker = self.pid
        with anyio.move_on_after(self.answer_bound):
            try:
                await anyio.wait_writable(lifeline)
                sent = socket.send_fds(lifeline, [frame], descriptors)
                while sent < len(frame):
                    await anyio.wait_writable(lifeline)
                    sent += lifeline.send(frame[sent:])
            except (BrokenPipeError, ConnectionResetError):
                return None
            return taker
        return None

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            ours.settimeout(0)
            numbers = [str(theirs.fileno()), str(self._grace), str(self._orphan_grace)]
            try:
                self._process = subprocess.Popen(
                    [*self._argv, "-c", _BOOT, _ROOT, *numbers, "portable" if self._portable else ""],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=self._environment,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self._lifeline = ours
        return ours

    async def replace(self) -> None:
        """Give up on the present process: the next request starts another. Commands that it started go on.

        Shielded: nobody else would reap the process.
        """
        with anyio.CancelScope(shield=True):  # bounded: what is killed ends
            await self._see_off(0)

    async def end(self, pid: int | None) -> None:
        """Give up on the process `pid`, if it is the present one, with everything in its enclosure."""
        if pid == self.pid:
            await self.replace()

    async def close(self) -> None:
        """Close the lifeline and wait until the process has ended what is left and itself. Bounded, idempotent."""
        with anyio.CancelScope(shield=True):
            await self._see_off(self._orphan_grace + KILL_ROUNDS + _REAP_BOUND)

    async def _see_off(self, bound: float) -> None:
        """Close the lifeline and reap the process, by force after `bound` seconds."""
        process, lifeline = self._process, self._lifeline
        self._process = self._lifeline = None
        if lifeline is not None:
            lifeline.close()
        if process is None or await self._has_ended(process, bound):
            return
        if self._enclosed:
            # the first process of the namespace: it is gone, and reaped, only after everything in there
            for child in [row.pid for row in read_proc() if row.parent == process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if await self._has_ended(process, KILL_ROUNDS):
                return
        process.kill()
        await self._has_ended(process, _REAP_BOUND)

    async def _has_ended(self, process: subprocess.Popen[bytes], within: float) -> bool:
        return await has_ended(process, within=within, portable=self._portable)
