"""A conversation that is summarised: what the client sees of it, now and on a load, and what its prompts answer."""

from dataclasses import replace

import pytest

from agent_loop.errors import LlmError
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import Gate, says

COMPACTS = {"session": {"compaction": {}}}
FULL = {"inputTokens": 900, "outputTokens": 10}
LONG = "x" * 5000
AGENT = ("agent_message_chunk", "compaction_update", "compaction_summary_chunk")


def shown(updates):
    """What the agent showed, in words."""
    return [
        update.get("status") or update["content"]["text"]
        for _session, update in updates
        if update["sessionUpdate"] in AGENT
    ]


async def loaded(world, session):
    """What a load shows, joined as it comes."""
    before = len(world.updates)
    await world.call("session/load", sessionId=session, cwd=world.cwd, mcpServers=[])
    return world.updates[before:]


async def outgrown(world):
    """What a second prompt shows once the first has filled a context that is summarised by itself."""
    session = await world.new_session()
    await world.prompt(session)
    for agent in world.agents.registry.list():
        agent.options = replace(agent.options, window=1000, compact_at=0.8)
    before = len(world.updates)
    assert await world.prompt(session, "two") == {"stopReason": "end_turn"}
    return shown(world.updates[before:])


def update(status, turn, **fields):
    return {"sessionUpdate": "compaction_update", "compactionId": f"k{turn}.1", "status": status, **fields}


async def test_a_client_that_knows_compactions_sees_the_summary_grow(tmp_path):
    split = says("SUM")
    split[1:2] = [
        {"type": "reasoning-delta", "index": 1, "text": "hm"},
        *({"type": "text-delta", "index": 0, "text": letter} for letter in "SUM"),
    ]
    async with bridge_world(says("a"), split, cwd=tmp_path, capabilities=COMPACTS) as world:
        session = await world.new_session()
        await world.prompt(session)
        assert await world.prompt(session, "/compact") == {"stopReason": "end_turn"}
        assert shown(world.updates) == [
            "a",
            "in_progress",
            "S",
            "U",
            "M",
            "completed",
            "The conversation so far was summarised; the model goes on from the summary.",
        ]
        replayed = await loaded(world, session)
        assert shown(replayed)[1:4] == ["in_progress", "SUM", "completed"]
        assert [each for _id, each in replayed if each["sessionUpdate"] == "user_message_chunk"][1]["content"] == {
            "type": "text",
            "text": "/compact",
        }
        assert "usage_update" not in [each["sessionUpdate"] for _id, each in replayed], "how full it is, nobody knows"


async def test_every_other_client_sees_a_line(tmp_path):
    async with bridge_world(says("a"), says("SUM"), cwd=tmp_path) as world:
        session = await world.new_session()
        await world.prompt(session)
        await world.prompt(session, "/compact")
        live = shown(world.updates)
        assert live[1] == "Summarising the conversation so far, to make room…\n"
        assert "SUM" not in live
        assert shown(await loaded(world, session)) == live


async def test_a_summary_that_nobody_asked_for_comes_before_the_prompt_is_answered(tmp_path):
    answers = says(LONG, usage=FULL), says("SUM", usage=FULL), says("b", usage=FULL)
    async with bridge_world(*answers, cwd=tmp_path, capabilities=COMPACTS) as world:
        assert await outgrown(world) == ["in_progress", "SUM", "completed", "b"]
        sizes = [each for _id, each in world.updates if each["sessionUpdate"] == "usage_update"]
        assert len(sizes) == 2, "the call for the summary does not fill the context"


async def test_a_failure_is_an_answer_of_the_command_and_an_end_of_the_compaction(tmp_path):
    failing = [LlmError("down", "QUOTA")]
    async with bridge_world(says("a"), failing, cwd=tmp_path, capabilities=COMPACTS) as world:
        session = await world.new_session()
        await world.prompt(session)
        assert await world.prompt(session, "/compact") == {"stopReason": "end_turn"}
        live = [each for _id, each in world.updates if each["sessionUpdate"] == "compaction_update"]
        assert live == [update("in_progress", 2), update("failed", 2, error="down")]
        assert world.text().endswith("The conversation could not be summarised: down")
        assert shown(await loaded(world, session)) == shown(world.updates)[: len(shown(world.updates)) // 2]


async def test_a_failure_that_nobody_asked_for_is_told_once_and_the_prompt_is_answered(tmp_path):
    answers = says(LONG, usage=FULL), [LlmError("down", "QUOTA")], says("b")
    async with bridge_world(*answers, cwd=tmp_path, capabilities=COMPACTS) as world:
        told = await outgrown(world)
        assert [told[0], *told[2:]] == ["in_progress", "failed", "b"]
        assert told[1].startswith("The conversation could not be summarised\n")
        assert world.text().count("down") == 1


async def test_nothing_to_summarise_is_said_and_shown_as_nothing_else(tmp_path):
    async with bridge_world(cwd=tmp_path, capabilities=COMPACTS) as world:
        session = await world.new_session()
        assert await world.prompt(session, "/compact") == {"stopReason": "end_turn"}
        assert shown(world.updates) == ["There is nothing to summarise yet."]


@pytest.mark.parametrize("by", ["session/cancel", "$/cancel_request"])
async def test_a_cancel_ends_the_summary_and_answers_cancelled(tmp_path, by):
    gate = Gate()
    async with bridge_world(says("a"), [gate, *says("SUM")], cwd=tmp_path, capabilities=COMPACTS) as world:
        session = await world.new_session()
        await world.prompt(session)
        request = await world.send_prompt(session, "/compact")
        await gate.reached.wait()
        await world.notify(by, **({"sessionId": session} if by == "session/cancel" else {"requestId": request}))
        assert (await world.answer(request))["result"] == {"stopReason": "cancelled"}
        assert shown(world.updates)[1:] == ["in_progress", "cancelled", "The conversation was not summarised."]


async def test_one_that_is_cancelled_while_it_waits_leaves_nothing_in_the_log(tmp_path):
    gate = Gate()
    async with bridge_world([gate, *says("a")], cwd=tmp_path) as world:
        session = await world.new_session()
        running = await world.send_prompt(session)
        await gate.reached.wait()
        waiting = await world.send_prompt(session, "/compact")
        await world.notify("$/cancel_request", requestId=waiting)
        assert (await world.answer(waiting))["result"] == {"stopReason": "cancelled"}
        gate.open()
        assert (await world.answer(running))["result"] == {"stopReason": "end_turn"}
        types = [event.type for event in world.agents.events[session]]
        assert "command/run" not in types
        assert "command/done" not in types


async def test_without_a_key_nothing_is_begun(tmp_path):
    async with bridge_world(cwd=tmp_path, key=None) as world:
        session = await world.new_session()
        error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "/compact"}])
        assert error["code"] == -32000
        assert world.agents.events == {}


async def test_a_client_that_comes_in_the_middle_sees_the_end(tmp_path):
    gate = Gate()
    async with bridge_world(says("a"), [gate, *says("SUM")], cwd=tmp_path, capabilities=COMPACTS) as world:
        session = await world.new_session()
        await world.prompt(session)
        request = await world.send_prompt(session, "/compact")
        await gate.reached.wait()
        replayed = await loaded(world, session)
        assert shown(replayed)[-1] == "in_progress"
        before = len(world.updates)
        gate.open()
        await world.answer(request)
        assert shown(world.updates[before:])[:2] == ["SUM", "completed"]
