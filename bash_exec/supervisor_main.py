"""The supervisor process: forks a monitor for each command and outlives the agent until all of them are gone.

Started with the agent's first command in a bare interpreter, with a scrubbed environment and no descriptor but its
lifeline (contract tools-and-bash.md §4, "Agent death"). It is a subreaper as well: when a command kills its own
monitor, the orphans come here and are ended.

May not know: the loop, the agent, results. Invariant: after the lifeline closes, nothing below it lives for longer
than `orphan_grace` + 2 seconds.
"""

import contextlib
import os
import select
import signal
import socket
import time

from bash_exec import wire
from bash_exec.monitor import IGNORED, Monitor, adopt_orphans, watch_children
from bash_exec.process import KillLadder, Process, members, read_proc, read_ps

_MONITORS_FIRST = 1.0  # seconds that the monitors have after their own grace before everything is killed with them


class CommandServer:
    """The loop of the supervisor."""

    def __init__(self, lifeline: socket.socket, *, grace: float, orphan_grace: float, portable: bool) -> None:
        self._lifeline = lifeline
        self._grace = grace
        self._orphan_grace = orphan_grace
        self._portable = portable
        self._read_table = read_ps if portable else read_proc
        self._wake, self._wake_write = watch_children()
        self._buffer = bytearray()
        self._descriptors: list[int] = []
        self._monitors: set[int] = set()
        self._ladder: KillLadder | None = None
        self._due: float | None = None
        self._leave_at: float | None = None  # set when the agent is gone

    def run(self) -> None:
        """Serve until the lifeline has closed and nothing is left, or what is left cannot be killed."""
        if not self._portable:
            adopt_orphans()
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        poller.register(self._lifeline, select.POLLIN)
        while self._reap() or self._leave_at is None:
            if self._leave_at is not None and time.monotonic() >= self._leave_at:
                self._kill_all()
                return
            self._advance_ladder()
            for descriptor, _event in poller.poll(self._timeout_ms()):
                if descriptor == self._wake:
                    os.read(descriptor, 4096)
                elif not self._receive():
                    poller.unregister(self._lifeline)
                    self._leave_at = time.monotonic() + self._orphan_grace + _MONITORS_FIRST
                    self._start_ladder(self._orphan_grace)

    def _timeout_ms(self) -> int | None:
        times = [moment for moment in (self._due, self._leave_at) if moment is not None]
        return max(0, round((min(times) - time.monotonic()) * 1000)) if times else None

    def _receive(self) -> bool:
        """Take what has arrived and start what is whole; False when the agent is gone."""
        data, descriptors, _flags, _address = socket.recv_fds(self._lifeline, 65536, wire.DESCRIPTORS + 1)
        self._descriptors += descriptors
        self._buffer += data
        while (request := wire.take_request(self._buffer)) is not None:
            count = wire.DESCRIPTORS + request.has_input
            control, *streams = self._descriptors[:count]
            del self._descriptors[:count]
            with socket.socket(fileno=control) as connection:
                self._start(request, connection, streams)
            for descriptor in streams:
                os.close(descriptor)
        return bool(data)

    def _start(self, request: wire.Request, control: socket.socket, streams: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            with contextlib.suppress(OSError):  # whoever asked may be gone
                control.sendall(f"{wire.FAILED} {error.errno} {wire.STAGE_FORK}\n".encode())
            return
        if pid:
            self._monitors.add(pid)
            return
        code = 1
        try:
            self._lifeline.close()
            for descriptor in (self._wake, self._wake_write, *self._descriptors):
                os.close(descriptor)
            monitor = Monitor(control, grace=self._grace, orphan_grace=self._orphan_grace, portable=self._portable)
            monitor.run(request, streams)
            code = 0
        finally:
            os._exit(code)

    def _reap(self) -> bool:
        """Collect what has ended; False when there is no child."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid in self._monitors:
                self._monitors.remove(pid)
                if status and self._leave_at is None:
                    self._start_ladder(self._grace)

    def _orphans(self) -> list[Process]:
        return members(self._read_table(), below=os.getpid(), without=self._monitors)

    def _start_ladder(self, grace: float) -> None:
        self._due = time.monotonic()
        self._ladder = KillLadder(self._orphans, group=0, grace=grace, now=self._due)

    def _advance_ladder(self) -> None:
        """Do what the ladder has due."""
        if self._ladder is not None and self._due is not None and time.monotonic() >= self._due:
            self._due = self._ladder.advance(time.monotonic())

    def _kill_all(self) -> None:
        """The monitors have had their time: kill them and everything below."""
        ladder = KillLadder(
            lambda: members(self._read_table(), below=os.getpid()), group=0, grace=0, now=time.monotonic()
        )
        while (due := ladder.advance(time.monotonic())) is not None:
            time.sleep(max(0, due - time.monotonic()))  # foreign processes: no event tells of their end


def main(arguments: list[str]) -> None:
    """Run the supervisor: `[lifeline descriptor, grace, orphan grace, "portable" or ""]` (seconds)."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    descriptor, grace, orphan_grace, portable = arguments
    os.chdir("/")  # no directory of the user is held busy
    lifeline = socket.socket(fileno=int(descriptor))
    server = CommandServer(
        lifeline, grace=float(grace), orphan_grace=float(orphan_grace), portable=portable == "portable"
    )
    server.run()
