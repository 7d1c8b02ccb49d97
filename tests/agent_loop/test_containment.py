"""Whatever fails, the turn ends, the log is balanced, and the agent goes on (contract agent-loop.md §4)."""

import ssl
from typing import Any

import anyio
import pytest

from agent_loop.errors import LlmError
from agent_loop.tools.seam import Decision, ToolContext, ToolOutcome
from tests.support.agent_world import World, agent_world
from tests.support.failing_store import FailingStore
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_policy import ScriptedPolicy
from tests.support.scripted_tool import ScriptedTool, outcome

ECHO = ("call-1", "echo", {"value": "x"})
COMPLETED = {"kind": "completed"}
SECRET = "sk-planted-0123456789"


def balanced(world: World, agent: Any) -> None:
    types = world.types(agent)
    assert types.count("turn/start") == types.count("turn/end")
    assert types.count("step/start") == types.count("step/end")
    assert types.count("tool/call") == types.count("tool/result")
    assert types[-1] == "turn/end"


async def then_it_goes_on(world: World, agent: Any) -> None:
    balanced(world, agent)
    await world.prompt(agent, "again")
    assert world.reasons(agent)[-1] == COMPLETED
    balanced(world, agent)


@pytest.mark.parametrize("error", [ssl.SSLError(SECRET), ConnectionError(SECRET), ValueError(SECRET)])
@pytest.mark.parametrize("moment", [0, 1, 3])
async def test_an_unforeseen_error_of_the_model_ends_the_turn_without_its_text(error: Exception, moment: int):
    async with agent_world([*says("hi")[:moment], error], says("ok")) as world:
        agent = world.agent()
        await world.prompt(agent)
        [reason] = world.reasons(agent)
        name = type(error).__name__
        assert reason == {
            "kind": "error",
            "step": 1,
            "message": f"unexpected {name} inside the agent; its own log has the details",
            "code": "INTERNAL",
        }
        assert ("agent/error", error) in world.heard
        await then_it_goes_on(world, agent)


async def test_a_known_error_keeps_its_sentence_and_code():
    error = LlmError("the key was refused; set DEEPSEEK_API_KEY", "AUTH", status=401)
    async with agent_world(calls(ECHO), [error], says("ok")) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()
        await world.prompt(agent)
        assert world.reasons(agent) == [{"kind": "error", "step": 2, "message": error.message, "code": "AUTH"}]
        await then_it_goes_on(world, agent)


async def test_a_model_that_nobody_serves_ends_the_turn():
    async with agent_world() as world:
        agent = world.agent(model="unknown")
        await world.prompt(agent)
        assert world.reasons(agent)[0]["code"] == "NO_ADAPTER"
        balanced(world, agent)


async def test_a_chunk_of_no_known_type_ends_the_turn():
    async with agent_world([{"type": "surprise"}], [{"type": "text-delta", "index": 0, "text": float("nan")}]) as world:
        agent = world.agent()
        await world.prompt(agent)
        await world.prompt(agent)
        assert [reason["code"] for reason in world.reasons(agent)] == ["INVALID_EVENT", "INVALID_EVENT"]
        balanced(world, agent)


@pytest.mark.parametrize(
    "name",
    ["system-prompt/assemble", "agent/request", "llm/stream", "agent/step-result", "agent/turn-continuation"],
)
async def test_a_raising_layer_ends_the_turn(name: str):
    async with agent_world(says("hi"), fallback=says("ok")) as world:
        agent = world.agent()

        def broken(*_args: object) -> None:
            raise RuntimeError(SECRET)

        remove = world.hooks.wrap(name, broken)
        await world.prompt(agent)
        assert world.reasons(agent)[0]["code"] == "INTERNAL"
        remove()
        await then_it_goes_on(world, agent)


async def test_raising_listeners_harm_nothing():
    async with agent_world(says("hi")) as world:
        agent = world.agent()

        def broken(*_args: object) -> None:
            raise RuntimeError("a listener's bug")

        names = [
            "agent/status",
            "agent/turn-start",
            "agent/turn-end",
            "agent/step-start",
            "agent/step-end",
            "agent/flow",
            "agent/inbox/inserted",
            "agent/inbox/claimed",
            "session/event",
        ]
        for name in names:
            world.hooks.on(name, broken)
        await world.prompt(agent)
        assert world.reasons(agent) == [COMPLETED]
        assert {name for name, _error in world.errors} == set(names)


async def test_a_raising_tool_is_the_models_to_read():
    async def body(_arguments: Any, _context: ToolContext) -> ToolOutcome:
        raise RuntimeError("the tool broke")

    async with agent_world(calls(ECHO), says("I see"), says("ok")) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        await world.prompt(agent)
        assert world.of(agent, "tool/result")[0]["isError"]
        assert world.reasons(agent) == [COMPLETED]
        await then_it_goes_on(world, agent)


async def test_a_result_that_is_not_json_becomes_an_error_result():
    async def body(_arguments: Any, _context: ToolContext) -> ToolOutcome:
        return ToolOutcome([], meta={"ratio": float("inf")})

    async with agent_world(calls(ECHO), says("I see")) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        await world.prompt(agent)
        [result] = world.of(agent, "tool/result")
        assert result["error"] == {"name": "InvalidEventError", "code": "INVALID_EVENT"}
        assert world.reasons(agent) == [COMPLETED]


async def test_a_raising_policy_ends_the_turn_and_every_call_has_its_result():
    policy = ScriptedPolicy(RuntimeError(SECRET))
    tool = ScriptedTool()
    async with agent_world(calls(ECHO, ("call-2", "echo", {})), says("ok"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert tool.ran == []
        assert world.reasons(agent)[0]["code"] == "INTERNAL"
        assert [result["error"]["code"] for result in world.of(agent, "tool/result")] == ["aborted-before-dispatch"] * 2
        await then_it_goes_on(world, agent)


async def test_a_message_that_cannot_be_logged_ends_its_turn_and_is_told_as_claimed():
    async with agent_world(says("ok")) as world:
        agent = world.agent()
        bad = world.message("bad")
        bad.content[0]["text"] = {"not", "json"}
        agent.followup(bad)
        await agent.when_idle()
        assert world.reasons(agent)[0]["code"] == "INVALID_EVENT"
        assert world.reasons(agent)[0]["step"] == 1
        assert ("agent/inbox/claimed", bad, 1) in world.heard
        await then_it_goes_on(world, agent)


async def test_a_turn_that_cannot_start_gives_its_messages_back_as_discarded():
    async with agent_world(says("ok")) as world:
        agent = world.agent()
        bad = world.message("bad", {"kind": "plugin", "plugin": ("not", "json")})
        agent.followup(bad)
        await agent.when_idle()
        assert agent.id not in world.events
        assert ("agent/inbox/discarded", bad, "error") in world.heard
        assert "agent/error" in world.names()
        await world.prompt(agent)
        assert world.reasons(agent) == [COMPLETED]


def full_disk(_runtime: object) -> FailingStore:
    return FailingStore()


async def test_a_write_failure_is_seen_at_the_next_chunk():
    gate, after = Gate(), Gate()
    answer = [*says("hi")[:2], gate, *says("x")[:1], after, *says("never")]
    async with agent_world(answer, says("ok"), store=full_disk) as world:
        assert isinstance(world.store, FailingStore)
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        world.store.broken = True
        gate.open()
        await after.reached.wait()
        await anyio.wait_all_tasks_blocked()
        after.open()
        await agent.when_idle()
        [reason] = world.reasons(agent)
        assert (reason["kind"], reason["code"]) == ("error", "PERSISTENCE")
        assert world.of(agent, "assistant/message") == []
        assert world.heard[-2] == ("agent/turn-end", 1, reason, False)
        world.store.broken = False
        await then_it_goes_on(world, agent)
        # nothing was lost in between
        assert [event.seq for event in world.store.logs[agent.id].events] == list(range(agent.session.next_seq))


async def test_no_tool_runs_when_its_call_is_not_on_the_disk():
    tool = ScriptedTool()
    async with agent_world(calls(ECHO), says("ok"), store=full_disk) as world:
        assert isinstance(world.store, FailingStore)
        store = world.store
        world.tools.register(tool)
        agent = world.agent()

        def fill(_session: object, event: Any) -> None:
            if event.type == "tool/call":
                store.broken = True

        remove = world.hooks.on("session/event", fill)
        await world.prompt(agent)
        assert tool.ran == []
        [reason] = world.reasons(agent)
        assert (reason["kind"], reason["code"]) == ("error", "PERSISTENCE")
        assert world.of(agent, "tool/result")[0]["error"]["code"] == "aborted-before-dispatch"
        assert world.heard[-2] == ("agent/turn-end", 1, reason, False)
        remove()
        store.broken = False
        await then_it_goes_on(world, agent)


async def test_a_disk_that_is_still_full_ends_the_next_turn_before_its_first_call():
    async with agent_world(says("hi"), store=full_disk) as world:
        assert isinstance(world.store, FailingStore)
        agent = world.agent()
        world.store.broken = True
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert len(world.adapter.requests) == 1
        assert [reason.get("code") for reason in world.reasons(agent)] == [None, "PERSISTENCE"]
        world.store.broken = False


async def test_a_flush_that_somebody_denies_ends_the_turn_too():
    tool = ScriptedTool()
    async with agent_world(calls(ECHO)) as world:
        world.tools.register(tool)
        agent = world.agent()

        async def deny(_session: object) -> bool:
            return False

        world.hooks.on("session/flush", deny)
        await world.prompt(agent)
        assert tool.ran == []
        [reason] = world.reasons(agent)
        assert (reason["code"], reason["step"]) == ("PERSISTENCE", 1)


async def test_a_disk_that_never_answers_does_not_keep_the_driver():
    async with agent_world(says("hi"), flush_seconds=0.01) as world:
        agent = world.agent()

        async def never(_session: object) -> bool:
            await anyio.sleep_forever()
            raise AssertionError

        remove = world.hooks.on("session/flush", never)
        await world.prompt(agent)
        assert world.heard[-2] == ("agent/turn-end", 1, COMPLETED, False)
        remove()


async def test_the_end_of_the_host_closes_the_turn():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()

        async def slow(_session: object) -> bool:
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            return True

        world.hooks.on("session/flush", slow)
        agent.followup(world.message("go"))
        await gate.reached.wait()
        world.tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await agent.when_idle()
        assert world.reasons(agent) == [{"kind": "disposed"}]
        assert world.heard[-2] == ("agent/turn-end", 1, {"kind": "disposed"}, True)
        balanced(world, agent)


async def test_the_end_of_the_host_inside_a_tool_logs_the_result():
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
        world.tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await agent.when_idle()
        assert world.of(agent, "tool/result")[0]["error"]["code"] == "aborted"
        balanced(world, agent)


async def test_an_error_after_an_abort_is_an_abort():
    gate = Gate()

    async def body(_arguments: Any, context: ToolContext) -> ToolOutcome:
        await gate.wait()
        return outcome("done")

    policy = ScriptedPolicy(Decision("allow", "user"))
    async with agent_world(calls(ECHO), policy=policy) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()

        async def broken(_call: Any, _context: Any, _inner: Any) -> ToolOutcome:
            agent.cancel("session/cancel")
            raise RuntimeError("late")

        world.hooks.wrap("tools/execute", broken)

        def fail(_session: object, event: Any) -> None:
            raise RuntimeError("a listener's bug")

        world.hooks.on("session/event", fail)
        await world.prompt(agent)
        assert world.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]
        assert "agent/error" not in world.names()


async def test_an_exception_of_the_aborted_stream_is_no_error():
    async with agent_world() as world:
        agent = world.agent()

        async def rude(_request: Any, _inner: Any) -> Any:
            agent.cancel("session/cancel")
            raise LlmError("cancelled", "ABORTED")
            yield

        world.hooks.wrap("llm/stream", rude)
        await world.prompt(agent)
        assert world.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]
        assert "agent/error" not in world.names()
