"""The way to an endpoint: addresses, tunnels through proxies, certificates (contract llm.md §5)."""

import asyncio
import ssl
import sys
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest
import truststore

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.connection import HttpError
from agent_loop.llm.openai_compat.route import Peer, Proxy, Route, route_to, tls_context
from tests.support.loopback_tls import CERTIFICATE, server_context

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    file = tmp_path / "ca.pem"
    file.write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


@asynccontextmanager
async def listening(serve, **tls):
    """A server of this machine; gives its port."""

    handlers = []

    async def handle(reader, writer):
        handlers.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, **tls)
    async with server:
        with anyio.fail_after(20):
            yield server.sockets[0].getsockname()[1]
            # before Python 3.12 the end of a server is not that of its connections
            await asyncio.gather(*handlers, return_exceptions=True)


async def answering(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    await writer.drain()


def tunnelling(port, heads):
    """A proxy that leads every tunnel to `port` of this machine."""

    async def serve(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pump(source, drain):
            while data := await source.read(65536):
                drain.write(data)
            drain.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pump, reader, inner_writer)
            tasks.start_soon(pump, inner_reader, writer)

    return serve


async def ask(route):
    connection = await route.connect()
    await connection.request(REQUEST)
    data = await connection.read()
    await connection.aclose()
    return connection.status, data


async def test_what_is_encrypted_is_asked_and_answered_like_everything_else():
    async with listening(answering, ssl=server_context()) as port:
        assert await ask(route_to(f"https://localhost:{port}/v1")) == (200, b"ok")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_an_encrypted_endpoint_is_reached_through_a_tunnel(encrypted):
    heads = []
    async with (
        listening(answering, ssl=server_context()) as inner,
        listening(tunnelling(inner, heads), ssl=server_context() if encrypted else None) as port,
    ):
        proxy = Proxy(Peer("localhost", port, tls_context() if encrypted else None), "Basic bWU=")
        route = Route("shown", "localhost", None, Peer("localhost", inner, tls_context()), proxy)
        assert not route.forwarded
        assert await ask(route) == (200, b"ok")
        with pytest.raises(HttpError, match="certificate"):
            await ask(replace(route, peer=Peer("::2", 443, tls_context()), proxy=replace(proxy, authorization=None)))
    assert [head.split("\r\n")[:3] for head in heads] == [
        [f"CONNECT localhost:{inner} HTTP/1.1", f"host: localhost:{inner}", "proxy-authorization: Basic bWU="],
        ["CONNECT [::2]:443 HTTP/1.1", "host: [::2]:443", ""],
    ]


async def test_the_proxy_of_the_environment_is_asked_for_a_tunnel_and_may_refuse_it(monkeypatch):
    heads = []

    async def serve(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with listening(serve, ssl=server_context()) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"https://me:p%40ss@localhost:{port}")
        route = route_to("https://model.invalid/v1")
        with pytest.raises(HttpError, match="the proxy answered with status 407"):
            await route.connect()
    assert "proxy-authorization: Basic bWU6cEBzcw==" in heads[0]


async def test_nobody_who_listens_and_a_time_that_is_up_are_told_apart():
    async def silent(reader, _writer):
        await reader.read()

    async with listening(silent) as port:
        with pytest.raises(HttpError, match="no connection in time"):
            await route_to(f"https://127.0.0.1:{port}").connect(seconds=0.01)
    with pytest.raises(HttpError, match=r"(?i)refused|connect"):
        await route_to(f"https://127.0.0.1:{port}").connect()


async def test_a_certificate_that_is_not_trusted_ends_the_connection(monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    async with listening(answering, ssl=server_context()) as port:
        with pytest.raises(HttpError, match="certificate"):
            await route_to(f"https://localhost:{port}").connect()


def test_certificates_come_from_the_system_and_where_there_are_none_from_its_own_store(monkeypatch, tmp_path):
    assert tls_context().get_ca_certs()
    monkeypatch.delenv("SSL_CERT_FILE")
    assert type(tls_context()) is ssl.SSLContext
    monkeypatch.setattr(sys, "platform", "darwin")
    assert type(tls_context()) is truststore.SSLContext


@pytest.mark.parametrize("address", ["ftp://127.0.0.1", "nonsense", "https:///v1", "localhost:8080/v1"])
def test_what_is_no_address_of_the_web_is_named(address):
    with pytest.raises(LlmError, match=f"cannot reach {address}: it is not an http:// or https:// address") as caught:
        route_to(address)
    assert caught.value.code == "TRANSPORT"
