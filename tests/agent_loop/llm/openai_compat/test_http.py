"""The HTTP transport: proxies, certificates, and when it is loaded (contract llm.md §5)."""

import asyncio
import gzip
import subprocess
import sys
import zlib
from contextlib import asynccontextmanager

import pytest

from acp_bridge.testing.model_server import model_server
from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.http import HttpcoreTransport

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
        assert await post(HttpcoreTransport("http://model.invalid/v1"), url) == (200, b"through the proxy")
    assert proxy.requests[0].path == url


async def test_this_machine_is_never_reached_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    monkeypatch.setenv("ALL_PROXY", "socks://proxy.invalid:1")
    async with model_server([{"body": "direct"}]) as server:
        transport = HttpcoreTransport(server.base_url)
        assert await post(transport, server.base_url + "/chat/completions") == (200, b"direct")


@pytest.mark.parametrize("proxy", ["socks://user:secret@proxy.invalid:1", "socks5://proxy.invalid:1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(LlmError, match=r"cannot reach https://model\.invalid: the proxy named by HTTP_PROXY") as caught:
        HttpcoreTransport("https://model.invalid")
    assert caught.value.code == "TRANSPORT"
    assert "secret" not in caught.value.message


async def test_an_endpoint_that_does_not_speak_tls_is_a_transport_error():
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = HttpcoreTransport(address)
        with pytest.raises(LlmError, match=f"cannot reach {address}: ") as caught:
            await post(transport, address)
        await transport.aclose()
    assert caught.value.code == "TRANSPORT"


def test_a_certificate_file_of_the_environment_is_read(monkeypatch, tmp_path):
    file = tmp_path / "company-ca.pem"
    file.write_text("not a certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(LlmError, match="SSL_CERT_FILE") as caught:
        HttpcoreTransport("https://model.invalid")
    assert caught.value.code == "TRANSPORT"


def test_the_http_stack_is_not_loaded_with_the_adapter():
    code = "import sys, agent_loop.llm.openai_compat.adapter; sys.exit('httpcore2' in sys.modules)"
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
        assert await post(HttpcoreTransport(address), address) == (200, b"x")
        bare = f"http://127.0.0.1:{port}"
        assert await post(HttpcoreTransport(bare), bare) == (200, b"x")
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
            assert await post(HttpcoreTransport(address), address) == (200, b"x")
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
        HttpcoreTransport(address)
    assert caught.value.code == "TRANSPORT"


@pytest.mark.parametrize(("name", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
async def test_a_body_that_was_compressed_all_the_same_is_understood(name, pack):
    packed = pack(b"hello")
    # in two chunks, of the first of which nothing can be told yet
    chunks = b"1\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (packed[:1], len(packed) - 1, packed[1:])
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: " + name + b"\r\n\r\n"
    async with raw_server(head + chunks) as (port, _):
        address = f"http://127.0.0.1:{port}"
        assert await post(HttpcoreTransport(address), address) == (200, b"hello")


async def test_a_body_that_cannot_be_unpacked_is_a_transport_error():
    async with raw_server(plain(b"hello", b"content-encoding: br")) as (port, _):
        address = f"http://127.0.0.1:{port}"
        transport = HttpcoreTransport(address)
        with pytest.raises(LlmError, match=f"the connection to {address} broke: ") as caught:
            await post(transport, address)
        await transport.aclose()
    assert caught.value.code == "TRANSPORT"


async def test_a_proxy_gets_its_own_name_and_password_and_no_proxy_is_respected(monkeypatch):
    async with raw_server(plain(b"proxied")) as (port, heads):
        monkeypatch.setenv("ALL_PROXY", f"me:secret@127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "elsewhere.invalid")
        address = "http://model.invalid/v1"
        assert await post(HttpcoreTransport(address), address) == (200, b"proxied")
        transport = HttpcoreTransport("http://elsewhere.invalid")
        with pytest.raises(LlmError, match=r"cannot reach http://elsewhere\.invalid"):
            await post(transport, "http://elsewhere.invalid/v1")
        await transport.aclose()
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0" in heads[0]
    assert len(heads) == 1
