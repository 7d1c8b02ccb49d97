"""What the model is told of the loop tools and by them, and what their cards show."""

import json

import pytest

from agent_loop.loops.tools import loop_tools
from agent_loop.tools.seam import GenericCard
from agent_loop.vocabulary import text_block
from tests.support.loop_world import looping_agent

CREATE, LIST, DELETE = loop_tools(None)
VIEW = {"id": "loop_a", "prompt": "look", "time_in_seconds": 60, "next_at": 1}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("loop_create", {"prompt": "look"}),
        ("loop_create", {"prompt": "look", "time_in_seconds": "60"}),
        ("loop_create", {"prompt": "look", "time_in_seconds": True}),
        ("loop_create", {"prompt": "look", "time_in_seconds": 1.5}),
        ("loop_create", {"prompt": "look", "time_in_seconds": 60, "times": 3}),
        ("loop_list", {"all": True}),
        ("loop_delete", {}),
        ("loop_delete", {"id": "loop_a", "force": True}),
    ],
)
async def test_the_arguments_are_closed(name, arguments):
    async with looping_agent() as (world, agent):
        outcome = await world.call(agent, name, **arguments)
        assert (outcome.is_error, outcome.error["code"]) == (True, "INVALID_ARGS")


async def test_the_model_reads_what_the_data_says():
    async with looping_agent() as (world, agent):
        made = await world.call(agent, "loop_create", prompt=" look ", time_in_seconds=60.0)
        view = json.loads(made.content[0]["text"])
        assert made.meta == {"loops": [view]}
        assert view.keys() == {"id", "prompt", "time_in_seconds", "next_at", "state", "delivery_mode"}
        assert (view["prompt"], view["time_in_seconds"], view["state"]) == ("look", 60, "scheduled")
        assert view["next_at"] == world.agents.runtime.now_ms() + 60_000
        listed = await world.call(agent, "loop_list")
        assert json.loads(listed.content[0]["text"]) == [view]
        gone = await world.call(agent, "loop_delete", id=view["id"])
        assert json.loads(gone.content[0]["text"]) == {"deleted": True, "id": view["id"]}


async def test_a_secret_in_a_prompt_is_not_told_again():
    async with looping_agent() as (world, agent):
        world.agents.secrets.add("KEY", "sk-1234567890abcdef")
        made = await world.call(agent, "loop_create", prompt="use sk-1234567890abcdef", time_in_seconds=1)
        assert made.meta["loops"][0]["prompt"] == "use [redacted:KEY]"
        await world.advance(1000)
        assert "use [redacted:KEY]" in agent.texts()[0]


def test_no_tool_has_an_effect_that_anybody_is_asked_about():
    assert {tool.effect for tool in (CREATE, LIST, DELETE)} == {"none"}


def test_the_cards_show_the_arguments():
    arguments = {"prompt": "look", "time_in_seconds": 60.0}
    card = GenericCard("Every 60 s", "other", [text_block("look")])
    assert CREATE.present_call(arguments, "/") == card
    assert CREATE.present_result(arguments, [], {"loops": [VIEW]}) == card
    assert CREATE.present_result(arguments, [text_block("Error: no")], None) is None
    assert DELETE.present_call({"id": "loop_a"}, None) == GenericCard("Delete loop_a")
    assert LIST.present_call({}, None) == GenericCard("List the loops")
    shown = LIST.present_result({}, [], {"loops": [VIEW]})
    assert shown == GenericCard("List the loops", content=[text_block("- every 60 s: look")])
    assert LIST.present_result({}, [], {"loops": []}).content == [text_block("There are none.")]
    assert LIST.present_result({}, [], None) is None
