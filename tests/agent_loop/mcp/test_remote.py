"""MCP servers at an address."""

import pytest

from agent_loop.mcp.host import learn_secrets
from agent_loop.mcp.seam import Refused, RemoteServer
from bash_exec.secrets import SecretRegistry
from tests.support.mcp_http import site
from tests.support.mcp_world import mcp_world

HEADERS = {"Authorization": "Bearer token-4711-token"}


@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_a_server_at_an_address_is_used_with_the_headers_that_it_wants(tmp_path, kind, path):
    async with site() as place, mcp_world(tmp_path) as world:
        await world.open(RemoteServer("web", kind, place.url + path, HEADERS))
        assert await world.text("web__say", a=1) == '{"a": 1}'
        await world.host.release(world.agent.id)
        assert {headers.get("authorization") for _method, _path, headers in place.requests} == {
            HEADERS["Authorization"]
        }
        assert ("DELETE" in place.methods()) == (kind == "http"), "a session there is ended"


async def test_a_server_that_refuses_us_is_named_with_the_fix(tmp_path):
    async with site() as place, mcp_world(tmp_path) as world:
        place.status = 401
        await world.open(RemoteServer("web", "http", place.url, HEADERS))
        place.status = 500
        await world.agents.prompt(world.agent)
        await world.host.release(world.agent.id)
        world.host.open(world.agent, [RemoteServer("web", "http", place.url)])
        await world.agents.prompt(world.agent)
    first, second = world.notices()
    assert "web: HTTP 401; give the headers that it wants (" in first
    assert "web: HTTP 500 (" in second


async def test_an_address_where_nobody_is_and_one_that_is_none_are_named(tmp_path):
    bad = (RemoteServer("nobody", "http", "http://127.0.0.1:9/mcp"), RemoteServer("tls", "sse", "https://127.0.0.1:9/"))
    async with mcp_world(tmp_path) as world:
        await world.open(*bad)
    (notice,) = world.notices()
    assert "nobody: it could not be reached (ConnectError)" in notice
    assert "tls: it could not be reached (ConnectError)" in notice


async def test_a_server_that_hangs_up_is_named_once(tmp_path):
    async with site() as place, mcp_world(tmp_path) as world:
        await world.open(RemoteServer("web", "sse", place.url + "/sse"))
        place.streams[0].close()
        assert "the MCP server web" in await world.text("web__say")
        while not world.notices():
            await world.agents.prompt(world.agent)
        assert "the MCP server web is gone" in await world.text("web__say")
        await world.agents.prompt(world.agent)
    assert [notice.partition("\n")[0] for notice in world.notices()] == ["MCP server is not available: web"]


def test_what_an_address_and_headers_carry_is_known_as_secret():
    secrets = SecretRegistry()
    learn_secrets(RemoteServer("w", "http", "https://me:pass-word-1@host/?key=query-4711", HEADERS), secrets)
    learn_secrets(Refused("r", "odd"), secrets)
    assert secrets.redact("pass-word-1 query-4711 token-4711-token Bearer") == (
        "[redacted:w] [redacted:key] [redacted:Authorization] Bearer"
    )
