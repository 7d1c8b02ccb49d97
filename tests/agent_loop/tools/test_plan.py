"""The plan tool: the whole list every time, and nothing odd in it."""

import pytest

from agent_loop.abort import AbortController
from agent_loop.hooks import Hooks
from agent_loop.tools.plan import MAX_CHARACTERS, MAX_ENTRIES, TodoWriteTool
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import GenericCard, ToolCall, ToolContext
from agent_loop.vocabulary import text_block
from tests.support.agent_world import agent_world
from tests.support.scripted_adapter import calls, says

TOOL = TodoWriteTool()


def todo(content="Do it", status="pending", **more):
    return {"content": content, "status": status, **more}


async def write(*todos):
    """Through the registry; returns the outcome and what was recorded."""
    recorded = []
    registry = ToolRegistry(Hooks(lambda name, error: None))
    registry.register(TOOL)
    context = ToolContext("s1", "/p", AbortController(), record=lambda kind, data: recorded.append((kind, data)))
    call = ToolCall("c1", "todo_write", {"todos": list(todos)}, "{}")
    return await registry.execute(call, context, agent="s1"), recorded


async def test_the_whole_plan_is_recorded_with_its_defaults():
    outcome, recorded = await write(todo(" Look ", "completed", priority="high"), todo("Change", "in_progress"))
    assert recorded == [
        (
            "plan/update",
            {
                "entries": [
                    {"content": "Look", "priority": "high", "status": "completed"},
                    {"content": "Change", "priority": "medium", "status": "in_progress"},
                ]
            },
        )
    ]
    assert outcome.content == [text_block("Plan: 1 of 2 done; now: Change")]


async def test_an_empty_list_removes_the_plan():
    outcome, recorded = await write()
    assert (outcome.content, recorded) == ([text_block("Plan: removed")], [("plan/update", {"entries": []})])
    assert TOOL.present_call({"todos": []}, None) == GenericCard("Plan: removed", "think", [])


@pytest.mark.parametrize(
    ("todos", "says"),
    [
        ([todo(" ")], "entry 1 is blank"),
        ([todo(), todo("x" * (MAX_CHARACTERS + 1))], "entry 2 is longer than"),
        ([todo()] * (MAX_ENTRIES + 1), f"at most {MAX_ENTRIES} entries"),
        ([todo("a", "in_progress"), todo("b"), todo("c", "in_progress")], "the entries 1, 3 are all in_progress"),
        ([todo(status="done")], '"todos[0].status" must be one of'),
        ([todo(priority="urgent")], '"todos[0].priority" must be one of'),
        ([{"content": "x"}], '"todos[0].status" is required'),
        (["x"], '"todos[0]" must be an object'),
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused_with_its_reason(todos, says):
    outcome, recorded = await write(*todos)
    assert (outcome.is_error, recorded) == (True, [])
    assert says in outcome.content[0]["text"]


def test_the_card_is_the_plan_as_a_check_list_before_and_after():
    arguments = {"todos": [todo("a", "completed"), todo("b", "in_progress"), todo("c")]}
    card = GenericCard("Plan: 1 of 3 done", "think", [text_block("- [x] a\n- [~] b\n- [ ] c")])
    assert TOOL.present_call(arguments, "/p") == card
    assert TOOL.present_result(arguments, [text_block("Plan: 1 of 3 done")], None) == card


def test_a_refused_plan_ends_its_card_with_the_reason():
    assert TOOL.present_result({"todos": [todo(" ")]}, [text_block("Error: entry 1 is blank")], None) is None


async def test_the_plan_stands_between_the_call_and_its_result():
    async with agent_world(calls(("c1", "todo_write", '{"todos": []}')), says("done")) as world:
        world.tools.register(TOOL)
        agent = world.agent()
        await world.prompt(agent)
        types = [kind for kind in world.types(agent) if kind.startswith(("tool", "plan"))]
        assert types == ["tool/call", "plan/update", "tool/result"]


async def test_a_tool_may_run_where_nothing_is_recorded():
    outcome = await TOOL.run({"todos": []}, ToolContext("s1", "/p", AbortController()))
    assert not outcome.is_error
