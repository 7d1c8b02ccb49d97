"""Options of a session over the wire: set at any time, told in full, kept in the log, taken up by the model."""

from functools import partial

import pytest

from acp_bridge.catalogue import Catalogue, Choice, ModelRow, Offer, Price, levels_of
from acp_bridge.permission.modes import MODES
from agent_loop.session.jsonl import JsonlSessionStore
from tests.support.agent_world import MODEL
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import HANG, says

LEVELS = levels_of(("high", "max"), "high", switch=True)
ROWS = (
    ModelRow("test", MODEL, MODEL, *LEVELS, window=1000, reasoning="echo", price=Price(1, 1, 1, "USD")),
    ModelRow("test", "plain", "Plain", window=500),
)
OFFER = Offer(MODES, Catalogue(ROWS), Choice("ask", ROWS[0].value))
SHORT = OFFER._replace(catalogue=Catalogue(ROWS[:1]))
USAGE = {"inputTokens": 90, "outputTokens": 10}
NOTICE = {"severity": "warning", "title": "Look", "description": "here"}

world_of = partial(bridge_world, offer=OFFER)


def values(result):
    return {option["id"]: option["currentValue"] for option in result["configOptions"]}


async def set_option(world, session, config_id, value):
    return await world.call("session/set_config_option", sessionId=session, configId=config_id, value=value)


async def test_a_change_is_told_in_full_before_its_answer_and_reaches_the_next_turn(tmp_path):
    async with world_of(says("x"), cwd=tmp_path) as world:
        session = await world.new_session()
        changed = await set_option(world, session, "reasoning_effort", "off")
        assert values(changed) == {"mode": "ask", "model": ROWS[0].value, "reasoning_effort": "off"}
        assert world.updates[-1][1] == {"sessionUpdate": "config_option_update", **changed}
        await world.prompt(session)
        (request,) = world.agents.adapter.requests
        assert (request.provider, request.model, request.effort) == ("test", MODEL, "off")
        header = world.agents.of(world.bridge.session(session).agent, "request/header")[0]
        assert header["parameters"] == {"effort": "off"}


async def test_in_mid_turn_a_model_can_be_chosen_for_the_turn_after_it(tmp_path):
    async with world_of([HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.update("session_info_update")
        changed = await set_option(world, session, "model", "test/plain")
        assert values(changed) == {"mode": "ask", "model": "test/plain"}
        assert world.bridge.session(session).agent.options.model == "plain"
        assert world.bridge.session(session).window() == 500
        await world.notify("session/cancel", sessionId=session)
        await world.answer(prompt)


async def test_the_mode_and_its_option_change_together(tmp_path):
    async with world_of(cwd=tmp_path) as world:
        session = await world.new_session()
        await set_option(world, session, "mode", "full")
        assert world.kinds()[-2:] == ["current_mode_update", "config_option_update"]
        assert world.policy.mode(session) == "full"
        await world.call("session/set_mode", sessionId=session, modeId="read-only")
        assert values(world.updates[-1][1])["mode"] == "read-only"


async def test_the_same_value_again_is_not_logged_twice(tmp_path):
    async with world_of(cwd=tmp_path) as world:
        session = await world.new_session()
        await set_option(world, session, "model", "test/plain")
        await set_option(world, session, "model", "test/plain")
        assert world.kinds().count("config_option_update") == 1


@pytest.mark.parametrize(
    ("config_id", "value", "says_what"),
    [
        ("colour", "red", "configId 'colour' is unknown; use one of mode, model, reasoning_effort"),
        ("model", "gpt", "value 'gpt' is not offered; use one of test/scripted-1, test/plain"),
        ("mode", True, "value True is not offered"),
        ("mode", 5, "value"),
        ("reasoning_effort", None, "value"),
    ],
)
async def test_what_is_not_offered_is_refused_and_changes_nothing(tmp_path, config_id, value, says_what):
    async with world_of(cwd=tmp_path) as world:
        session = await world.new_session()
        params = {"sessionId": session, "configId": config_id, "value": value}
        error = await world.error("session/set_config_option", **params)
        assert error["code"] == -32602
        assert says_what in error["message"]
        assert values(await set_option(world, session, "mode", "ask")) == {
            "mode": "ask",
            "model": ROWS[0].value,
            "reasoning_effort": "high",
        }


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_session_keeps_its_choices_when_it_is_opened_again(tmp_path, method):
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with world_of(says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await set_option(world, session, "mode", "full")
        await set_option(world, session, "reasoning_effort", "max")
        await world.prompt(session)
    async with world_of(says("y", usage=USAGE), cwd=tmp_path, store=store) as world:
        opened = await world.call(method, sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert values(opened) == {"mode": "full", "model": ROWS[0].value, "reasoning_effort": "max"}
        assert opened["modes"]["currentModeId"] == "full"
        await world.prompt(session)
        assert world.agents.adapter.requests[0].effort == "max"
        usage = [update for _id, update in world.updates if update["sessionUpdate"] == "usage_update"]
    assert usage[-1]["size"] == 1000


async def test_a_model_that_is_gone_gives_way_to_the_default_and_the_user_is_told(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with world_of(says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await set_option(world, session, "model", "test/plain")
        # the double serves one model only
        world.bridge.session(session).agent.use_model(provider="test", model=MODEL)
        await world.prompt(session)
    async with bridge_world(says("y"), cwd=tmp_path, store=store, offer=SHORT) as world:
        opened = await world.call("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert values(opened)["model"] == ROWS[0].value
        await world.prompt(session)
        assert "The model test/plain of this session is not configured any more" in world.text()
        assert f"It goes on with {ROWS[0].value}." in world.text()


async def test_what_the_user_must_know_of_the_configuration_is_said_once_at_the_first_turn(tmp_path):
    async with world_of(says("x"), says("y"), cwd=tmp_path, notices=[NOTICE]) as world:
        session = await world.new_session()
        assert world.text() == ""
        await world.prompt(session)
        await world.prompt(session)
        assert world.text().count("Look\nhere") == 1


@pytest.mark.parametrize(
    ("line", "answer", "changes"),
    [
        ("/model", "- `test/scripted-1` **(now)**\n- `test/plain`", {}),
        ("/model plain", "Model: `test/plain`. It takes effect with the next prompt.", {"model": "test/plain"}),
        ("/model plai", "Model: `test/plain`", {"model": "test/plain"}),
        ("/model plian", "There is no model `plian`. Did you mean `test/plain`?", {}),
        ("/model t", "There is no model `t`. There are `test/scripted-1`, `test/plain`.", {}),
        ("/mode full", "Mode: `full`. It holds from now on.", {"mode": "full"}),
        ("/mode", "- `ask` — Reads freely; asks before each change and each command. **(now)**", {}),
        ("/mode", "- `full` Full access — Asks nothing", {}),
        ("/thinking max", "Thinking level: `max`.", {"reasoning_effort": "max"}),
        ("/thinking", "- `high` **(now)**", {}),
    ],
)
async def test_commands_show_and_change_the_options(tmp_path, line, answer, changes):
    async with world_of(cwd=tmp_path) as world:
        session = await world.new_session()
        assert (await world.prompt(session, line))["stopReason"] == "end_turn"
        assert answer in world.text()
        told = [update for _id, update in world.updates if update["sessionUpdate"] == "config_option_update"]
        assert [values(update).items() >= changes.items() for update in told] == ([True] if changes else [])


async def test_a_model_without_levels_says_so(tmp_path):
    async with world_of(cwd=tmp_path) as world:
        session = await world.new_session()
        await set_option(world, session, "model", "test/plain")
        await world.prompt(session, "/thinking off")
        assert world.text() == "The model of this session has no thinking level to choose."


async def test_status_tells_of_thinking_context_and_cost(tmp_path):
    async with world_of(says("x", usage=USAGE), cwd=tmp_path) as world:
        session = await world.new_session()
        await world.prompt(session)
        world.updates.clear()
        await world.prompt(session, "/status")
        text = world.text()
    assert "| Thinking | high |" in text
    assert "| Context | 100 of 1,000 tokens (10 %) |" in text
    assert "| Cost | 0.0001 USD |" in text
