"""Permission: the ask through the wire, and every answer that is not a yes."""

import anyio
import pytest

from acp_bridge.permission.ledger import Ledger
from acp_bridge.permission.policy import EditorPolicy, digest_of
from acp_bridge.permission.rule_book import RuleBook
from agent_loop.abort import AbortController
from agent_loop.tools.seam import Ask, Decision, ToolCall
from tests.support.agent_world import PLUGIN
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import HANG, calls, says
from tests.support.scripted_tool import ScriptedTool

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
CALL = calls(("c1", "echo", {"value": "x"}))


def a_book(tmp_path):
    return RuleBook(Ledger(tmp_path / "permissions"), tell=lambda *_: None)


async def ask(world, session):
    prompt = await world.send_prompt(session)
    return prompt, await world.request("session/request_permission")


async def test_an_ask_repeats_the_card_that_was_announced_before_it(tmp_path):
    async with bridge_world(CALL, says("done"), cwd=tmp_path) as world:
        tool = ScriptedTool()
        world.agents.tools.register(tool)
        session = await world.new_session()
        prompt, request = await ask(world, session)
        card = world.updates[-1][1]
        await world.send_frames({"id": request["id"], "result": ALLOW})
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"
    assert card["status"] == "pending"
    asked = request["params"]["toolCall"]
    assert {key: card[key] for key in ("toolCallId", "title", "kind", "status", "rawInput")} == {
        key: asked[key] for key in ("toolCallId", "title", "kind", "status", "rawInput")
    }
    assert request["params"]["options"] == [
        {"optionId": "allow_once", "name": "Allow this call", "kind": "allow_once"},
        {
            "optionId": "allow_always",
            "name": "Always allow every call of `echo` for this session",
            "kind": "allow_always",
        },
        {"optionId": "reject_once", "name": "Reject this call", "kind": "reject_once"},
        {
            "optionId": "reject_always",
            "name": "Never allow every call of `echo` for this session",
            "kind": "reject_always",
        },
    ]
    statuses = [update["status"] for _id, update in world.updates if update.get("toolCallId") == "c1"]
    assert statuses == ["pending", "in_progress", "completed"]
    assert tool.ran == [{"value": "x"}]


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"outcome": {"outcome": "selected", "optionId": "reject_once"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "allow_everything"}}},
        {"result": {"outcome": {"outcome": "selected"}}},
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"result": {"outcome": "allow_once"}},
        {"result": {}},
        {"result": None},
        {"error": {"code": -32601, "message": "what?"}},
    ],
)
async def test_only_the_allow_option_lets_a_call_run(tmp_path, answer):
    async with bridge_world(CALL, says("I see"), cwd=tmp_path) as world:
        tool = ScriptedTool()
        world.agents.tools.register(tool)
        session = await world.new_session()
        prompt, request = await ask(world, session)
        await world.send_frames({"id": request["id"], **answer})
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn", "a no to one call is not a cancel"
    assert tool.ran == []
    statuses = [update["status"] for _id, update in world.updates if update.get("toolCallId") == "c1"]
    assert statuses == ["pending", "failed"]
    decisions = world.agents.events[session]
    assert [event.data["outcome"] for event in decisions if event.type == "permission/decision"] == ["reject"]


async def test_an_ask_that_is_never_answered_does_not_hold_a_cancelled_prompt(tmp_path):
    async with bridge_world(CALL, says("next"), cwd=tmp_path) as world:
        tool = ScriptedTool()
        world.agents.tools.register(tool)
        session = await world.new_session()
        prompt, request = await ask(world, session)
        await world.notify("session/cancel", sessionId=session)
        withdrawn = await world.until(lambda frame: frame.get("method") == "$/cancel_request")
        assert withdrawn["params"] == {"requestId": request["id"]}
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert (await world.prompt(session))["stopReason"] == "end_turn"
        await world.send_frames({"id": request["id"], "result": ALLOW})
        await world.call("initialize", protocolVersion=1)
        assert tool.ran == []


async def test_full_access_does_not_ask(tmp_path):
    async with bridge_world(CALL, says("done"), cwd=tmp_path, mode="full") as world:
        world.agents.tools.register(ScriptedTool())
        session = await world.new_session()
        await world.prompt(session)
    assert world.requests == []


async def test_reading_does_not_ask(tmp_path):
    async with bridge_world(CALL, says("done"), cwd=tmp_path) as world:
        tool = ScriptedTool()
        tool.effect = "read"
        world.agents.tools.register(tool)
        session = await world.new_session()
        await world.prompt(session)
    assert (world.requests, tool.ran) == ([], [{"value": "x"}])


async def test_a_mode_that_would_not_ask_settles_the_open_ask(tmp_path):
    async with bridge_world(CALL, says("done"), cwd=tmp_path) as world:
        tool = ScriptedTool()
        world.agents.tools.register(tool)
        session = await world.new_session()
        prompt, _request = await ask(world, session)
        await world.send("session/set_mode", sessionId=session, modeId="ask")
        await world.send("session/set_mode", sessionId=session, modeId="full")
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"
    assert tool.ran == [{"value": "x"}]


async def test_a_turn_that_no_prompt_owns_is_refused_without_asking(tmp_path):
    async with bridge_world(CALL, says("no then"), cwd=tmp_path) as world:
        tool = ScriptedTool()
        world.agents.tools.register(tool)
        session = await world.new_session()
        agent = world.bridge.present(session).agent
        agent.followup(world.agents.message("tick", PLUGIN))
        await agent.when_idle()
        await world.call("initialize", protocolVersion=1)
        assert (world.requests, tool.ran) == ([], [])


async def test_an_unanswered_ask_of_one_session_does_not_block_another(tmp_path):
    async with bridge_world(CALL, CALL, says("done"), cwd=tmp_path) as world:
        world.agents.tools.register(ScriptedTool())
        one, two = await world.new_session(), await world.new_session()
        await ask(world, one)
        prompt, request = await ask(world, two)
        await world.send_frames({"id": request["id"], "result": ALLOW})
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"


async def test_eof_releases_an_open_ask(tmp_path):
    async with bridge_world(CALL, [HANG], cwd=tmp_path) as world:
        tool = ScriptedTool()
        world.agents.tools.register(tool)
        session = await world.new_session()
        await ask(world, session)
        world.client.close_input()
        await world.client.served.wait()
        assert tool.ran == []


async def test_an_ask_for_a_session_that_is_gone_has_no_answer(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        signal = None
        assert await world.bridge.ask("gone", ToolCall("c", "echo", {}, "{}"), [], signal) is None
        assert world.bridge.prompt_owns_turn("gone") is False


def test_a_digest_tells_arguments_and_directories_apart():
    one, two = ToolCall("a", "bash", {"x": 1, "y": 2}, ""), ToolCall("b", "bash", {"y": 2, "x": 1}, "")
    assert digest_of(one, "/p") == digest_of(two, "/p") != digest_of(one, "/q")
    assert digest_of(one, "/p") != digest_of(ToolCall("a", "bash", {"x": 1}, ""), "/p")


async def test_the_first_decision_about_an_ask_stands(tmp_path):
    asked, withdrawn = anyio.Event(), []

    async def send(_session, _call, _options, withdraw):
        asked.set()
        withdrawn.append(await withdraw.wait())

    policy = EditorPolicy(default_mode="ask", send=send, prompt_owns=lambda _: True, book=a_book(tmp_path))
    turn, call, decisions = AbortController(), ToolCall("c1", "echo", {}, "{}"), []

    async def waits():
        decisions.append(await policy.ask("s", ScriptedTool(), call, Ask("d", roots=("/p",)), turn.signal))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waits)
        await asked.wait()
        policy.set_mode("s", "full")
        turn.abort("session/cancel")
    assert (decisions, withdrawn) == ([Decision("allow", "policy")], ["policy"])
