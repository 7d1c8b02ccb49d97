"""The connection to a server at an address: streamable HTTP, and the older server-sent events.

May not know: sessions, tools. Invariant: no proxy stands between us and this machine itself; a secret of the address or
the headers is in no message of ours; silence is no failure, since each call has a limit of its own.
"""

import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from agent_loop.mcp.seam import RemoteServer, Streams

_CONNECT_SECONDS = 30.0
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Address:
    """How `server` is reached."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server
        self._refusal: int | None = None

    def explained(self, problem: str) -> str:
        """`problem`, with the last HTTP status that refused something."""
        if self._refusal is None:
            return problem
        fix = "; give the headers that it wants" if self._refusal in (401, 403) else ""
        return f"HTTP {self._refusal}{fix} ({problem})"

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Streams]:
        """The message streams of the `mcp` package."""
        make = partial(self._client, await self._certificates())
        async with AsyncExitStack() as stack:
            if self._server.kind == "sse":
                headers = dict(self._server.headers)
                transport = sse_client(self._server.url, headers=headers, httpx_client_factory=make)
            else:
                client = await stack.enter_async_context(make(headers=dict(self._server.headers)))
                transport = streamable_http_client(self._server.url, http_client=client)
            yield await stack.enter_async_context(transport)

    async def _certificates(self) -> ssl.SSLContext:
        if urlsplit(self._server.url).scheme == "https":
            # reading the system's store takes long enough to leave the loop for it
            return await anyio.to_thread.run_sync(httpx2.create_ssl_context)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def _client(
        self,
        verify: ssl.SSLContext,
        headers: dict[str, str] | None = None,
        timeout: Any = None,  # noqa: ARG002 - theirs ends a connection that has nothing to say
        auth: Any = None,  # noqa: ARG002 - what the client of the editor gave is in the headers
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=headers,
            verify=verify,
            trust_env=(urlsplit(self._server.url).hostname or "") not in _LOCAL_HOSTS,
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            event_hooks={"response": [self._note]},
        )

    async def _note(self, response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.status_code != 405:  # 405: it offers no stream of its own
            self._refusal = response.status_code
