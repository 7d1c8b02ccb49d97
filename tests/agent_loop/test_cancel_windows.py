"""Every row of the contract's table of cancel windows (agent-loop.md §5), at the agent's own level."""

from typing import Any

import anyio
import pytest

from agent_loop.errors import AgentDisposedError, LlmError
from agent_loop.tools.dispatch import GRACE_SECONDS
from agent_loop.tools.seam import Decision, ToolContext, ToolOutcome
from tests.support.agent_world import PLUGIN, World, agent_world
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_policy import ScriptedPolicy
from tests.support.scripted_tool import ScriptedTool, outcome

ECHO = ("call-1", "echo", {"value": "x"})
CANCELLED = {"kind": "aborted", "reason": "session/cancel"}
COMPLETED = {"kind": "completed"}


async def test_a_cancel_with_nothing_pending_drops_nothing_that_comes_later():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        agent.cancel("session/cancel")
        await world.prompt(agent)
        assert world.reasons(agent) == [COMPLETED]


async def test_a_message_cancelled_in_its_own_tick_leaves_no_turn():
    async with agent_world() as world:
        agent = world.agent()
        message = world.message("never")
        agent.followup(message)
        assert agent.status == "running"
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert agent.id not in world.events
        assert ("agent/inbox/discarded", message, "session/cancel") in world.heard


async def test_of_send_cancel_send_only_the_second_runs():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        agent.followup(world.message("first"))
        agent.cancel("session/cancel")
        agent.followup(world.message("second"))
        await agent.when_idle()
        assert world.texts(agent) == ["second"]
        assert world.reasons(agent) == [COMPLETED]


async def test_a_listener_of_running_may_cancel():
    async with agent_world() as world:
        agent = world.agent()
        world.hooks.on("agent/status", lambda _agent, status: status == "running" and agent.cancel("session/cancel"))
        await world.prompt(agent)
        assert agent.id not in world.events
        assert agent.status == "idle"


async def test_a_listener_of_running_may_cancel_and_send_a_replacement():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        done: list[str] = []

        def replace_it(_agent: object, status: str) -> None:
            if status == "running" and not done:
                done.append(status)
                agent.cancel("session/cancel")
                agent.followup(world.message("replacement"))

        world.hooks.on("agent/status", replace_it)
        await world.prompt(agent, "original")
        assert world.texts(agent) == ["replacement"]
        assert world.reasons(agent) == [COMPLETED]


async def test_a_listener_of_inserted_may_cancel_before_anything_runs():
    async with agent_world() as world:
        agent = world.agent()
        world.hooks.on("agent/inbox/inserted", lambda *_args: agent.cancel("session/cancel"))
        await world.prompt(agent)
        assert "agent/status" not in world.names()
        assert agent.pending == ()


@pytest.mark.parametrize("name", ["agent/turn-start", "agent/step-start"])
async def test_a_listener_of_a_start_may_cancel(name: str):
    async with agent_world() as world:
        agent = world.agent()
        world.hooks.on(name, lambda *_args: agent.cancel("session/cancel"))
        await world.prompt(agent)
        types = world.types(agent)
        assert types.count("step/start") == types.count("step/end")
        assert world.texts(agent) == ["hello"]
        assert world.reasons(agent) == [CANCELLED]
        assert world.adapter.requests == []


async def cancel_when(world: World, gate: Gate) -> None:
    """Prompt, cancel at the gate, check the end; then prompt again."""
    agent = world.agent()
    agent.followup(world.message("go"))
    await gate.reached.wait()
    agent.cancel("session/cancel")
    await agent.when_idle()
    assert world.reasons(agent) == [CANCELLED]
    assert world.of(agent, "assistant/message") == []
    await world.prompt(agent, "again")
    assert world.reasons(agent) == [CANCELLED, COMPLETED]


async def test_a_cancel_before_the_first_chunk():
    gate = Gate()
    async with agent_world([gate, HANG], says("hi")) as world:
        await cancel_when(world, gate)


async def test_a_cancel_during_the_stream():
    gate = Gate()
    async with agent_world([*says("half")[:2], gate, HANG], says("hi")) as world:
        await cancel_when(world, gate)


async def test_a_cancel_during_a_retry_wait():
    async with agent_world([LlmError("busy", "SERVER")], says("hi")) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        while not world.runtime.sleeping:
            await anyio.wait_all_tasks_blocked()
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.reasons(agent) == [CANCELLED]
        assert world.runtime.sleeping == 0
        await world.prompt(agent, "again")
        assert world.reasons(agent) == [CANCELLED, COMPLETED]


async def test_a_cancel_inside_a_tool_that_heeds_it_logs_what_the_tool_says():
    started = anyio.Event()

    async def body(_arguments: Any, context: ToolContext) -> ToolOutcome:
        started.set()
        await context.signal.wait()
        return ToolOutcome.failed("stopped", name="AbortError", code="aborted")

    async with agent_world(calls(ECHO)) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        agent.followup(world.message("go"))
        await started.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        [result] = world.of(agent, "tool/result")
        assert result["content"] == [{"type": "text", "text": "Error: stopped"}]
        assert world.runtime.sleeping == 0
        assert world.reasons(agent) == [CANCELLED]


async def test_a_cancel_inside_a_tool_that_ignores_it_ends_the_tool_after_the_grace():
    started = anyio.Event()

    async def body(_arguments: Any, _context: ToolContext) -> ToolOutcome:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with agent_world(calls(ECHO)) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        agent.followup(world.message("go"))
        await started.wait()
        agent.cancel("session/cancel")
        await anyio.wait_all_tasks_blocked()
        world.runtime.advance(int(GRACE_SECONDS * 1000) - 1)
        await anyio.wait_all_tasks_blocked()
        assert agent.status == "running"
        world.runtime.advance(1)
        await agent.when_idle()
        [result] = world.of(agent, "tool/result")
        assert result["isError"]
        assert result["error"] == {"name": "AbortError", "code": "aborted"}
        # no further step
        assert len(world.adapter.requests) == 1
        assert world.reasons(agent) == [CANCELLED]


@pytest.mark.parametrize("listens", [True, False])
async def test_a_cancel_while_a_permission_request_is_open(listens: bool):
    policy = ScriptedPolicy(listens=listens)
    tool = ScriptedTool()
    async with agent_world(calls(ECHO), says("hi"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        agent.followup(world.message("go"))
        await policy.asked.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        policy.answer(Decision("allow", "user"))
        assert tool.ran == []
        [decision] = world.of(agent, "permission/decision")
        assert (decision["outcome"], decision["by"]) == ("cancelled", "abort")
        [result] = world.of(agent, "tool/result")
        assert result["error"]["code"] == "aborted-before-dispatch"
        assert world.reasons(agent) == [CANCELLED]
        await world.prompt(agent, "again")
        assert tool.ran == []
        assert world.reasons(agent) == [CANCELLED, COMPLETED]


async def test_an_answer_in_the_tick_of_the_cancel_is_late():
    policy = ScriptedPolicy(listens=False)
    tool = ScriptedTool()
    async with agent_world(calls(ECHO), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        agent.followup(world.message("go"))
        await policy.asked.wait()
        policy.answer(Decision("allow", "user"))
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert tool.ran == []
        assert world.of(agent, "permission/decision")[0]["outcome"] == "cancelled"


async def test_cancelling_twice_or_elsewhere_or_idle_touches_nothing_else():
    gate, other = Gate(), Gate()
    async with agent_world([gate, HANG], [other, *says("hi")], fallback=says("ok")) as world:
        agent, neighbour = world.agent(), world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        neighbour.followup(world.message("go"))
        await other.reached.wait()
        agent.cancel("session/cancel")
        agent.cancel("something else")
        await agent.when_idle()
        agent.cancel("session/cancel")
        other.open()
        await neighbour.when_idle()
        await world.prompt(agent, "again")
        assert world.reasons(agent) == [CANCELLED, COMPLETED]
        assert world.reasons(neighbour) == [COMPLETED]


async def test_a_queued_prompt_can_be_withdrawn_alone():
    gate = Gate()
    async with agent_world([gate, *says("hi")]) as world:
        agent = world.agent()
        agent.followup(world.message("running"))
        await gate.reached.wait()
        queued = world.message("queued")
        agent.followup(queued)
        assert agent.withdraw(queued.id, "cancel_request")
        assert not agent.withdraw(queued.id, "cancel_request")
        assert world.heard[-1] == ("agent/inbox/discarded", queued, "cancel_request")
        gate.open()
        await agent.when_idle()
        assert world.texts(agent) == ["running"]
        assert world.reasons(agent) == [COMPLETED]


async def test_closing_during_a_turn_discards_what_waits_and_lets_the_turn_end():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("running"))
        await gate.reached.wait()
        queued = world.message("queued")
        agent.followup(queued)
        agent.cancel("session/close")
        await agent.when_idle()
        await agent.dispose()
        assert world.reasons(agent) == [{"kind": "aborted", "reason": "session/close"}]
        assert ("agent/inbox/discarded", queued, "session/close") in world.heard


async def test_a_turn_that_no_prompt_owns_is_cancelled_like_any_other():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("beat", PLUGIN))
        await gate.reached.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.reasons(agent) == [CANCELLED]


async def test_a_prompt_withdraws_the_question_of_a_turn_that_no_prompt_owns():
    policy = ScriptedPolicy()
    tool = ScriptedTool()
    async with agent_world(calls(ECHO), says("well then"), says("hi"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        agent.followup(world.message("beat", PLUGIN))
        await policy.asked.wait()
        agent.followup(world.message("another beat", PLUGIN))
        assert not policy.signals[0].aborted
        agent.withdraw(agent.pending[0].id, "test")
        agent.followup(world.message("prompt"))
        assert policy.signals[0].aborted
        await agent.when_idle()
        assert tool.ran == []
        [result] = world.of(agent, "tool/result")
        assert result["error"] == {"name": "PermissionError", "code": "rejected"}
        assert world.texts(agent) == ["beat", "prompt"]
        assert world.reasons(agent) == [COMPLETED, COMPLETED]


async def test_a_prompt_during_a_heartbeats_turn_that_asks_nothing_waits_for_its_own_turn():
    gate = Gate()
    async with agent_world([gate, *says("tick")], says("hi")) as world:
        agent = world.agent()
        agent.followup(world.message("beat", PLUGIN))
        await gate.reached.wait()
        agent.followup(world.message("prompt"))
        gate.open()
        await agent.when_idle()
        assert world.texts(agent) == ["beat", "prompt"]
        assert world.reasons(agent) == [COMPLETED, COMPLETED]


async def test_a_prompt_does_not_withdraw_the_question_of_a_prompts_turn():
    policy = ScriptedPolicy()
    tool = ScriptedTool()
    async with agent_world(calls(ECHO), fallback=says("ok"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        agent.followup(world.message("prompt"))
        await policy.asked.wait()
        agent.followup(world.message("queued"))
        assert not policy.signals[0].aborted
        policy.answer(Decision("allow", "user"))
        await agent.when_idle()
        assert len(tool.ran) == 1


async def test_disposal_during_the_stream_ends_the_turn_flushes_and_unregisters_in_that_order():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()
        order: list[str] = []

        async def flushed(_session: object) -> bool:
            order.append(f"flush behind {world.events[agent.id][-1].type}")
            return True

        world.hooks.on("session/flush", flushed)
        world.hooks.on("agent/turn-end", lambda *_args: order.append("turn-end"))
        world.hooks.on("agent/disposed", lambda *_args: order.append("disposed"))
        agent.followup(world.message("go"))
        await gate.reached.wait()
        await agent.dispose()
        assert order[:3] == ["flush behind turn/end", "turn-end", "disposed"]
        assert world.reasons(agent) == [{"kind": "disposed"}]
        assert world.registry.get(agent.id) is None
        assert world.sessions.get(agent.id) is None


async def test_disposal_outranks_a_cancel_and_discards_every_message():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        agent.cancel("session/cancel")
        beat = world.message("beat", PLUGIN)
        agent.followup(beat)
        await agent.dispose()
        assert world.reasons(agent) == [{"kind": "disposed"}]
        assert ("agent/inbox/discarded", beat, "disposed") in world.heard


async def test_a_wake_after_the_abort_runs_once_behind_the_turn_end():
    gate = Gate()
    async with agent_world([gate, HANG], says("late"), says("later")) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        agent.cancel("session/cancel")
        agent.steer(world.message("after the abort"))
        agent.followup(world.message("and a prompt"))
        await agent.when_idle()
        assert world.texts(agent) == ["go", "after the abort", "and a prompt"]
        # the steering message became a turn of its own
        assert world.reasons(agent) == [CANCELLED, COMPLETED, COMPLETED]
        assert [data["turn"] for data in world.of(agent, "turn/start")] == [1, 2, 3]
        assert world.names().count("agent/status") == 2


async def test_a_message_of_the_turn_end_listener_runs_next():
    async with agent_world(fallback=says("ok")) as world:
        agent = world.agent()
        sent: list[int] = []

        def once(_agent: object, turn: int, *_rest: object) -> None:
            if not sent:
                sent.append(turn)
                agent.steer(world.message("and then"))

        world.hooks.on("agent/turn-end", once)
        await world.prompt(agent, "first")
        assert world.texts(agent) == ["first", "and then"]


async def test_what_does_not_wake_waits_for_another_wake_and_goes_ahead_of_it():
    async with agent_world(says("ok")) as world:
        agent = world.agent()
        agent.inject(world.message("context"))
        await agent.when_idle()
        assert agent.id not in world.events
        await world.prompt(agent, "prompt")
        assert world.texts(agent) == ["context", "prompt"]


async def test_plugin_messages_outlive_a_cancel_without_waking():
    gate = Gate()
    async with agent_world([gate, HANG], fallback=says("ok")) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        beat = world.message("beat", PLUGIN)
        agent.steer(beat)
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert agent.pending == (beat,)
        assert world.reasons(agent) == [CANCELLED]
        await world.prompt(agent, "again")
        assert world.texts(agent) == ["go", "beat", "again"]


async def test_calls_that_were_not_started_are_logged_as_such():
    started = anyio.Event()

    async def body(_arguments: Any, context: ToolContext) -> ToolOutcome:
        started.set()
        await context.signal.wait()
        return outcome("stopped in time")

    wanted = [(f"call-{number}", "echo", {}) for number in range(3)]
    async with agent_world(calls(*wanted), says("hi")) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        agent.followup(world.message("go"))
        await started.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        pairs = [event.type for event in world.log(agent) if event.type.startswith("tool/")]
        assert pairs == ["tool/call", "tool/result"] * 3
        codes = [result.get("error", {}).get("code") for result in world.of(agent, "tool/result")]
        assert codes == [None, "aborted-before-dispatch", "aborted-before-dispatch"]
        await world.prompt(agent, "again")
        # the history that the next call sees answers every call
        results = [message["content"][0] for message in world.adapter.requests[1].messages[2:5]]
        assert [block["toolCallId"] for block in results] == ["call-0", "call-1", "call-2"]


async def test_a_disposed_agent_raises():
    async with agent_world() as world:
        agent = world.agent()
        await agent.dispose()
        with pytest.raises(AgentDisposedError):
            agent.followup(world.message("too late"))
        agent.cancel("session/cancel")
        await agent.when_idle()
