"""The HTTP library's connections, on asyncio's own transports (its seam `network_backend`).

May not know: HTTP, what is sent. Invariants: bytes come out in their order, and what has arrived comes in one read, so
that an answer of many small pieces costs one wait for those that came together; a server that nobody listens to is held
up at 1 MiB. The library's own connections cost each read and each write a turn of the event loop and two cancel scopes:
a third of what a short request takes.
"""

import asyncio
import ssl
import sys
from collections.abc import Iterable
from typing import Any, cast

import anyio

# the library loads trio wherever that is installed: 4 MiB and 40 ms for an event loop that is not ours
_loaded: dict[str, Any] = {name: module for name, module in sys.modules.items() if name == "trio"}
_hidden: Any = None
sys.modules["trio"] = _hidden
import httpcore2  # noqa: E402 - as that must come behind the line above

del sys.modules["trio"]
sys.modules.update(_loaded)

LIMIT = 1 << 20
"""Bytes that are held before the server has to wait for somebody to take them."""


class Connection(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection: asyncio's end of it (called by the transport), and the library's (awaited).

    At most one task reads. No time limits here: silence is the adapter's business.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self._transport = cast("asyncio.Transport", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= LIMIT:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._failure = exc
        self._closed.set()
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the library's signature
        """All that has arrived, at least one byte; `b""` at the end. Raises `httpcore2.ReadError`."""
        while not self._pieces:
            if self._failure is not None:
                raise httpcore2.ReadError(str(self._failure) or type(self._failure).__name__)
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        if self._size >= LIMIT:
            self._transport.resume_reading()
        self._size = 0
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the library's signature
        """Hand `buffer` on; waits only while a large one does not leave. Raises `httpcore2.WriteError`."""
        if self._ended:
            raise httpcore2.WriteError("the connection is closed")
        self._transport.write(buffer)
        if not self._writable.is_set():
            await self._writable.wait()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> "Connection":
        """From here on encrypted. Raises `httpcore2.ConnectError`, `httpcore2.ConnectTimeout`."""
        loop, encrypted = asyncio.get_running_loop(), None
        try:
            with anyio.fail_after(timeout):
                encrypted = await loop.start_tls(self._transport, self, ssl_context, server_hostname=server_hostname)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("TLS was not agreed on in time") from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error) or type(error).__name__) from error
        finally:
            if encrypted is None:
                # asyncio has closed the transport and tells nobody
                self.connection_lost(None)
            else:
                self._transport = encrypted
        return self

    async def aclose(self) -> None:
        """Close at once, and return when that is done."""
        self._transport.abort()
        await self._closed.wait()

    def get_extra_info(self, info: str) -> Any:
        """`is_readable`: bytes or the end have come; `ssl_object`; nothing else."""
        if info == "is_readable":
            return bool(self._pieces) or self._ended
        return self._transport.get_extra_info(info)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Network(httpcore2.AsyncNetworkBackend):
    """Opens connections on the running event loop."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the library's signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the same
    ) -> Connection:
        """Raises `httpcore2.ConnectError`, `httpcore2.ConnectTimeout`."""
        try:
            with anyio.fail_after(timeout):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection, host, port, happy_eyeballs_delay=0.25
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("no connection in time") from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error) or type(error).__name__) from error
        return connection
