"""Loops as an editor sees them: the command, turns without a prompt, what ends them."""

from typing import Any

import anyio

from agent_loop.session.memory import MemorySessionStore
from tests.support.bridge_world import BridgeWorld, bridge_world
from tests.support.loop_world import settled
from tests.support.scripted_adapter import Gate, calls, says
from tests.support.scripted_tool import ScriptedTool

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
ECHO = ("call-1", "echo", {"value": "x"})


def heartbeats(world: BridgeWorld) -> list[str]:
    """What the client was shown of them."""
    shown = [update for _, update in world.updates if update["sessionUpdate"] == "user_message_chunk"]
    return [update["content"]["text"] for update in shown if "<heartbeat>" in update["content"]["text"]]


def requests(world: BridgeWorld) -> int:
    return len(world.agents.adapter.requests)


async def said(world: BridgeWorld, text: str) -> None:
    """Read until the agent has said `text` in one chunk."""
    while (await world.update("agent_message_chunk"))["content"]["text"] != text:
        pass


async def looping(world: BridgeWorld, line: str = "/loop 1 check the build") -> str:
    session = await world.new_session()
    assert await world.prompt(session, line) == {"stopReason": "end_turn"}
    return session


async def test_the_command_is_advertised_with_a_hint(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        await world.call("session/new", cwd=str(tmp_path), mcpServers=[])
        commands = (await world.update("available_commands_update"))["availableCommands"]
        assert next(command for command in commands if command["name"] == "loop") == {
            "name": "loop",
            "description": "Send a prompt again and again, at an interval",
            "input": {"hint": "<seconds> <prompt> | list | delete <id>"},
        }


async def test_a_heartbeat_of_an_idle_agent_is_a_turn_that_is_shown_without_a_prompt(tmp_path):
    async with bridge_world(says("all green"), cwd=tmp_path) as world:
        session = await looping(world)
        del world.updates[:]
        world.agents.runtime.advance(1000)
        await said(world, "all green")
        assert world.kinds() == ["user_message_chunk", "agent_message_chunk"]
        [shown] = heartbeats(world)
        assert shown.splitlines()[2] == "  <prompt>check the build</prompt>"
        assert session not in shown
        assert world.text().endswith("all green")
        answered = await world.prompt(session, "/loop list")
        assert answered == {"stopReason": "end_turn"}
        assert "| Loop | Every | Next | Prompt |" in world.text()
        assert "| 1 s | in 1 s | check the build |" in world.text()


async def test_while_a_turn_runs_the_heartbeat_joins_at_its_next_step(tmp_path):
    gate = Gate()
    async with bridge_world([gate, *says("first")], says("second"), cwd=tmp_path) as world:
        session = await looping(world)
        prompt = await world.send_prompt(session)
        await gate.reached.wait()
        world.agents.runtime.advance(1000)
        await settled()
        gate.open()
        assert (await world.answer(prompt))["result"] == {"stopReason": "end_turn"}
        texts = [update["content"]["text"] for _, update in world.updates if "content" in update]
        assert texts[-3] == "first"
        assert "<heartbeat>" in texts[-2]
        assert texts[-1] == "second"


async def test_a_question_in_a_turn_of_a_loop_is_answered_with_no_at_once(tmp_path):
    tool = ScriptedTool()
    async with bridge_world(calls(ECHO), says("then not"), cwd=tmp_path) as world:
        world.agents.tools.register(tool)
        await looping(world)
        world.agents.runtime.advance(1000)
        await said(world, "then not")
        updates = [update for _, update in world.updates if update.get("toolCallId") == "call-1"]
        assert [(update["sessionUpdate"], update["status"]) for update in updates] == [
            ("tool_call", "pending"),
            ("tool_call_update", "failed"),
        ]
        assert "nobody could be asked: the user has not started this turn" in str(updates[-1]["content"])
        assert world.requests == []
        assert tool.ran == []


async def test_the_editor_can_be_asked_when_that_is_configured(tmp_path):
    tool = ScriptedTool()
    async with bridge_world(calls(ECHO), says("done"), cwd=tmp_path, asks_unprompted=True) as world:
        world.agents.tools.register(tool)
        await looping(world)
        world.agents.runtime.advance(1000)
        asked = await world.request("session/request_permission")
        await world.send_frames({"id": asked["id"], "result": ALLOW})
        await said(world, "done")
        assert tool.ran == [{"value": "x"}]


async def test_such_a_question_stands_for_a_minute(tmp_path):
    tool = ScriptedTool()
    # the loop is slower than the limit
    async with bridge_world(calls(ECHO), says("gone on"), cwd=tmp_path, asks_unprompted=True) as world:
        world.agents.tools.register(tool)
        await looping(world, "/loop 3600 check")
        world.agents.runtime.advance(3_600_000)
        await world.request("session/request_permission")
        world.agents.runtime.advance(59_999)
        await settled()
        assert requests(world) == 1
        world.agents.runtime.advance(1)
        await world.until(lambda frame: frame.get("method") == "$/cancel_request")
        await said(world, "gone on")
        assert tool.ran == []


async def test_a_prompt_withdraws_such_a_question_and_is_next(tmp_path):
    tool = ScriptedTool()
    answers = calls(ECHO), says("without it"), says("your turn")
    async with bridge_world(*answers, cwd=tmp_path, asks_unprompted=True) as world:
        world.agents.tools.register(tool)
        session = await looping(world, "/loop 3600 check")
        world.agents.runtime.advance(3_600_000)
        await world.request("session/request_permission")
        assert await world.prompt(session, "me first") == {"stopReason": "end_turn"}
        assert world.text().endswith("without ityour turn")
        assert tool.ran == []


async def test_a_prompt_of_a_person_comes_before_the_heartbeats_that_wait(tmp_path):
    gate, second = Gate(), Gate()
    answers = [gate, *says("a")], [second, *says("b")], says("yours")
    async with bridge_world(*answers, fallback=says("c"), cwd=tmp_path) as world:
        session = await looping(world, "/loop 1 one")
        await world.prompt(session, "/loop 2 two")
        world.agents.runtime.advance(2000)
        await gate.reached.wait()
        await settled()
        gate.open()
        await second.reached.wait()
        world.agents.runtime.advance(2000)
        await settled()
        prompt = await world.send_prompt(session, "mine")
        while not any(message.source["kind"] == "user" for message in world.bridge.present(session).agent.pending):
            await anyio.lowlevel.checkpoint()
        second.open()
        assert (await world.answer(prompt))["result"] == {"stopReason": "end_turn"}
        assert world.text().endswith("abyours")


async def test_a_turn_of_a_loop_can_be_cancelled(tmp_path):
    gate = Gate()
    async with bridge_world([gate], says("hi"), cwd=tmp_path) as world:
        session = await looping(world, "/loop 3600 check")
        world.agents.runtime.advance(3_600_000)
        await gate.reached.wait()
        await world.notify("session/cancel", sessionId=session)
        agent = world.bridge.present(session).agent
        await agent.when_idle()
        assert world.agents.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]
        assert await world.prompt(session) == {"stopReason": "end_turn"}


async def test_a_turn_of_a_loop_that_fails_is_told(tmp_path):
    async with bridge_world([ValueError("a bug")], cwd=tmp_path) as world:
        await looping(world)
        world.agents.runtime.advance(1000)
        told = await world.until(lambda frame: "A turn without a prompt failed" in str(frame))
        assert "unexpected ValueError inside the agent" in told["params"]["update"]["content"]["text"]


async def test_a_session_that_is_closed_sends_itself_nothing_more(tmp_path):
    gate = Gate()
    async with bridge_world([gate], cwd=tmp_path) as world:
        session = await looping(world)
        world.agents.runtime.advance(1000)
        await gate.reached.wait()
        agent = world.bridge.present(session).agent
        closing = await world.send("session/close", sessionId=session)
        world.agents.runtime.advance(10_000)
        assert (await world.answer(closing))["result"] == {}
        world.agents.runtime.advance(10_000)
        await settled()
        assert requests(world) == 1
        assert world.agents.reasons(agent) == [{"kind": "aborted", "reason": "session/close"}]
        assert world.agents.runtime.sleeping == 0


async def test_a_deleted_session_has_no_loops(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        session = await looping(world)
        assert await world.call("session/delete", sessionId=session) == {}
        world.agents.runtime.advance(10_000)
        await settled()
        assert requests(world) == 0


async def test_the_loops_of_a_loaded_session_go_on_and_an_overdue_one_fires_once_behind_the_response(tmp_path):
    store = MemorySessionStore()
    answers: dict[str, Any] = {"fallback": says("looked"), "store": lambda _runtime: store}
    async with bridge_world(cwd=tmp_path, **answers) as world:
        session = await looping(world, "/loop 60 check")
        await world.call("session/close", sessionId=session)
        world.agents.runtime.advance(3_630_000)
        del world.updates[:]
        loading = await world.send("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert "result" in await world.answer(loading)
        assert heartbeats(world) == []
        await said(world, "looked")
        await settled()
        assert len(heartbeats(world)) == 1
        world.agents.runtime.advance(29_999)
        await settled()
        assert requests(world) == 1
        world.agents.runtime.advance(1)
        await said(world, "looked")
        assert len(heartbeats(world)) == 2
        live = [update for _, update in world.updates if "messageId" in update]
        agent = world.bridge.present(session).agent
        await agent.when_idle()
        del world.updates[:]
        await world.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert [update for _, update in world.updates if "messageId" in update] == live
