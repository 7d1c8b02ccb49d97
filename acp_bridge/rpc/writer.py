"""The ordered single writer: every byte of the connection leaves here, in the order in which it was queued.

May not know: JSON-RPC, sessions. It runs on loop callbacks, so queueing is synchronous and costs no task.
Invariants (contract acp.md §1): frames queued within one loop tick leave in one write; `before_write` has run between
the queueing of a frame and its write; what is deferred behind a frame leaves in a later write than that frame; a reader
that does not read stops this writer and nothing else; a reader that is gone makes it drop what it is given.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from acp_bridge.rpc.bounded_log import WireLog
from acp_bridge.rpc.sender import sender_for

DEFERRAL_SECONDS = 0.020
MAX_FRAME = 4 << 20


@dataclass(slots=True, eq=False)
class _Deferred:
    """Frames behind a response: `timer` runs once the response was written; `admitted`: the next frame takes them."""

    frames: list[bytes]
    timer: asyncio.TimerHandle | None = None
    admitted: bool = False


class OrderedWriter:
    """Writes to `fd`, whose owner closes it after `close`.

    `on_gone` is called once when the reader turns out to be gone (EPIPE or any other error). `high_water` is the
    backlog in bytes from which on it is `congested`. Raises `OSError` when `fd` is not open.
    """

    def __init__(
        self,
        fd: int,
        *,
        before_write: Callable[[], None],
        on_gone: Callable[[], None],
        log: WireLog,
        high_water: int,
    ) -> None:
        self._sender = sender_for(fd)
        self._before_write = before_write
        self._on_gone = on_gone
        self._log = log
        self._high_water: float = high_water
        self._pending: list[bytes] = []
        self._unsent = memoryview(b"")
        # bytes ever queued, and those of them not yet taken by the kernel
        self._queued = 0
        self._backlog = 0
        self._scheduled = False
        self._watching = False
        self._closed = False
        self._collecting: list[bytes] | None = None
        self._deferred: list[_Deferred] = []
        # (bytes queued at registration, callback), oldest first
        self._on_written: deque[tuple[int, Callable[[], None]]] = deque()
        self._on_drained: list[Callable[[], None]] = []

    def queue(self, frame: bytes) -> None:
        """Send `frame` (newline included) behind everything queued before; dropped when closed."""
        if self._collecting is not None:
            self._collecting.append(frame)
            return
        if self._deferred:
            for deferred in [each for each in self._deferred if each.admitted]:
                self._release(deferred)
        self._append(frame)

    @contextmanager
    def deferring(self) -> Generator[None]:
        """What is queued inside leaves in a later write than all that was queued before.

        That is `DEFERRAL_SECONDS` after that write, or right before the first frame queued after an `admit` that
        followed it.
        """
        frames: list[bytes] = []
        self._collecting = frames
        try:
            yield
        finally:
            self._collecting = None
            if frames:
                deferred = _Deferred(frames)
                self._deferred.append(deferred)
                self._when_written(lambda: self._start_timer(deferred))

    def admit(self) -> None:
        """The client has asked for something, so it knows what was written: what is deferred need wait no longer."""
        for deferred in self._deferred:
            deferred.admitted = deferred.timer is not None

    def release(self) -> None:
        """Queue all that is deferred now."""
        for deferred in list(self._deferred):
            self._release(deferred)

    @property
    def congested(self) -> bool:
        """Whether the backlog is at or above the mark."""
        return self._backlog >= self._high_water

    async def drained(self) -> None:
        """Return when not `congested`."""
        while self.congested:
            below = anyio.Event()
            self._on_drained.append(below.set)
            await below.wait()

    def lift_mark(self) -> None:
        """Nobody waits any more: the connection is ending."""
        self._high_water = float("inf")
        self._report()

    async def flushed(self) -> None:
        """Return when all that is queued now was written or dropped."""
        written = anyio.Event()
        self._when_written(written.set)
        await written.wait()

    def close(self) -> None:
        """Drop what is queued and deferred; again changes nothing."""
        if self._closed:
            return
        self._closed = True
        self._stop_watching()
        for deferred in self._deferred:
            if deferred.timer is not None:
                deferred.timer.cancel()
        self._deferred.clear()
        self._pending.clear()
        self._unsent = memoryview(b"")
        self._backlog = 0
        self._report()
        self._sender.close()

    def _append(self, frame: bytes) -> None:
        if self._closed:
            return
        if len(frame) > MAX_FRAME:
            self._log.warning("frame_too_long", size=len(frame), limit=MAX_FRAME)
        self._pending.append(frame)
        self._queued += len(frame)
        self._backlog += len(frame)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)

    def _tick(self) -> None:
        self._scheduled = False
        if not self._watching and not self._closed:
            self._pump()

    def _pump(self) -> None:
        """Write until nothing is left or the descriptor is full."""
        try:
            while self._unsent or self._next_batch():
                sent = self._sender.send(self._unsent)
                self._unsent = self._unsent[sent:]
                self._backlog -= sent
                self._report()
        except BlockingIOError:
            self._start_watching()
        except OSError as error:
            self._log.debug("client_gone", error=str(error))
            self.close()
            self._on_gone()
        else:
            self._stop_watching()

    def _next_batch(self) -> bool:
        if not self._pending:
            return False
        try:
            self._before_write()
        except Exception as error:  # noqa: BLE001 - the listener wall: a failing log must not silence the wire
            self._log.warning("before_write_failed", exc_info=error)
        # joined after the hook, so that what it queued itself leaves with this batch
        self._unsent = memoryview(b"".join(self._pending))
        self._pending.clear()
        return True

    def _start_watching(self) -> None:
        if not self._watching:
            self._watching = True
            asyncio.get_running_loop().add_writer(self._sender.watch_fd, self._pump)

    def _stop_watching(self) -> None:
        if self._watching:
            self._watching = False
            asyncio.get_running_loop().remove_writer(self._sender.watch_fd)

    def _when_written(self, callback: Callable[[], None]) -> None:
        if self._backlog:
            self._on_written.append((self._queued, callback))
        else:
            callback()

    def _report(self) -> None:
        """Call those whose condition holds now."""
        written = self._queued - self._backlog
        while self._on_written and self._on_written[0][0] <= written:
            self._on_written.popleft()[1]()
        if self._on_drained and not self.congested:
            waiting, self._on_drained = self._on_drained, []
            for callback in waiting:
                callback()

    def _start_timer(self, deferred: _Deferred) -> None:
        if not self._closed:
            loop = asyncio.get_running_loop()
            deferred.timer = loop.call_later(DEFERRAL_SECONDS, self._release, deferred)

    def _release(self, deferred: _Deferred) -> None:
        if deferred.timer is not None:
            deferred.timer.cancel()
        self._deferred.remove(deferred)
        for frame in deferred.frames:
            self._append(frame)
