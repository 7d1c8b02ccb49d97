"""One running command: its pipes, its monitor, and the one way to its end (contract tools-and-bash.md §4).

May not know: owners, tasks, results. Invariant: `watch` leaves no reader behind; `end` runs the kill ladder at most
once at a time, is shielded and bounded, and never raises; completion is keyed on the shell's exit, never on pipes.
"""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

import anyio

from bash_exec.control import Control
from bash_exec.output import OutputSink
from bash_exec.process import KILL_ROUNDS, KillLadder, Process, describe, marked_pids, members, read_proc, read_ps
from bash_exec.seam import CommandSpec, Survivor

READ_BUDGET = 64 * 1024  # bytes per stream and turn of the loop: a pipe's capacity, well below a millisecond of work
_ANSWER_MARGIN = 1.0  # seconds that a monitor may take beyond its ladder before it is taken for dead

StopReason = Literal["timeout", "abort", "limit", "kill", "lost"]


class Channels(NamedTuple):
    """Ours: the monitor's connection and the read ends of stdout and stderr; theirs: what the request carries."""

    connection: socket.socket
    pipes: tuple[int, int]
    theirs: tuple[int, int, int]


def open_channels() -> Channels:
    """New descriptors for one command. Raises OSError, then none is left open."""
    with contextlib.ExitStack() as undo:
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        undo.callback(theirs.close)
        out_read, out_write = os.pipe()
        undo.callback(os.close, out_read)
        undo.callback(os.close, out_write)
        err_read, err_write = os.pipe()
        undo.pop_all()
    return Channels(ours, (out_read, err_read), (theirs.detach(), out_write, err_write))


class RunningCommand:
    """Made by the executor with the read ends of both pipes; `watch` it once, `close` it when it is gone.

    `end_enclosure` is set for a command that runs in an enclosure and ends all that is in there: the numbers that such
    a command's monitor tells are of another PID namespace, and none of them is ever signalled from here.
    """

    def __init__(
        self,
        spec: CommandSpec,
        *,
        marker: str,
        channels: Channels,
        grace: float,
        portable: bool,
    ) -> None:
        self.spec = spec
        self.marker = marker
        self.reason: StopReason | None = None
        self.survivors: tuple[Survivor, ...] = ()
        self.background: tuple[Survivor, ...] = ()
        self._pipes: tuple[int, ...] = channels.pipes
        self._open = set(range(len(channels.pipes)))  # the streams that have not ended
        self._grace = grace
        self._portable = portable
        self.end_enclosure: Callable[[], Awaitable[None]] | None = None
        self._wake = anyio.Event()  # the shell has exited, the monitor is lost, or somebody asked for the end
        self.control = Control(channels.connection, on_exit=self._wake.set)
        self._silent = anyio.Event()  # both pipes have reached their end

    @property
    def exit_code(self) -> int | None:
        """The shell's exit code, None when a signal ended it or nothing is known."""
        status = self.control.status
        return status if status is not None and status >= 0 else None

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the shell."""
        status = self.control.status
        return _signal_name(-status) if status is not None and status < 0 else None

    def stop(self, reason: StopReason) -> None:
        """Ask for the end; the first reason stays. Takes effect in `watch`."""
        if self.reason is None:
            self.reason = reason
        self._wake.set()

    async def exited(self) -> None:
        """Return when the shell has exited, the monitor is lost, or somebody asked for the end."""
        await self._wake.wait()

    async def watch(self, sink: OutputSink, *, timeout: float | None, drain: float) -> None:
        """Pump output until the shell has exited, then `drain` seconds for the rest; or until a reason to stop.

        Afterwards `reason`, `survivors`, `background` and the exit status are known. The pipes are closed.
        """
        async with anyio.create_task_group() as pumps:
            pumps.start_soon(self._pump_both, sink)
            with anyio.move_on_after(timeout):
                await self._wake.wait()
            if not self._wake.is_set():
                self.stop("timeout")
            elif self.control.lost:
                self.stop("lost")
            if self.reason is None:
                await self._settle(drain)
                with anyio.move_on_after(_ANSWER_MARGIN):
                    self.background = await self.control.running()
            if self.reason is not None:  # it may have come while the rest was awaited
                self.background = ()
                self.survivors = await self.end()
                await self._settle(drain)
            pumps.cancel_scope.cancel()
        for stream in self._open:
            sink.cut(stream)
        self.close_pipes()

    async def _settle(self, drain: float) -> None:
        with anyio.move_on_after(drain):
            await self._silent.wait()
            await self.control.ended.wait()

    async def _pump_both(self, sink: OutputSink) -> None:
        async with anyio.create_task_group() as group:
            for stream, pipe in enumerate(self._pipes):
                group.start_soon(self._pump, stream, pipe, sink)
        self._silent.set()

    async def _pump(self, stream: int, pipe: int, sink: OutputSink) -> None:
        while True:
            await anyio.wait_readable(pipe)
            data = os.read(pipe, READ_BUDGET)
            if not data:
                self._open.remove(stream)
                return
            if not await sink.take(stream, data):
                self.stop("limit")

    async def end(self) -> tuple[Survivor, ...]:
        """Run the kill ladder on everything of this command; what could not be killed."""
        survivors = None
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(self._grace + KILL_ROUNDS + _ANSWER_MARGIN):
                survivors = await self.control.kill()
            if survivors is None:
                survivors = await self._end_without_monitor()
        return survivors or ()

    async def _end_without_monitor(self) -> tuple[Survivor, ...]:
        """The ladder by our own hand, for a monitor that is dead or stopped: by group and by marker."""
        if self.end_enclosure is not None:
            await self.end_enclosure()
            return ()
        if self.control.monitor is not None and not self.control.ended.is_set():
            with contextlib.suppress(ProcessLookupError):  # it may have ended since its last line
                os.kill(self.control.monitor, signal.SIGKILL)
        ladder = KillLadder(self._own, group=self.control.shell or 0, grace=self._grace, now=time.monotonic())
        while (due := ladder.advance(time.monotonic())) is not None:  # noqa: ASYNC110 - no event tells of foreign processes
            await anyio.sleep(max(0, due - time.monotonic()))
        return tuple(Survivor(process.pid, describe(process)) for process in ladder.survivors)

    def _own(self) -> list[Process]:
        if self._portable:
            return members(read_ps(), group=self.control.shell or 0)
        table = read_proc()
        return members(table, group=self.control.shell or 0, marked=marked_pids(table, self.marker))

    def close_pipes(self) -> None:
        """Close our read ends. Idempotent."""
        pipes, self._pipes = self._pipes, ()
        for pipe in pipes:
            os.close(pipe)

    def close(self) -> None:
        """Release every descriptor. Idempotent."""
        self.close_pipes()
        self.control.close()


def _signal_name(number: int) -> str:
    names = {member.value: member.name for member in signal.Signals}
    return names.get(number, f"SIGRTMIN+{number - signal.SIGRTMIN}")
