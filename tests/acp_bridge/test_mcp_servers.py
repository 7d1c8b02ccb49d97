"""MCP servers as a client names them."""

import sys
from functools import partial

import pytest

from acp_bridge.methods.v1.mcp_servers import server_entries
from agent_loop.mcp.seam import Refused, RemoteServer, StdioServer
from agent_loop.session.jsonl import JsonlSessionStore
from tests.support import mcp_server
from tests.support.bridge_world import bridge_world
from tests.support.mcp_server import PIXEL
from tests.support.processes import all_ended, numbers
from tests.support.scripted_adapter import calls, says


def echo(name="s", *arguments):
    return {"name": name, "command": sys.executable, "args": ["-S", mcp_server.__file__, *arguments], "env": []}


@pytest.mark.parametrize(
    ("given", "entry"),
    [
        (
            {"name": "a", "command": "/a", "args": ["-x"], "env": [{"name": "K", "value": "v"}], "extra": 1},
            StdioServer("a", "/a", ("-x",), {"K": "v"}),
        ),
        ({"name": "a", "command": "a", "args": None, "env": None}, StdioServer("a", "a")),
        ({"type": "stdio", "name": "a", "command": "a", "env": {"K": "v"}}, StdioServer("a", "a", (), {"K": "v"})),
        (
            {"type": "http", "name": "w", "url": "https://h/mcp", "headers": [{"name": "X", "value": "y"}]},
            RemoteServer("w", "http", "https://h/mcp", {"X": "y"}),
        ),
        ({"type": "sse", "name": "w", "url": "http://h"}, RemoteServer("w", "sse", "http://h")),
        ({"name": "w", "url": "http://h"}, RemoteServer("w", "http", "http://h")),
    ],
)
def test_an_entry_is_read_as_it_is_meant(given, entry):
    assert server_entries([given]) == [entry]


@pytest.mark.parametrize(
    ("given", "name", "reason"),
    [
        (7, "number 1", "its entry cannot be used: command: Field required"),
        ({"name": " ", "command": ""}, "number 1", "its entry cannot be used: command"),
        ({"name": "a", "command": "a", "env": [{"name": "A=B", "value": ""}]}, "a", "its entry cannot be used: env"),
        ({"name": "a", "command": "a\0b"}, "a", "its entry cannot be used: command"),
        ({"name": "w", "type": "http", "url": "ftp://h"}, "w", "its entry cannot be used: url"),
        (
            {"name": "w", "type": "http", "url": "http://"},
            "w",
            "its entry cannot be used: url: Value error, has no host",
        ),
        ({"name": "w", "type": "http", "url": "http://["}, "w", "its entry cannot be used: url"),
        (
            {"name": "p", "type": "pigeon"},
            "p",
            "servers of the type 'pigeon' are not supported; use stdio, http or sse",
        ),
        ({"name": "p", "type": [1]}, "p", "servers of the type [1] are not supported"),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(given, name, reason):
    (refused,) = server_entries([given])
    assert isinstance(refused, Refused)
    assert refused.name == name
    assert refused.reason.startswith(reason)


async def test_a_tool_of_a_server_is_asked_for_and_its_image_is_shown(tmp_path):
    answers = (calls(("c1", "s__draw", {})), says("done"))
    async with bridge_world(*answers, cwd=tmp_path) as world:
        session = await world.new_session(mcpServers=[echo()])
        prompt = await world.send_prompt(session)
        asked = await world.request("session/request_permission")
        await world.send_frames(
            {"id": asked["id"], "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}}
        )
        await world.answer(prompt)
    (card,) = (update for _id, update in world.updates if update["sessionUpdate"] == "tool_call")
    assert (card["title"], card["kind"], card["rawInput"]) == ("s__draw", "other", {})
    (end,) = (update for _id, update in world.updates if update.get("status") == "completed")
    shown = [item["content"] for item in end["content"]]
    assert shown == [{"type": "text", "text": "a dot"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]


async def test_the_card_of_a_tool_looks_the_same_when_its_server_is_gone(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    answers = (calls(("c1", "s__say", {"text": "x"})), says("done"))
    async with bridge_world(*answers, cwd=tmp_path, store=store) as world:
        session = await world.new_session(mcpServers=[echo()])
        await world.prompt(session)
        kinds = ("tool_call", "tool_call_update")
        live = [update for _id, update in world.updates if update["sessionUpdate"] in kinds]
        await world.call("session/close", sessionId=session)
        world.updates.clear()
        await world.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert [update for _id, update in world.updates if update["sessionUpdate"] in kinds] == live
        assert len(live) == 2


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_stored_session_gets_the_servers_that_it_is_opened_with_and_closing_ends_them(tmp_path, method):
    store = partial(JsonlSessionStore, tmp_path / "root")
    answers = (says("hi"), calls(("c1", "s__pids", {})), says("done"))
    async with bridge_world(*answers, cwd=tmp_path, store=store, mode="full") as world:
        session = await world.new_session()
        await world.prompt(session)
        await world.call("session/close", sessionId=session)
        await world.call(method, sessionId=session, cwd=str(tmp_path), mcpServers=[echo()])
        await world.prompt(session)
        (end,) = (update for _id, update in world.updates if update.get("status") == "completed")
        await world.call("session/close", sessionId=session)
        await all_ended(numbers(end["content"][0]["content"]["text"]))
