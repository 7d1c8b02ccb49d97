"""The HTTP transport: proxies, certificates, and when it is loaded (contract llm.md §5)."""

import asyncio
import contextlib
import gzip
import subprocess
import sys
import zlib
from contextlib import asynccontextmanager

import anyio
import pytest

from acp_bridge.testing.model_server import model_server
from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.http import TcpTransport

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def post(transport, url):
    response = await transport.post(url, headers={}, body=b"{}")
    data = b""
    while piece := await response.read():
        data += piece
    await response.aclose()
    await response.aclose()
    await transport.aclose()
    return response.status, data


async def test_the_proxy_of_the_environment_is_used(monkeypatch):
    async with model_server([{"body": "through the proxy"}]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url)
        url = "http://model.invalid/v1/chat/completions"
        assert await post(TcpTransport("http://model.invalid/v1"), url) == (200, b"through the proxy")
    assert proxy.requests[0].path == url


async def test_this_machine_is_never_reached_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    monkeypatch.setenv("ALL_PROXY", "socks://proxy.invalid:1")
    async with model_server([{"body": "direct"}]) as server:
        transport = TcpTransport(server.base_url)
        assert await post(transport, server.base_url + "/chat/completions") == (200, b"direct")


@pytest.mark.parametrize("proxy", ["socks://user:secret@proxy.invalid:1", "socks5://proxy.invalid:1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(LlmError, match=r"cannot reach https://model\.invalid: the proxy named by HTTP_PROXY") as caught:
        TcpTransport("https://model.invalid")
    assert caught.value.code == "TRANSPORT"
    assert "secret" not in caught.value.message


async def test_an_endpoint_that_does_not_speak_tls_is_a_transport_error():
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = TcpTransport(address)
        with pytest.raises(LlmError, match=f"cannot reach {address}: ") as caught:
            await post(transport, address)
        await transport.aclose()
    assert caught.value.code == "TRANSPORT"


def test_a_certificate_file_of_the_environment_is_read(monkeypatch, tmp_path):
    file = tmp_path / "company-ca.pem"
    file.write_text("not a certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(LlmError, match="SSL_CERT_FILE") as caught:
        TcpTransport("https://model.invalid")
    assert caught.value.code == "TRANSPORT"


def test_the_http_stack_is_not_loaded_with_the_adapter():
    code = "import sys, agent_loop.llm.openai_compat.adapter; sys.exit('httptools' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@asynccontextmanager
async def raw_server(answer):
    """A server that keeps the heads of requests and answers each with `answer`; gives its port and the heads."""
    heads = []

    async def handle(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


def plain(body, *headers):
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers, b"", body])


async def test_the_address_is_kept_to_its_last_character():
    async with raw_server(plain(b"x")) as (port, heads):
        address = f"http://us%40er:p%C3%A4ss@127.0.0.1:{port}/v1/modellä/50%?api version=1"
        assert await post(TcpTransport(address), address) == (200, b"x")
        bare = f"http://127.0.0.1:{port}"
        assert await post(TcpTransport(bare), bare) == (200, b"x")
    lines = heads[0].split("\r\n")
    assert lines[0] == "POST /v1/modell%C3%A4/50%?api%20version=1 HTTP/1.1"
    assert f"host: 127.0.0.1:{port}" in lines
    assert "authorization: Basic dXNAZXI6cMOkc3M=" in lines
    assert heads[1].startswith("POST / HTTP/1.1\r\n")
    assert "authorization" not in heads[1]


async def test_a_host_with_letters_beyond_ascii_is_sent_as_it_is_looked_up(monkeypatch):
    async with raw_server(plain(b"x")) as (port, heads):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        for address in ("http://bücher.example:81/v1", "http://bücher.example/v1"):
            assert await post(TcpTransport(address), address) == (200, b"x")
    lines = [head.split("\r\n") for head in heads]
    assert [rows[0] for rows in lines] == [
        "POST http://xn--bcher-kva.example:81/v1 HTTP/1.1",
        "POST http://xn--bcher-kva.example/v1 HTTP/1.1",
    ]
    assert "host: xn--bcher-kva.example:81" in lines[0]
    assert "host: xn--bcher-kva.example" in lines[1]


@pytest.mark.parametrize("address", ["https://a..example/v1", f"https://{'a' * 64}.example/v1"])
def test_what_no_host_can_be_named_is_no_valid_address(address):
    with pytest.raises(LlmError, match=r"the provider's base URL is no valid address") as caught:
        TcpTransport(address)
    assert caught.value.code == "TRANSPORT"


@pytest.mark.parametrize(("name", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
async def test_a_body_that_was_compressed_all_the_same_is_understood(name, pack):
    packed = pack(b"hello")
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-encoding: %b\r\n\r\n" % (len(packed), name)
    async with keeping_server([head]) as (url, _):
        transport = TcpTransport(url)
        response = await transport.get(url, headers={})
        reading = asyncio.ensure_future(response.read())
        (connection,) = transport._connections
        # in two pieces, of the first of which nothing can be told yet
        for piece in (packed[:1], packed[1:]):
            connection.data_received(piece)
            await anyio.lowlevel.checkpoint()
        assert (await reading, await response.read()) == (b"hello", b"")
        await transport.aclose()


async def test_a_body_that_cannot_be_unpacked_is_a_transport_error():
    async with raw_server(plain(b"hello", b"content-encoding: br")) as (port, _):
        address = f"http://127.0.0.1:{port}"
        transport = TcpTransport(address)
        with pytest.raises(LlmError, match=f"the connection to {address} broke: ") as caught:
            await post(transport, address)
        await transport.aclose()
    assert caught.value.code == "TRANSPORT"


async def test_a_proxy_gets_its_own_name_and_password_and_no_proxy_is_respected(monkeypatch):
    async with raw_server(plain(b"proxied")) as (port, heads):
        monkeypatch.setenv("ALL_PROXY", f"me:secret@127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "elsewhere.invalid")
        address = "http://model.invalid/v1"
        assert await post(TcpTransport(address), address) == (200, b"proxied")
        transport = TcpTransport("http://elsewhere.invalid")
        with pytest.raises(LlmError, match=r"cannot reach http://elsewhere\.invalid"):
            await post(transport, "http://elsewhere.invalid/v1")
        await transport.aclose()
    assert "proxy-authorization: Basic bWU6c2VjcmV0" in heads[0]
    assert len(heads) == 1


@asynccontextmanager
async def keeping_server(answers):
    """A server that answers any request with the next of `answers`; gives its address and its connections."""
    connections = []

    async def handle(reader, writer):
        connections.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                answer = answers.pop(0)
                writer.write(answer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections
        for writer in connections:
            writer.close()


async def got(transport, url):
    response = await transport.get(url, headers={})
    data = b""
    while piece := await response.read():
        data += piece
    await response.aclose()
    return data


async def test_a_connection_serves_request_after_request_and_two_at_once_need_two():
    async with keeping_server([plain(b"1"), plain(b"2"), plain(b"3"), plain(b"4")]) as (url, connections):
        transport = TcpTransport(url)
        assert [await got(transport, url), await got(transport, url)] == [b"1", b"2"]
        assert len(connections) == 1
        open_one = await transport.get(url, headers={})
        assert await got(transport, url) == b"4"
        assert len(connections) == 2
        await open_one.aclose()
        await transport.aclose()
        await transport.aclose()


async def test_an_answer_that_was_not_read_to_its_end_ends_its_connection():
    async with keeping_server([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", plain(b"2")]) as (url, connections):
        transport = TcpTransport(url)
        response = await transport.get(url, headers={})
        assert await response.read() == b"half"
        await response.aclose()
        assert await got(transport, url) == b"2"
        assert len(connections) == 2
        await transport.aclose()


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again():
    async with keeping_server([plain(b"1"), plain(b"2")]) as (url, connections):
        transport = TcpTransport(url)
        assert await got(transport, url) == b"1"
        (kept,) = transport._connections
        connections[0].close()
        with anyio.fail_after(20):
            await kept._closed.wait()
        assert await got(transport, url) == b"2"
        await transport.aclose()


async def test_a_request_that_is_given_up_leaves_no_answer_to_the_next():
    async with keeping_server([b"", plain(b"2")]) as (url, connections):
        transport = TcpTransport(url)
        asking = asyncio.ensure_future(got(transport, url))
        with anyio.fail_after(20):
            while not connections or not transport._connections:
                await anyio.lowlevel.checkpoint()
            asking.cancel()
            await asyncio.wait([asking])
        assert await got(transport, url) == b"2"
        assert len(connections) == 2
        await transport.aclose()


async def test_a_header_that_would_end_its_line_is_refused():
    transport = TcpTransport("http://127.0.0.1:1")
    with pytest.raises(LlmError, match="a header holds a character that none may"):
        await transport.post("http://127.0.0.1:1", headers={"x": "y\r\nz: 1"}, body=b"")
