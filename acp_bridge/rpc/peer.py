"""The connection: reads, hands on, writes; the one object that the bridge holds.

May not know: ACP. Invariants (contract acp.md §1): the read loop waits for input and for nothing else, so a client that
does not read is still heard; no input and no handler ends the connection — only EOF, a reader that is gone, or `stop`
do; every non-blank line gets at most one answer.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, assert_never

import anyio
import anyio.lowlevel

from acp_bridge.rpc.bounded_log import BoundedLog, WireLog
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INVALID_REQUEST
from acp_bridge.rpc.framing import FrameSplitter, Oversize
from acp_bridge.rpc.incoming import Dispatcher, IncomingRequests
from acp_bridge.rpc.messages import (
    InvalidMessage,
    MalformedNotification,
    NotificationMessage,
    RequestMessage,
    ResponseMessage,
    error_frame,
    notification_frame,
    parse,
)
from acp_bridge.rpc.outgoing import Abort, OnLate, OutgoingRequests
from acp_bridge.rpc.reader import read_pieces
from acp_bridge.rpc.stdio import Stdio
from acp_bridge.rpc.writer import OrderedWriter

__all__ = ["Call", "Dispatcher", "Peer"]

LAST_FLUSH_SECONDS = 1.0


async def _nothing() -> None:
    """No shutdown hook."""


class Peer:
    """The client, as seen from here.

    `before_write` runs before each write; `max_frame` and `high_water` are bytes: the longest line that is read, and
    the backlog from which on producers should wait. Made inside the event loop. Raises `OSError` when `stdio.write_fd`
    is not open.
    """

    def __init__(
        self,
        stdio: Stdio,
        *,
        before_write: Callable[[], None],
        log: WireLog,
        max_frame: int = 64 << 20,
        high_water: int = 1 << 20,
    ) -> None:
        self._read_fd = stdio.read_fd
        self._log = BoundedLog(log)
        self._splitter = FrameSplitter(limit=max_frame)
        self._max_frame = max_frame
        self._reading = anyio.CancelScope()
        self._writer = OrderedWriter(
            stdio.write_fd, before_write=before_write, on_gone=self.stop, log=self._log, high_water=high_water
        )
        self._outgoing = OutgoingRequests(self._writer.queue)

    async def serve(
        self, dispatcher: Dispatcher, *, preread: bytes = b"", on_eof: Callable[[], Awaitable[None]] = _nothing
    ) -> None:
        """Serve until EOF, a reader that is gone, or `stop`. `preread` is input that was taken off the descriptor.

        Then, in this order: our requests end with `ConnectionClosed`; `on_eof` settles what it owns; handlers still
        running are cancelled and answered; what is queued has one second to leave. Afterwards nothing is sent any more.
        """
        handlers = anyio.create_task_group()
        incoming = IncomingRequests(dispatcher, handlers=handlers, writer=self._writer, log=self._log)
        try:
            async with handlers:
                with self._reading:
                    await self._read(incoming, preread)
                self._end()
                try:
                    await on_eof()
                finally:
                    handlers.cancel_scope.cancel()
        finally:
            self._end()
            incoming.end()
            with anyio.move_on_after(LAST_FLUSH_SECONDS, shield=True):
                await self.flush()
                self._writer.release()
                await self.flush()
            self._writer.close()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification; dropped when the client is gone. Raises `ValueError` for what JSON cannot say."""
        self._writer.queue(notification_frame(method, params))

    def notify_encoded(self, frame: bytes) -> None:
        """Queue a ready frame, newline included."""
        self._writer.queue(frame)

    def post(self, method: str, params: dict[str, Any]) -> None:
        """Ask the client without waiting: its answer, whatever it is, changes nothing. Dropped when it is gone."""
        self._outgoing.post(method, params)

    async def request(
        self, method: str, params: dict[str, Any], *, signal: Abort | None = None, on_late: OnLate | None = None
    ) -> dict[str, Any]:
        """Ask the client and wait for its result; a null result is `{}`.

        When `signal` aborts, or the awaiting task is cancelled, the client is told by `$/cancel_request` and this ends
        at once; a result that comes all the same goes to `on_late`. Raises `RpcError` (the client's error; −32800 after
        an abort; −32603 for a result that is no object), `ConnectionClosed`, `ValueError` for params that JSON cannot
        say.
        """
        return await self._outgoing.request(method, params=params, signal=signal, on_late=on_late)

    @property
    def congested(self) -> bool:
        """Whether producers should wait: the backlog is at or above the mark. Never once `closed`."""
        return self._writer.congested

    async def drained(self) -> None:
        """Return when not `congested`, at once if so."""
        await self._writer.drained()

    async def flush(self) -> None:
        """Return when all that was queued so far is written, or the client is gone."""
        await self._writer.flushed()

    @property
    def closed(self) -> bool:
        """Whether no more input will come. Frames are still written until `serve` returns."""
        return self._outgoing.closed

    def stop(self) -> None:
        """End as if the input had ended here (SIGTERM, death of the parent); again changes nothing."""
        self._reading.cancel()

    def _end(self) -> None:
        # in one tick with `on_eof`: whoever loses its answer here finds its turn cancelled already
        self._outgoing.close()
        self._writer.lift_mark()

    async def _read(self, incoming: IncomingRequests, preread: bytes) -> None:
        self._take(incoming, preread)
        await read_pieces(self._read_fd, partial(self._take, incoming))
        self._receive(incoming, self._splitter.finish())
        # what came with the end is acted upon before the end is
        await anyio.lowlevel.checkpoint()

    def _take(self, incoming: IncomingRequests, piece: bytes) -> None:
        self._receive(incoming, self._splitter.feed(piece))

    def _receive(self, incoming: IncomingRequests, frames: list[bytes | Oversize]) -> None:
        for frame in frames:
            if isinstance(frame, Oversize):
                reason = f"Invalid request: a line is longer than {self._max_frame} bytes"
                message = InvalidMessage(INVALID_REQUEST, None, reason)
            else:
                message = parse(frame)
            match message:
                case RequestMessage() if len(frames) == 1:
                    incoming.lone_request(message)
                case RequestMessage():
                    incoming.request(message)
                case NotificationMessage():
                    incoming.notification(message)
                case ResponseMessage():
                    if not self._outgoing.settle(message):
                        self._log.debug("response_dropped")
                case InvalidMessage(code=code, id=request_id, reason=reason):
                    self._log.warning("invalid_frame", reason=reason)
                    self._writer.queue(error_frame(request_id, {"code": code, "message": reason}))
                case MalformedNotification(method=method):
                    self._log.debug("notification_dropped", method=method[:200])
                case _:
                    assert_never(message)
