"""The tool registry: names, visibility, and the wall around running a tool."""

import asyncio

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import DuplicateError, HarnessError
from agent_loop.hooks import Hooks
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import GenericCard, Tool, ToolCall, ToolContext, ToolOutcome
from agent_loop.vocabulary import text_block


class EchoTool(Tool):
    """Answers with its argument, or raises what it was made with."""

    description = "Echo."
    parameters = to_json_schema(SchemaSpec({"text": Property("string", required=True)}))

    def __init__(self, name="echo", error=None):
        self.name = name
        self.error = error

    async def run(self, arguments, context):
        if self.error is not None:
            raise self.error
        return ToolOutcome([text_block(arguments["text"])])

    def present_call(self, arguments, cwd, preview=None):
        return GenericCard(self.name)

    def present_result(self, arguments, content, meta):
        return None


def make_registry():
    errors = []
    hooks = Hooks(lambda name, error: errors.append((name, error)))
    changes = []
    hooks.on("tools/change", lambda: changes.append(True))
    return ToolRegistry(hooks), hooks, changes


def call(name="echo", **arguments):
    return ToolCall("c1", name, arguments, "{}")


def context():
    return ToolContext("s1", "/srv/app", AbortController())


def names(registry, agent="s1"):
    return [row["name"] for row in registry.schemas(agent)]


async def test_a_call_runs_and_its_outcome_is_returned():
    registry, _, _ = make_registry()
    registry.register(EchoTool())
    outcome = await registry.execute(call(text="hi"), context(), agent="s1")
    assert outcome == ToolOutcome([text_block("hi")])


async def test_an_unknown_tool_is_an_error_outcome_that_names_the_known_ones():
    registry, _, _ = make_registry()
    outcome = await registry.execute(call("nope"), context(), agent="s1")
    assert outcome.content == [text_block("Error: there is no tool 'nope'; available: none")]
    registry.register(EchoTool())
    outcome = await registry.execute(call("nope"), context(), agent="s1")
    assert outcome.content == [text_block("Error: there is no tool 'nope'; available: echo")]
    assert outcome.is_error
    assert outcome.error == {"name": "UnknownToolError", "code": "UNKNOWN_TOOL"}


async def test_invalid_arguments_are_an_error_outcome_and_the_tool_does_not_run():
    registry, _, _ = make_registry()
    registry.register(EchoTool(error=AssertionError("ran")))
    outcome = await registry.execute(call(text=1), context(), agent="s1")
    assert outcome.content == [text_block('Error: invalid arguments for echo: "text" must be a string, not a number')]
    assert outcome.error == {"name": "InvalidArgumentsError", "code": "INVALID_ARGS"}


@pytest.mark.parametrize(
    ("error", "text", "identity"),
    [
        (KeyError("path"), "Error: 'path'", {"name": "KeyError", "code": "TOOL_FAILED"}),
        (RuntimeError(), "Error: RuntimeError", {"name": "RuntimeError", "code": "TOOL_FAILED"}),
        (
            HarnessError("the disk is full", "ENOSPC"),
            "Error: the disk is full",
            {"name": "HarnessError", "code": "ENOSPC"},
        ),
    ],
)
async def test_a_tool_that_raises_gives_an_error_outcome(error, text, identity):
    registry, _, _ = make_registry()
    registry.register(EchoTool(error=error))
    outcome = await registry.execute(call(text="x"), context(), agent="s1")
    assert outcome == ToolOutcome([text_block(text)], is_error=True, error=identity)


async def test_cancellation_passes_the_wall():
    registry, _, _ = make_registry()
    registry.register(EchoTool(error=asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        await registry.execute(call(text="x"), context(), agent="s1")


async def test_cancelling_the_caller_ends_a_running_tool():
    registry, hooks, _ = make_registry()
    registry.register(EchoTool())
    started = anyio.Event()

    async def hang(call, context, following):
        started.set()
        await anyio.sleep_forever()

    hooks.wrap("tools/execute", hang)
    answers = []

    async def run():
        answers.append(await registry.execute(call(text="x"), context(), agent="s1"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await started.wait()
            tasks.cancel_scope.cancel()
    assert answers == []


async def test_a_layer_wraps_the_call_and_may_answer_for_an_unknown_tool():
    registry, hooks, _ = make_registry()
    seen = []

    async def layer(call, context, following):
        seen.append((call.name, context.session_id))
        if call.name == "recorded":
            return ToolOutcome([text_block("from the record")])
        return await following(call, context)

    hooks.wrap("tools/execute", layer)
    registry.register(EchoTool())
    assert (await registry.execute(call(text="hi"), context(), agent="s1")).content == [text_block("hi")]
    recorded = await registry.execute(call("recorded"), context(), agent="s1")
    assert recorded.content == [text_block("from the record")]
    assert seen == [("echo", "s1"), ("recorded", "s1")]


async def test_a_layer_of_another_agent_is_not_called():
    registry, hooks, _ = make_registry()
    registry.register(EchoTool())

    async def layer(call, context, following):
        raise AssertionError("heard")

    hooks.wrap("tools/execute", layer, agent="s2")
    assert not (await registry.execute(call(text="hi"), context(), agent="s1")).is_error


async def test_a_layer_that_raises_is_an_error_outcome():
    registry, hooks, _ = make_registry()

    async def layer(call, context, following):
        raise ValueError("broken layer")

    hooks.wrap("tools/execute", layer)
    outcome = await registry.execute(call(text="x"), context(), agent="s1")
    assert outcome.content == [text_block("Error: broken layer")]


def test_schemas_come_by_name_whoever_registered_first():
    registry, _, _ = make_registry()
    for name in ("b", "c", "a"):
        registry.register(EchoTool(name))
    assert names(registry) == ["a", "b", "c"]
    assert registry.schemas("s1")[0] == {"name": "a", "description": "Echo.", "parameters": EchoTool.parameters}


def test_a_tool_of_one_agent_is_visible_to_that_agent_alone():
    registry, _, _ = make_registry()
    registry.register(EchoTool("shared"))
    mine = EchoTool("mine")
    registry.register(mine, agent="s1")
    assert names(registry, "s1") == ["mine", "shared"]
    assert names(registry, "s2") == ["shared"]
    assert registry.get("mine", "s1") is mine
    assert registry.get("mine", "s2") is None


def test_two_agents_may_each_have_a_tool_of_the_same_name():
    registry, _, _ = make_registry()
    first, second = EchoTool(), EchoTool()
    registry.register(first, agent="s1")
    registry.register(second, agent="s2")
    assert registry.get("echo", "s1") is first
    assert registry.get("echo", "s2") is second


@pytest.mark.parametrize(("first", "second"), [(None, None), (None, "s1"), ("s1", None), ("s1", "s1")])
def test_a_name_that_an_agent_would_see_twice_is_refused(first, second):
    registry, _, changes = make_registry()
    registry.register(EchoTool(), agent=first)
    with pytest.raises(DuplicateError):
        registry.register(EchoTool(), agent=second)
    assert len(changes) == 1


def test_every_change_is_announced_and_a_remover_works_once():
    registry, _, changes = make_registry()
    remove = registry.register(EchoTool())
    remove()
    remove()
    assert names(registry) == []
    assert len(changes) == 2


def test_an_old_remover_leaves_a_new_registration_alone():
    registry, _, _ = make_registry()
    remove = registry.register(EchoTool())
    remove()
    registry.register(EchoTool())
    remove()
    assert names(registry) == ["echo"]
