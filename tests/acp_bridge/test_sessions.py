"""session/new, session/load, session/set_mode, through the wire."""

from contextlib import asynccontextmanager
from functools import partial

import pytest

from acp_bridge.first_session import OpenedSession
from acp_bridge.methods.v1.sessions import adopt
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.tools.files.read import ReadTool
from agent_loop.vocabulary import text_block
from tests.support.agent_world import PLUGIN
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_tool import ScriptedTool


async def test_a_new_session_comes_with_modes_and_then_its_commands(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        result = await world.call("session/new", cwd=str(tmp_path), mcpServers=[])
        assert world.updates == [], "no update may precede the response"
        commands = await world.update("available_commands_update")
    assert result["modes"]["currentModeId"] == "ask"
    assert [mode["id"] for mode in result["modes"]["availableModes"]] == ["read-only", "ask", "auto-edit", "full"]
    assert [command["name"] for command in commands["availableCommands"]] == [
        "help",
        "status",
        "title",
        "compact",
        "permissions",
        "loop",
        "model",
        "mode",
        "thinking",
        "export",
    ]


@pytest.mark.parametrize("cwd", ["", "x", "./x", "/no/such/directory"])
async def test_a_directory_that_is_none_is_refused(tmp_path, cwd):
    async with bridge_world(cwd=tmp_path) as world:
        error = await world.error("session/new", cwd=cwd, mcpServers=[])
    assert error["code"] == -32602
    assert "cwd" in error["message"]


async def test_null_lists_read_as_empty(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        await world.call("session/new", cwd=str(tmp_path), mcpServers=None, additionalDirectories=None)


@pytest.mark.parametrize("further", [["lib"], ["/no/such/directory"], [7], "/tmp"])
async def test_a_further_directory_that_is_none_is_refused(tmp_path, further):
    async with bridge_world(cwd=tmp_path) as world:
        session = await world.new_session()
        for method, more in (("session/new", {}), ("session/load", {"sessionId": session})):
            params = {"cwd": str(tmp_path), "mcpServers": [], "additionalDirectories": further, **more}
            error = await world.error(method, **params)
            assert error["code"] == -32602
            assert "additionalDirectories" in error["message"]


async def test_further_directories_belong_to_the_workspace_as_long_as_they_are_named(tmp_path):
    work, lib = tmp_path / "work", tmp_path / "lib"
    work.mkdir()
    lib.mkdir()
    (lib / "a").write_text("of the library")
    read = calls(("c1", "read", {"file_path": str(lib / "a")}))
    async with bridge_world(read, says("1"), says("2"), cwd=work) as world:
        world.agents.tools.register(ReadTool())
        session = await world.new_session(additionalDirectories=[str(lib), str(work)])
        await world.prompt(session)
        closed = [update for _, update in world.updates if update["sessionUpdate"] == "tool_call_update"]
        assert "of the library" in closed[0]["content"][0]["content"]["text"]
        told = f"These directories belong to the workspace, too:\n- {lib}"
        assert told in (world.agents.adapter.requests[0].system or "")
        await world.call("session/resume", sessionId=session, cwd=str(work))
        await world.prompt(session)
        assert str(lib) not in (world.agents.adapter.requests[-1].system or "")
        assert world.bridge.session(session).agent.roots == (str(work),)


async def test_a_session_that_the_light_path_has_opened_has_its_further_directories(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        params = {"cwd": str(tmp_path), "additionalDirectories": ["/dev"]}
        adopt(world.connection, OpenedSession("known-already", params))
        await world.update("available_commands_update")
        assert world.bridge.session("known-already").agent.roots == (str(tmp_path), "/dev")


async def test_mcp_servers_that_cannot_be_used_never_fail_a_session_and_are_named_once(tmp_path):
    async with bridge_world(fallback=says("hi"), cwd=tmp_path) as world:
        session = await world.new_session(mcpServers=[{"name": "files"}, 7, {"type": "http", "url": "ftp://x"}])
        await world.prompt(session)
        first = world.text()
        await world.prompt(session)
    assert first.startswith("MCP servers are not available: files, number 2, number 3\nfiles: its entry cannot be used")
    assert world.text().count("MCP servers") == 1


async def test_a_client_that_shows_notices_gets_a_notice(tmp_path):
    async with bridge_world(says("hi"), cwd=tmp_path, capabilities={"session": {"notices": {}}}) as world:
        session = await world.new_session(mcpServers=[{"name": "files"}])
        await world.prompt(session)
    notices = [update for _id, update in world.updates if update["sessionUpdate"] == "notice"]
    assert [notice["severity"] for notice in notices] == ["warning"]


async def test_a_stored_session_is_shown_whole_before_the_answer(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with bridge_world(
        calls(("c1", "echo", {"value": "x"})), says("done"), cwd=tmp_path, mode="full", store=store
    ) as world:
        world.agents.tools.register(ScriptedTool())
        session = await world.new_session()
        await world.prompt(session, "go")
    async with bridge_world(says("again"), cwd=tmp_path, store=store) as world:
        world.agents.tools.register(ScriptedTool())
        result = await world.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        shown = world.kinds()
        await world.update("available_commands_update")
        assert (await world.prompt(session))["stopReason"] == "end_turn"
    assert result["modes"]["currentModeId"] == "ask"
    assert shown == [
        "user_message_chunk",
        "session_info_update",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert len(world.agents.adapter.requests[0].messages) == 5


async def test_the_mode_of_a_stored_session_comes_back(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with bridge_world(says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.call("session/set_mode", sessionId=session, modeId="full")
        await world.prompt(session)
    async with bridge_world(cwd=tmp_path, store=store) as world:
        result = await world.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
    assert result["modes"]["currentModeId"] == "full"


async def test_an_unknown_session_is_not_found_by_its_id(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        error = await world.error("session/load", sessionId="../x", cwd=str(tmp_path), mcpServers=[])
    assert (error["code"], error["data"]["sessionId"]) == (-32002, "../x")


async def test_a_session_of_another_directory_is_not_opened(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    (tmp_path / "other").mkdir()
    async with bridge_world(says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.prompt(session)
    async with bridge_world(cwd=tmp_path, store=store) as world:
        error = await world.error("session/load", sessionId=session, cwd=str(tmp_path / "other"), mcpServers=[])
        relative = await world.error("session/load", sessionId=session, cwd="x", mcpServers=[])
    assert (error["code"], error["data"]["reason"], error["data"]["sessionId"]) == (-32603, "mismatch", session)
    assert relative["code"] == -32602


async def test_loading_a_live_session_shows_it_again_and_does_not_disturb_its_turn(tmp_path):
    gate = Gate()
    answer = says("the answer")
    async with bridge_world([*answer[:2], gate, *answer[2:]], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session, "go")
        await world.update("agent_message_chunk")
        world.updates.clear()
        await world.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert world.kinds() == ["user_message_chunk", "session_info_update", "agent_message_chunk"]
        gate.open()
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert world.text() == "the answer"


@asynccontextmanager
async def showing(cwd, *rest):
    """A long transcript is being shown while the second prompt's answer waits: its gate, and `rest` behind that."""
    gate = Gate()
    async with bridge_world(says("one"), [gate, *rest], cwd=cwd, high_water=1) as world:
        session = await world.new_session()
        await world.prompt(session, "x" * 200_000)
        prompt = await world.send_prompt(session, "two")
        await gate.reached.wait()
        world.updates.clear()
        load = await world.send("session/load", sessionId=session, cwd=str(cwd), mcpServers=[])
        while not world.client.peer.congested:
            await world.agents.runtime.sleep(0)
        yield world, gate, session, prompt, load


async def test_what_happens_while_a_transcript_is_shown_follows_it(tmp_path):
    async with showing(tmp_path, *says("the answer")) as (world, gate, session, prompt, load):
        world.bridge.present(session).agent.session.append("mode/change", {"modeId": "full"})
        gate.open()
        answers = [await world.until(lambda frame: "method" not in frame) for _ in range(2)]
        assert {frame["id"] for frame in answers} == {prompt, load}
        shown = [kind for kind in world.kinds() if kind != "available_commands_update"]
    user, said = "user_message_chunk", "agent_message_chunk"
    assert shown == [user, "session_info_update", said, user, "current_mode_update", "config_option_update", said]


async def test_a_prompt_that_ends_while_a_transcript_is_shown_is_answered_behind_it_and_a_close_waits(tmp_path):
    async with showing(tmp_path) as (world, _, session, prompt, load):
        agent = world.bridge.present(session).agent
        closing = await world.send("session/close", sessionId=session)
        await agent.when_idle()
        assert (await world.until(lambda frame: "method" not in frame))["id"] == prompt
        assert world.text("user_message_chunk").endswith("two"), "all that was to be shown was"
        assert [(await world.until(lambda frame: "method" not in frame))["id"] for _ in range(2)] == [load, closing]


async def test_two_loads_at_once_open_the_session_once(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with bridge_world(says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.prompt(session)
    async with bridge_world(says("y"), cwd=tmp_path, store=store) as world:
        load = {"method": "session/load", "params": {"sessionId": session, "cwd": str(tmp_path)}}
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go on"}]}
        await world.send_frames(
            {"id": "a", **load}, {"id": "b", **load}, {"id": "c", "method": "session/prompt", "params": prompt}
        )
        answers = [await world.until(lambda frame: "method" not in frame) for _ in range(3)]
    assert {frame["id"] for frame in answers} == {"a", "b", "c"}
    assert all("result" in frame for frame in answers)


async def test_the_mode_can_change_at_any_time(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        assert await world.call("session/set_mode", sessionId=session, modeId="full") == {}
        assert world.kinds()[-2:] == ["current_mode_update", "config_option_update"]
        assert (
            world.updates[-2][1]["currentModeId"] == world.updates[-1][1]["configOptions"][0]["currentValue"] == "full"
        )
        prompt = await world.send_prompt(session)
        await world.call("session/set_mode", sessionId=session, modeId="ask")
        await world.notify("session/cancel", sessionId=session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"


async def test_an_unknown_mode_or_session_is_refused(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        session = await world.new_session()
        bad_mode = await world.error("session/set_mode", sessionId=session, modeId="root")
        bad_session = await world.error("session/set_mode", sessionId="nope", modeId="full")
    assert bad_mode["code"] == -32602
    assert (bad_session["code"], bad_session["data"]["sessionId"]) == (-32002, "nope")


async def test_what_a_plugin_sends_is_shown_live(tmp_path):
    async with bridge_world(says("tick"), cwd=tmp_path) as world:
        session = await world.new_session()
        agent = world.bridge.present(session).agent
        agent.followup(world.agents.message("check the build", PLUGIN))
        await agent.when_idle()
        shown = await world.update("user_message_chunk")
        assert shown["content"] == text_block("check the build")


async def test_a_notice_that_nobody_read_goes_with_its_session(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        session = await world.new_session()
        agent = world.bridge.present(session).agent
        agent.inject(world.agents.message("a command has ended", PLUGIN))
        world.client.close_input()
        await world.client.served.wait()
        assert agent.pending == ()


async def test_a_write_failure_of_a_session_that_is_not_shown_concerns_nobody(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        session = world.agents.sessions.create(cwd=str(tmp_path))
        world.agents.hooks.emit("session/write-failed", session, OSError())
        assert world.agents.errors == []
