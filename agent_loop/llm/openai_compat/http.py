"""The HTTP transport on httpcore2, which is the transport of httpx2 (contract llm.md §5).

May not know: what is sent. Invariant: every failure of the network leaves as `LlmError` `TRANSPORT` that names the
base URL without its credentials. Imported at the first request, because the client library costs start-up time. What
the client of httpx2 adds (cookies, redirects, forms) no provider needs, and it costs each request 0.2 ms.
"""

import os
import ssl
import sys
import zlib
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Final, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.network import Network, httpcore2
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport

_CONNECT_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 120.0
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_IN_PATHS = "/%:@!$&'()*+,;=~"
_BROKEN: Final = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)


class HttpcoreTransport(HttpTransport):
    """One pool of connections for the endpoint at `base_url`.

    Proxies come from the environment (not for this machine itself), certificates from `SSL_CERT_FILE`, `SSL_CERT_DIR`
    or the system's trust store. There is no read timeout here: the adapter's watchdog covers silence.
    """

    def __init__(self, base_url: str) -> None:
        try:
            address = urlsplit(base_url)
            _ = address.port, _ascii_host(address)  # reading them is what checks them
        except ValueError as error:
            raise LlmError(
                "the provider's base URL is no valid address (https://host:port/path)", "TRANSPORT"
            ) from error
        self._shown_url = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
        try:
            # reading the trust store takes long enough to be left out where nothing is encrypted
            is_encrypted = address.scheme == "https"
            context = httpcore2.default_ssl_context() if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        except OSError as error:
            raise LlmError(
                f"cannot reach {self._shown_url}: the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be "
                f"read: {error}",
                "TRANSPORT",
            ) from error
        try:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=context,
                proxy=_proxy_for(address),
                max_connections=None,
                keepalive_expiry=_KEEP_ALIVE_SECONDS,
                network_backend=Network(),
            )
        except ValueError as error:
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
            response = await self._pool.handle_async_request(_request(method, url, headers, body))
        except _BROKEN as error:
            raise _transport_error(f"cannot reach {self._shown_url}", error) from error
        return _HttpcoreResponse(response, self._shown_url)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _HttpcoreResponse(HttpResponse):
    def __init__(self, response: httpcore2.Response, shown_url: str) -> None:
        self.status = response.status
        self.headers = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in response.headers}
        self._response = response
        self._chunks = cast("AsyncGenerator[bytes]", aiter(cast("AsyncIterable[bytes]", response.stream)))
        # it was not asked for; gzip and zlib cost nothing to understand
        packed = self.headers.get("content-encoding", "identity") != "identity"
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB).decompress if packed else None
        self._shown_url = shown_url

    async def read(self) -> bytes:
        try:
            async for chunk in self._chunks:
                data = chunk if self._unpack is None else self._unpack(chunk)
                if data:
                    return data
        except (*_BROKEN, zlib.error) as error:
            raise _transport_error(f"the connection to {self._shown_url} broke", error) from error
        return b""

    async def aclose(self) -> None:
        # the iterator first: a suspended one would be finished by the garbage collector, in no task of ours
        await self._chunks.aclose()
        await self._response.aclose()


def _request(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> httpcore2.Request:
    address = urlsplit(url)
    user, at, host = address.netloc.rpartition("@")
    name = _ascii_host(address)
    port = "" if address.port is None else f":{address.port}"
    sent = {"host": host if host.isascii() else f"{name.decode()}{port}", **headers}
    if body is not None:
        sent["content-length"] = str(len(body))
    if at:
        sent["authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    target = httpcore2.URL(scheme=address.scheme, host=name, port=address.port, target=_target(address))
    connect = {"timeout": {"connect": _CONNECT_SECONDS}}
    return httpcore2.Request(method, target, headers=list(sent.items()), content=body, extensions=connect)


def _ascii_host(address: SplitResult) -> bytes:
    """The host as names are looked up and sent. Raises `ValueError` for what is no name."""
    return (address.hostname or "").encode("idna")


def _target(address: SplitResult) -> str:
    path = quote(address.path or "/", safe=_IN_PATHS)
    return f"{path}?{quote(address.query, safe=_IN_PATHS)}" if address.query else path


def _proxy_for(address: SplitResult) -> httpcore2.Proxy | None:
    """The proxy that the environment wants for `address`. Raises `ValueError` for one of a kind that is not known."""
    host = address.hostname or ""
    named = any(name.lower().endswith("_proxy") for name in os.environ)
    if host in _LOCAL_HOSTS or not (named or sys.platform == "darwin"):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - a megabyte that most have no use for

    proxies = getproxies()
    url = proxies.get(address.scheme) or proxies.get("all")
    if not url or proxy_bypass(host):
        return None
    proxy = urlsplit(url if "://" in url else f"http://{url}")
    if proxy.scheme not in ("http", "https"):
        raise ValueError(proxy.scheme)
    auth = (unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None
    return httpcore2.Proxy(proxy._replace(netloc=proxy.netloc.rpartition("@")[2]).geturl(), auth=auth)


def _transport_error(what: str, error: Exception) -> LlmError:
    return LlmError(f"{what}: {str(error) or type(error).__name__}", "TRANSPORT")
