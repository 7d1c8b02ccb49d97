"""The way to an endpoint: its address, the proxy before it, the certificates behind it (contract llm.md §5).

May not know: requests but the one to a proxy. Invariant: proxies come from the environment (not for this machine
itself), certificates from `SSL_CERT_FILE`, `SSL_CERT_DIR` or the system's trust store; nothing is sent to a host whose
certificate was not checked.
"""

import asyncio
import os
import ssl
import sys
from base64 import b64encode
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import anyio

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.connection import Connection, HttpError

CONNECT_SECONDS: Final = 30.0
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_IN_PATHS: Final = "/%:@!$&'()*+,;=~"
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a connection is opened to: a host as names are looked up, and what to trust, None: not encrypted."""

    host: str
    port: int
    tls: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class Proxy:
    """`authorization` is the value of its header, if it wants one."""

    peer: Peer
    authorization: str | None


@dataclass(frozen=True, slots=True)
class Route:
    """To the endpoint at one base URL. `authority` is what the `host` header says; `shown` holds no credentials."""

    shown: str
    authority: str
    authorization: str | None
    peer: Peer
    proxy: Proxy | None

    @property
    def forwarded(self) -> bool:
        """Whether the proxy reads the requests, so that they name the host and the proxy's password."""
        return self.proxy is not None and self.peer.tls is None

    def target(self, url: str) -> str:
        """How a request names `url`."""
        address = urlsplit(url)
        path = quote(address.path or "/", safe=_IN_PATHS)
        target = f"{path}?{quote(address.query, safe=_IN_PATHS)}" if address.query else path
        return f"{address.scheme}://{self.authority}{target}" if self.forwarded else target

    async def connect(self, *, seconds: float = CONNECT_SECONDS) -> Connection:
        """A new connection, in at most `seconds`. Raises `HttpError`."""
        try:
            with anyio.fail_after(seconds):
                if self.proxy is None:
                    return await _open(self.peer)
                connection = await _open(self.proxy.peer)
                if self.peer.tls is None:
                    return connection
                return await self._tunnel(connection, self.proxy, self.peer.tls)
        except TimeoutError as error:
            raise HttpError("no connection in time") from error
        except OSError as error:
            raise HttpError(str(error) or type(error).__name__) from error

    async def _tunnel(self, proxied: Connection, proxy: Proxy, tls: ssl.SSLContext) -> Connection:
        host = f"[{self.peer.host}]" if ":" in self.peer.host else self.peer.host
        lines = [f"CONNECT {host}:{self.peer.port} HTTP/1.1", f"host: {host}:{self.peer.port}", "", ""]
        if proxy.authorization:
            lines.insert(2, f"proxy-authorization: {proxy.authorization}")
        connection = Connection()
        encrypted = None
        try:
            await proxied.request("\r\n".join(lines).encode())
            if not 200 <= proxied.status <= 299:
                raise HttpError(f"the proxy answered with status {proxied.status}")
            loop = asyncio.get_running_loop()
            encrypted = await loop.start_tls(proxied.transport, connection, tls, server_hostname=self.peer.host)
        except (OSError, TypeError) as error:
            # within TLS to the proxy, asyncio before 3.13 stumbles while it reports why the handshake failed
            reason = error if isinstance(error, OSError) else error.__context__
            raise HttpError(str(reason) or type(reason).__name__) from error
        finally:
            # asyncio has closed it where the handshake failed, and does not take that twice before 3.12
            if encrypted is None and not proxied.transport.is_closing():
                proxied.give_up()
        connection.connection_made(cast("asyncio.Transport", encrypted))
        return connection


async def _open(peer: Peer) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(
        Connection,
        peer.host,
        peer.port,
        ssl=peer.tls,
        server_hostname=peer.host if peer.tls else None,
        happy_eyeballs_delay=0.25,
    )
    return connection


def route_to(base_url: str) -> Route:
    """The way to `base_url`, from the environment as it is now; reads certificates. Raises `LlmError` `TRANSPORT`."""
    try:
        address = urlsplit(base_url)
        host, port = _ascii_host(address), address.port or _PORTS.get(address.scheme, 0)
    except ValueError as error:
        raise LlmError("the provider's base URL is no valid address (https://host:port/path)", "TRANSPORT") from error
    user, _, authority = address.netloc.rpartition("@")
    shown = address._replace(netloc=authority).geturl()
    if address.scheme not in _PORTS or not host:
        raise LlmError(f"cannot reach {shown}: it is not an http:// or https:// address", "TRANSPORT")
    if not authority.isascii():
        authority = host if address.port is None else f"{host}:{port}"
    try:
        # reading the trust store takes long enough to be left out where nothing is encrypted
        peer = Peer(host, port, tls_context() if address.scheme == "https" else None)
        proxy = _proxy_for(address)
    except OSError as error:
        raise LlmError(
            f"cannot reach {shown}: the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error}",
            "TRANSPORT",
        ) from error
    except (ValueError, KeyError) as error:
        raise LlmError(
            f"cannot reach {shown}: the proxy named by HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not an http:// or "
            "https:// address",
            "TRANSPORT",
        ) from error
    return Route(shown, authority, _basic(unquote(user)) if user else None, peer, proxy)


def tls_context() -> ssl.SSLContext:
    """What certificates are checked against. Raises `OSError` when a named file or directory cannot be read."""
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    paths = ssl.get_default_verify_paths()
    if sys.platform == "linux" and (paths.cafile or paths.capath):
        return ssl.create_default_context()
    # the trust store of macOS; and of a Python that looks in the wrong place
    import truststore  # noqa: PLC0415 - few need it

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _ascii_host(address: SplitResult) -> str:
    """The host as names are looked up and sent. Raises `ValueError` for what is no name."""
    host = address.hostname or ""
    if host.isascii() and all(0 < len(label) < 64 for label in host.split(".")):
        # what the codec would say, too; its tables are loaded for others
        return host
    return host.encode("idna").decode()


def _basic(credentials: str) -> str:
    return f"Basic {b64encode(credentials.encode()).decode()}"


def _proxy_for(address: SplitResult) -> Proxy | None:
    """The proxy that the environment wants for `address`. Raises `ValueError`, `KeyError` for one of no known kind."""
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
    usual_port = _PORTS[proxy.scheme]
    login = _basic(f"{unquote(proxy.username)}:{unquote(proxy.password or '')}") if proxy.username else None
    tls = tls_context() if proxy.scheme == "https" else None
    return Proxy(Peer(_ascii_host(proxy), proxy.port or usual_port, tls), login)
