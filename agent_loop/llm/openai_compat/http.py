"""The HTTP transport on httpx2: the only module that imports it (contract llm.md §5).

May not know: what is sent. Invariant: every failure of the network leaves as `LlmError` `TRANSPORT` that names the
base URL without its credentials. Imported at the first request, because the client library costs start-up time.
"""

import ssl
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport

# the client library loads trio wherever that is installed: 4 MiB and 40 ms for an event loop that is not ours
_loaded: dict[str, Any] = {name: module for name, module in sys.modules.items() if name == "trio"}
_hidden: Any = None
sys.modules["trio"] = _hidden
import httpcore2  # noqa: E402, F401 # pyright: ignore[reportUnusedImport] - httpx2 loads it with the first client
import httpx2  # noqa: E402 - as that must come behind the line above

del sys.modules["trio"]
sys.modules.update(_loaded)

_CONNECT_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 120.0
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class HttpxTransport(HttpTransport):
    """One client, and with it one pool of connections, for the endpoint at `base_url`.

    Proxies come from the environment (not for this machine itself), certificates from `SSL_CERT_FILE`, `SSL_CERT_DIR`
    or the system's trust store. There is no read timeout here: the adapter's watchdog covers silence.
    """

    def __init__(self, base_url: str) -> None:
        try:
            address = urlsplit(base_url)
            _ = address.port  # reading it is what checks it
        except ValueError as error:
            raise LlmError(
                "the provider's base URL is no valid address (https://host:port/path)", "TRANSPORT"
            ) from error
        self._shown_url = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
        try:
            # reading the trust store takes long enough to be left out where nothing is encrypted
            is_encrypted = address.scheme == "https"
            verify = httpx2.create_ssl_context() if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        except OSError as error:
            raise LlmError(
                f"cannot reach {self._shown_url}: the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be "
                f"read: {error}",
                "TRANSPORT",
            ) from error
        try:
            self._client = httpx2.AsyncClient(
                verify=verify,
                trust_env=(address.hostname or "") not in _LOCAL_HOSTS,
                timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEP_ALIVE_SECONDS),
            )
        except (ValueError, ImportError) as error:
            raise LlmError(
                f"cannot reach {self._shown_url}: the proxy named by HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not an "
                "http:// or https:// address",
                "TRANSPORT",
            ) from error

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        return await self._send("POST", url, headers, body)

    async def get(self, url: str, *, headers: Mapping[str, str]) -> HttpResponse:
        return await self._send("GET", url, headers, None)

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        try:
            request = self._client.build_request(method, url, headers=dict(headers), content=body)
            response = await self._client.send(request, stream=True)
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise _transport_error(f"cannot reach {self._shown_url}", error) from error
        return _HttpxResponse(response, self._shown_url)

    async def aclose(self) -> None:
        await self._client.aclose()


class _HttpxResponse(HttpResponse):
    def __init__(self, response: httpx2.Response, shown_url: str) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self._response = response
        # the stream itself: what stands between it and `aiter_bytes` costs as much as the parsing of a small chunk
        plain = "content-encoding" not in response.headers
        self._chunks = _stream_of(response) if plain else response.aiter_bytes()
        self._shown_url = shown_url

    async def read(self) -> bytes:
        try:
            return await anext(self._chunks, b"")
        except httpx2.RequestError as error:
            raise _transport_error(f"the connection to {self._shown_url} broke", error) from error

    async def aclose(self) -> None:
        # the iterator first: a suspended one would be finished by the garbage collector, in no task of ours
        await self._chunks.aclose()
        await self._response.aclose()


async def _stream_of(response: httpx2.Response) -> AsyncGenerator[bytes]:
    async for chunk in cast("httpx2.AsyncByteStream", response.stream):
        yield chunk


def _transport_error(what: str, error: Exception) -> LlmError:
    return LlmError(f"{what}: {str(error) or type(error).__name__}", "TRANSPORT")
