"""The agent's end of one command's monitor: its lines in, two orders out.

May not know: pipes of output, timeouts, why a command is ended. Invariant: nothing here waits; a descriptor callback
of the loop turns lines into facts and events, and the end of the stream settles every waiter.
"""

import asyncio
import socket
from collections.abc import Callable

import anyio

from bash_exec import wire
from bash_exec.seam import Survivor


class Control:
    """Facts of one command as its monitor tells them. Make it on the loop; `close` it there."""

    def __init__(self, connection: socket.socket, *, on_exit: Callable[[], None]) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._on_exit = on_exit
        self.on_end: Callable[[], None] | None = None  # called once when `ended` is set
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._killed = anyio.Event()
        self._listed = anyio.Event()
        self._survivors: tuple[Survivor, ...] = ()
        self._running: tuple[Survivor, ...] = ()
        self.monitor: int | None = None
        self.shell: int | None = None
        self.failure: tuple[int, str] | None = None  # errno, stage
        self.status: int | None = None  # exit code, negative signal number
        self.gone = False
        self.begun = anyio.Event()  # started, failed or lost
        self.ended = anyio.Event()  # the stream has closed: the monitor is no more
        self._loop.add_reader(connection, self._read)

    @property
    def lost(self) -> bool:
        """The monitor ended while its command had not."""
        return self.ended.is_set() and not self.gone and self.failure is None

    async def kill(self) -> tuple[Survivor, ...] | None:
        """Have the ladder run; the survivors, or None when the monitor was lost. Concurrent calls share one ladder."""
        if not self.ended.is_set():
            if self._killed.is_set():
                self._killed = anyio.Event()
            self._order(wire.KILL)
            await self._killed.wait()
        return None if self.lost else self._survivors

    async def running(self) -> tuple[Survivor, ...]:
        """What is alive of the command; nothing when the monitor has ended."""
        if not self.ended.is_set():
            if self._listed.is_set():
                self._listed = anyio.Event()
            self._order(wire.LIST)
            await self._listed.wait()
        return self._running

    def close(self) -> None:
        """Drop the connection; a monitor that is still there then ends its command. Idempotent."""
        self._loop.remove_reader(self._connection)
        self._connection.close()

    def _order(self, order: bytes) -> None:
        try:
            self._connection.send(order)
        except BrokenPipeError:
            self._read()  # its last lines and the end of the stream are there already

    def _read(self) -> None:
        try:
            data = self._connection.recv(65536)
        except ConnectionResetError:  # it was killed with an order of ours unread
            data = b""
        if not data:
            self._end()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(line.decode().split(" "))

    def _take(self, fields: list[str]) -> None:
        word, *rest = fields
        if word == wire.WATCHING:
            self.monitor = int(rest[0])
        elif word == wire.STARTED:
            self.shell = int(rest[0])
            self.begun.set()
        elif word == wire.FAILED:
            self.failure = int(rest[0]), rest[1]
            self.begun.set()
        elif word == wire.EXITED:
            self.status = int(rest[0])
            self._on_exit()
        elif word == wire.RUNNING:
            self._running = _survivors(rest)
            self._listed.set()
        elif word == wire.SURVIVORS:
            self._survivors = _survivors(rest)
            self._killed.set()
        else:
            self.gone = True

    def _end(self) -> None:
        self._loop.remove_reader(self._connection)
        if self.gone:
            self._running = self._survivors = ()
        self.ended.set()
        for event in (self.begun, self._killed, self._listed):
            event.set()
        self._on_exit()
        if self.on_end is not None:
            self.on_end()


def _survivors(fields: list[str]) -> tuple[Survivor, ...]:
    return tuple(Survivor(pid, command) for pid, command in wire.decode_processes(fields))
