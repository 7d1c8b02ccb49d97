"""The HTTP transport: proxies, certificates, and when it is loaded (contract llm.md §5)."""

import asyncio
import subprocess
import sys

import pytest

from acp_bridge.testing.model_server import model_server
from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.http import HttpxTransport

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
        assert await post(HttpxTransport("http://model.invalid/v1"), url) == (200, b"through the proxy")
    assert proxy.requests[0].path == url


async def test_this_machine_is_never_reached_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    monkeypatch.setenv("ALL_PROXY", "socks://proxy.invalid:1")
    async with model_server([{"body": "direct"}]) as server:
        transport = HttpxTransport(server.base_url)
        assert await post(transport, server.base_url + "/chat/completions") == (200, b"direct")


@pytest.mark.parametrize("proxy", ["socks://user:secret@proxy.invalid:1", "socks5://proxy.invalid:1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(LlmError, match=r"cannot reach https://model\.invalid: the proxy named by HTTP_PROXY") as caught:
        HttpxTransport("https://model.invalid")
    assert caught.value.code == "TRANSPORT"
    assert "secret" not in caught.value.message


async def test_an_endpoint_that_does_not_speak_tls_is_a_transport_error():
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = HttpxTransport(address)
        with pytest.raises(LlmError, match=f"cannot reach {address}: ") as caught:
            await post(transport, address)
        await transport.aclose()
    assert caught.value.code == "TRANSPORT"


def test_a_certificate_file_of_the_environment_is_read(monkeypatch, tmp_path):
    file = tmp_path / "company-ca.pem"
    file.write_text("not a certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(LlmError, match="SSL_CERT_FILE") as caught:
        HttpxTransport("https://model.invalid")
    assert caught.value.code == "TRANSPORT"


def test_the_http_stack_is_not_loaded_with_the_adapter():
    code = "import sys, agent_loop.llm.openai_compat.adapter; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
