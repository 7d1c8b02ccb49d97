"""The HTTP transport: requests to one endpoint, over connections that are kept (contract llm.md §5).

May not know: what is sent. Invariant: every failure of the network leaves as `LlmError` `TRANSPORT` that names the
base URL without its credentials; a connection is given back only behind a whole answer, and closed otherwise. Imported
at the first request, because what it loads costs start-up time.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.connection import Connection, HttpError
from agent_loop.llm.openai_compat.route import route_to
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport

KEEP_ALIVE_SECONDS: Final = 120.0
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


class TcpTransport(HttpTransport):
    """Connections to the endpoint at `base_url`.

    For proxies and certificates see `Route`. There is no read timeout here: the adapter's watchdog covers silence.
    """

    def __init__(self, base_url: str) -> None:
        self._route = route_to(base_url)
        self._targets: dict[str, str] = {}
        self._connections: set[Connection] = set()
        # (connection, loop time at which it was given back), the last one used last
        self._idle: list[tuple[Connection, float]] = []

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        return await self._send("POST", url, {**headers, "content-length": str(len(body))}, body)

    async def get(self, url: str, *, headers: Mapping[str, str]) -> HttpResponse:
        return await self._send("GET", url, headers, b"")

    async def aclose(self) -> None:
        self._idle.clear()
        for connection in tuple(self._connections):
            await self._drop(connection)

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        request = self._head(method, url, headers) + body
        try:
            connection = await self._free_connection()
            try:
                await connection.request(request)
            except BaseException:
                # cancelled as well: an answer that nobody waits for must meet no later request
                with anyio.CancelScope(shield=True):
                    await self._drop(connection)
                raise
        except HttpError as error:
            raise LlmError(f"cannot reach {self._route.shown}: {error.message}", "TRANSPORT") from error
        return _Response(connection, self._route.shown, keep=self._keep, drop=self._drop)

    def _head(self, method: str, url: str, headers: Mapping[str, str]) -> bytes:
        route = self._route
        if url not in self._targets:
            self._targets[url] = route.target(url)
        sent = {"host": route.authority, **headers}
        if route.authorization:
            sent["authorization"] = route.authorization
        if route.proxy and route.proxy.authorization and route.forwarded:
            sent["proxy-authorization"] = route.proxy.authorization
        lines = [f"{method} {self._targets[url]} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        if not all(line.isascii() and line.isprintable() for line in lines):
            raise LlmError(f"cannot reach {route.shown}: a header holds a character that none may", "INVALID_REQUEST")
        return "\r\n".join([*lines, "", ""]).encode()

    async def _free_connection(self) -> Connection:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, since = self._idle.pop()
            if connection.reusable and now - since < KEEP_ALIVE_SECONDS:
                return connection
            await self._drop(connection)
        connection = await self._route.connect()
        self._connections.add(connection)
        return connection

    def _keep(self, connection: Connection) -> None:
        self._idle.append((connection, asyncio.get_running_loop().time()))

    async def _drop(self, connection: Connection) -> None:
        self._connections.discard(connection)
        await connection.aclose()


class _Response(HttpResponse):
    def __init__(
        self,
        connection: Connection,
        shown_url: str,
        *,
        keep: Callable[[Connection], None],
        drop: Callable[[Connection], Awaitable[None]],
    ) -> None:
        self.status = connection.status
        self.headers = connection.headers
        # it was not asked for; gzip and zlib cost nothing to understand
        packed = self.headers.get("content-encoding", "identity") != "identity"
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB).decompress if packed else None
        self._connection = connection
        self._shown_url = shown_url
        self._keep = keep
        self._drop = drop
        self._is_open = True

    async def read(self) -> bytes:
        try:
            while data := await self._connection.read():
                if self._unpack is not None:
                    data = self._unpack(data)
                if data:
                    return data
        except (HttpError, zlib.error) as error:
            raise LlmError(f"the connection to {self._shown_url} broke: {error}", "TRANSPORT") from error
        return b""

    @property
    def ended(self) -> bool:
        return self._connection.ended

    def interrupt(self) -> None:
        self._connection.give_up()

    def give_back(self) -> bool:
        if self._is_open and self._connection.reusable:
            self._is_open = False
            self._keep(self._connection)
        return not self._is_open

    async def aclose(self) -> None:
        if not self.give_back():
            self._is_open = False
            await self._drop(self._connection)
