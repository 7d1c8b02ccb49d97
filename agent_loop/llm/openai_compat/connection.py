"""One HTTP/1.1 connection: requests go out one after the other, their answers come in (contract llm.md §5).

May not know: addresses, proxies, what is sent. Invariants: bytes come out in their order, all before the failure
that ended them, and what has arrived comes in one read, so that an answer of many small pieces costs one wait for those
that came together; a server that nobody listens to is held up at 1 MiB; a connection on which anything but one whole
answer to each request arrived is not used again. The parser is httptools, which is that of Node; what stands around it
is asyncio's own transport and no task.
"""

import asyncio
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from agent_loop.errors import HarnessError

LIMIT: Final = 1 << 20
"""Bytes that are held before the server has to wait for somebody to take them."""
HEAD_LIMIT: Final = 256 * 1024
_WITHOUT_BODY: Final = frozenset({204, 304})


class HttpError(HarnessError):
    """The network or the other side failed; the text says how."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "HTTP")


class Connection(asyncio.Protocol):
    """asyncio's end of it is called by the transport, the other end awaited by at most one task.

    `status` and `headers` (lower-case names) are those of the last answer whose head has come. No time limits here:
    silence is the adapter's business.
    """

    def __init__(self) -> None:
        self.transport = cast("asyncio.Transport", None)
        self.status = 0
        self.headers: dict[str, str] = {}
        self._parser = HttpResponseParser(self)
        # what servers and gateways do get wrong and no client has ever minded
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_chunked_length=True, lenient_data_after_close=True
        )
        self._pieces: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._has_head = False
        # before the first request it is as after a whole answer: nothing is expected
        self._complete = True
        self._ends_with_connection = False
        self._keep = True
        self._failure: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._closed = asyncio.Event()

    async def request(self, data: bytes) -> None:
        """Send a whole request; returns when the head of its answer is there. Raises `HttpError`.

        Only when `reusable`. Who is cancelled in here closes the connection.
        """
        self.status, self.headers = 0, {}
        self._head_size, self._has_head, self._complete = 0, False, False
        self.transport.write(data)
        while not self._has_head:
            await self._something()

    async def read(self) -> bytes:
        """All that has come of the body, at least one byte; `b""` at its end. Raises `HttpError`."""
        while not self._pieces:
            if self._complete:
                return b""
            await self._something()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        if self._size >= LIMIT:
            self.transport.resume_reading()
        self._size = 0
        return data

    @property
    def ended(self) -> bool:
        """Whether the answer has come whole and was read to its end."""
        return self._complete and not self._pieces

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent: nothing is left of the last, and the server keeps the connection."""
        whole = self.ended and self._keep and self._failure is None
        # an answer that came before all of its request was written leaves the rest of that in the way
        return whole and self.transport.get_write_buffer_size() == 0

    def give_up(self) -> None:
        """Close at once; whoever waits, and what is read later, fails."""
        self._break("it was given up")
        self._wake()

    async def aclose(self) -> None:
        """Close at once, and return when that is done. Idempotent."""
        self.transport.abort()
        await self._closed.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._complete:
            self._break("the server sent what nobody has asked for")
            return
        if not self._has_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._break("the server wants to speak another protocol")
        except HttpParserError as error:
            self._break(f"the server does not speak HTTP: {error}")
        if self._head_size > HEAD_LIMIT and not self._has_head:
            self._break(f"the head of the answer is longer than {HEAD_LIMIT // 1024} KiB")
        if self._size >= LIMIT:
            self.transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._has_head and self._ends_with_connection and exc is None:
            self._complete = True
        if self._failure is None:
            self._failure = "the server closed the connection" if exc is None else str(exc) or type(exc).__name__
        self._closed.set()
        self._wake()

    def on_header(self, name: bytes, value: bytes) -> None:
        # what stands behind the body is no header of the answer
        if not (self._has_head or self._complete):
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._complete:
            return
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200
        self._ends_with_connection = not (
            self.status in _WITHOUT_BODY
            or "content-length" in self.headers
            or "chunked" in self.headers.get("transfer-encoding", "").lower()
        )

    def on_body(self, body: bytes) -> None:
        if not self._complete:
            self._pieces.append(body)
            self._size += len(body)

    def on_message_begin(self) -> None:
        if self._complete:
            # another answer in the same breath
            self._keep = False

    def on_message_complete(self) -> None:
        if self._complete:
            return
        if not self._has_head:
            # "continue", "early hints": the answer itself is still to come
            self.headers = {}
        else:
            self._complete = True
            self._keep = self._parser.should_keep_alive()

    async def _something(self) -> None:
        """Return when anything has happened. Raises `HttpError` when nothing can any more."""
        if self._failure is not None:
            raise HttpError(self._failure)
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _break(self, why: str) -> None:
        self._failure = why
        self.transport.abort()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
