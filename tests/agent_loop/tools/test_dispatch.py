"""The calls of one message: order, concurrency, durability, abort."""

from typing import Any

import anyio

from agent_loop.tools.dispatch import POOL_SIZE
from agent_loop.tools.seam import ToolContext, ToolOutcome
from tests.support.agent_world import CWD, agent_world
from tests.support.scripted_adapter import calls, says
from tests.support.scripted_tool import ScriptedTool, outcome


async def test_sequential_calls_are_call_and_result_in_turn():
    wanted = [(f"c{number}", "echo", {"value": str(number)}) for number in range(3)]
    async with agent_world(calls(*wanted), says("ok")) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()
        await world.prompt(agent)
        order = [(event.type, event.data["callId"]) for event in world.log(agent) if event.type.startswith("tool/")]
        assert order == [(kind, f"c{number}") for number in range(3) for kind in ("tool/call", "tool/result")]


async def test_concurrent_calls_run_side_by_side_and_answer_in_model_order():
    running = 0
    most = 0
    full = anyio.Event()
    finished: list[str] = []

    async def body(arguments: Any, _context: ToolContext) -> ToolOutcome:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == POOL_SIZE:
            full.set()
        await full.wait()
        if arguments["value"] == "0":
            # the first ends last
            while len(finished) < 5:
                await anyio.lowlevel.checkpoint()
        running -= 1
        finished.append(arguments["value"])
        return outcome(arguments["value"])

    wanted = [(f"c{number}", "read", {"value": str(number)}) for number in range(6)]
    async with agent_world(calls(*wanted), says("ok")) as world:
        world.tools.register(ScriptedTool("read", body, concurrency_safe=True))
        agent = world.agent()
        await world.prompt(agent)
        assert most == POOL_SIZE
        assert finished[-1] == "0"
        order = [(event.type, event.data["callId"]) for event in world.log(agent) if event.type.startswith("tool/")]
        assert order == [(kind, f"c{number}") for kind in ("tool/call", "tool/result") for number in range(6)]


async def test_a_call_that_is_not_safe_is_a_barrier():
    wanted = [("a", "read", {}), ("b", "read", {}), ("c", "write", {}), ("d", "read", {})]
    async with agent_world(calls(*wanted), says("ok")) as world:
        world.tools.register(ScriptedTool("read", concurrency_safe=True))
        world.tools.register(ScriptedTool("write"))
        agent = world.agent()
        await world.prompt(agent)
        order = [event.data["callId"] for event in world.log(agent) if event.type.startswith("tool/")]
        assert order == ["a", "b", "a", "b", "c", "c", "d", "d"]


async def test_a_cancelled_group_logs_every_result_in_model_order():
    started: list[str] = []
    full = anyio.Event()

    async def body(arguments: Any, context: ToolContext) -> ToolOutcome:
        started.append(arguments["value"])
        if len(started) == POOL_SIZE:
            full.set()
        await context.signal.wait()
        return outcome(f"stopped {arguments['value']}")

    wanted = [(f"c{number}", "read", {"value": str(number)}) for number in range(6)]
    async with agent_world(calls(*wanted)) as world:
        world.tools.register(ScriptedTool("read", body, concurrency_safe=True))
        agent = world.agent()
        agent.followup(world.message("go"))
        await full.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        results = world.of(agent, "tool/result")
        assert [result["callId"] for result in results] == [f"c{number}" for number in range(6)]
        assert len(started) == POOL_SIZE
        codes = [result.get("error", {}).get("code") for result in results]
        assert codes == [None] * POOL_SIZE + ["aborted-before-dispatch"] * 2


async def test_the_log_is_flushed_behind_the_call_and_before_the_body():
    order: list[str] = []

    async def body(_arguments: Any, _context: ToolContext) -> ToolOutcome:
        order.append("body")
        return outcome("ok")

    async with agent_world(calls(("a", "echo", {})), says("ok")) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()

        async def flushed(_session: object) -> bool:
            order.append(f"flush behind {world.events[agent.id][-1].type}")
            return True

        world.hooks.on("session/flush", flushed)
        await world.prompt(agent)
        assert order[:2] == ["flush behind tool/call", "body"]


async def test_a_cancel_during_the_flush_keeps_the_body_from_starting():
    tool = ScriptedTool()
    async with agent_world(calls(("a", "echo", {}))) as world:
        world.tools.register(tool)
        agent = world.agent()

        async def slow(_session: object) -> bool:
            agent.cancel("session/cancel")
            return True

        world.hooks.on("session/flush", slow)
        await world.prompt(agent)
        assert tool.ran == []
        assert world.of(agent, "tool/result")[0]["error"]["code"] == "aborted-before-dispatch"


async def test_a_body_is_told_where_it_runs_and_its_output_is_heard_live():
    async def body(_arguments: Any, context: ToolContext) -> ToolOutcome:
        context.on_output(b"part 1")
        context.on_output(b"part 2")
        return outcome(f"{context.session_id} {context.cwd} {context.signal.aborted}")

    async with agent_world(calls(("a", "echo", {})), says("ok")) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        await world.prompt(agent)
        [result] = world.of(agent, "tool/result")
        assert result["content"][0]["text"] == f"{agent.id} {CWD} False"
        assert [row for row in world.heard if row[0] == "tools/output"] == [
            ("tools/output", "a", b"part 1"),
            ("tools/output", "a", b"part 2"),
        ]


async def test_empty_arguments_are_an_empty_object():
    tool = ScriptedTool()
    async with agent_world(calls(("a", "echo", "  ")), says("ok")) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert tool.ran == [{}]
        assert world.of(agent, "tool/call")[0]["arguments"] == "  "


async def test_error_identity_and_display_facts_are_logged():
    async def body(_arguments: Any, _context: ToolContext) -> ToolOutcome:
        return ToolOutcome([], is_error=True, error={"name": "E", "code": "C"}, meta={"exitCode": 1})

    async with agent_world(calls(("a", "echo", {})), says("ok")) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        await world.prompt(agent)
        assert world.of(agent, "tool/result") == [
            {
                "turn": 1,
                "step": 1,
                "callId": "a",
                "content": [],
                "isError": True,
                "error": {"name": "E", "code": "C"},
                "meta": {"exitCode": 1},
            }
        ]
