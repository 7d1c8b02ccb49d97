"""Arbitrary schedules of send, steer, inject, cancel against a model that never runs dry (properties.md)."""

from collections.abc import Iterable
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_loop.agent import Agent
from agent_loop.llm.history import normalise
from agent_loop.session.events import NESTED_TYPES, SessionEvent
from agent_loop.tools.seam import Decision
from tests.support.agent_world import PLUGIN, USER, World, agent_world
from tests.support.scripted_adapter import Gate, calls, says
from tests.support.scripted_policy import ScriptedPolicy
from tests.support.scripted_tool import ScriptedTool

ANSWERS = {
    "text": says("ok"),
    "tool": calls(("call", "echo", {"value": "x"})),
    "two tools": calls(("call", "read", {}), ("other", "read", {}), ("call", "echo", {})),
    "cut": calls(("call", "echo", {}), finish="max-tokens"),
    "failure": [*says("half")[:2], ValueError("no")],
}
SENDS = st.tuples(st.sampled_from(["followup", "steer", "inject"]), st.sampled_from([USER, PLUGIN]))
ACTIONS = st.one_of(
    SENDS,
    st.tuples(st.just("cancel")),
    st.tuples(st.just("withdraw")),
    st.tuples(st.just("tick"), st.integers(1, 12)),
    st.tuples(st.just("settle")),
)


class Book:
    """What became of every message, as the bus told it."""

    def __init__(self, world: World) -> None:
        self.sent: list[str] = []
        self.left: list[tuple[str, str]] = []
        self.statuses: list[str] = []
        world.hooks.on("agent/inbox/claimed", lambda _agent, message, _turn: self.left.append((message.id, "claimed")))
        world.hooks.on("agent/inbox/discarded", lambda _agent, message, reason: self.left.append((message.id, reason)))
        world.hooks.on("agent/status", lambda _agent, status: self.statuses.append(status))


async def play(world: World, agent: Agent, book: Book, schedule: Iterable[tuple[Any, ...]]) -> None:
    for action, *arguments in schedule:
        match action:
            case "cancel":
                agent.cancel("session/cancel")
            case "withdraw":
                if agent.pending:
                    agent.withdraw(agent.pending[-1].id, "cancel_request")
            case "tick":
                for _ in range(arguments[0]):
                    await anyio.lowlevel.checkpoint()
            case "settle":
                await agent.when_idle()
            case _:
                message = world.message(action, arguments[0])
                book.sent.append(message.id)
                getattr(agent, action)(message)


def check_nesting(events: list[SessionEvent]) -> None:
    turn = step = None
    last_turn = 0
    open_calls: set[str] = set()
    assert [event.seq for event in events] == list(range(len(events)))
    for event in events:
        data = event.data
        match event.type:
            case "turn/start":
                assert turn is None
                assert data["turn"] == last_turn + 1
                turn = last_turn = data["turn"]
                step = None
                steps = 0
            case "turn/end":
                assert data["turn"] == turn
                assert step is None
                turn = None
            case "step/start":
                steps += 1
                assert (data["turn"], data["step"], step) == (turn, steps, None)
                step = steps
            case "step/end":
                assert data["step"] == step
                assert not open_calls
                step = None
            case "tool/call":
                open_calls.add(data["callId"])
            case "tool/result":
                open_calls.remove(data["callId"])
            case _:
                pass
        if event.type in NESTED_TYPES and event.type != "turn/end":
            assert turn is not None
    assert turn is None


@settings(max_examples=150, deadline=None)
@given(
    answers=st.lists(st.sampled_from(sorted(ANSWERS)), max_size=8),
    schedule=st.lists(ACTIONS, max_size=14),
    decisions=st.lists(st.sampled_from(["allow", "reject"]), max_size=3),
)
async def test_any_schedule_loses_no_message_and_keeps_every_rule(
    answers: list[str], schedule: list[tuple[Any, ...]], decisions: list[Any]
):
    policy = ScriptedPolicy(*(Decision(outcome, "user") for outcome in decisions), asks_about={"echo"})
    # a question without an answer is a user who went away: denied at once, else the schedule would wait for ever
    policy.answer(Decision("reject", "user"))
    async with agent_world(*(ANSWERS[name] for name in answers), fallback=says("ok"), policy=policy) as world:
        world.tools.register(ScriptedTool())
        world.tools.register(ScriptedTool("read", concurrency_safe=True))
        agent = world.agent(max_steps=5)
        book = Book(world)
        await play(world, agent, book, schedule)
        await agent.when_idle()

        # what was sent has left exactly once, or still waits without a wake
        waiting = [message.id for message in agent.pending]
        assert sorted([*(message for message, _how in book.left), *waiting]) == sorted(book.sent)
        # only a cancel or a withdrawal lost one
        assert {how for _message, how in book.left} <= {"claimed", "session/cancel", "cancel_request"}
        claimed = [message for message, how in book.left if how == "claimed"]
        events = world.events.get(agent.id, [])
        assert len(claimed) == sum(event.type in ("user/message", "context/message") for event in events)
        # running, idle, running, idle …
        assert book.statuses == ["running", "idle"] * (len(book.statuses) // 2)
        check_nesting(events)
        # one model call per step, and what it was given was valid
        called = [(request.turn, request.step) for request in world.adapter.requests]
        assert len(called) == len(set(called))
        history = await agent.session.messages()
        once = normalise(history, reasoning="echo", merge_users=False)
        assert normalise(once, reasoning="echo", merge_users=False) == once
        answered = [block for message in history for block in message["content"] if block["type"] == "tool-result"]
        wanted = [block for message in history for block in message["content"] if block["type"] == "tool-call"]
        assert [block["toolCallId"] for block in answered] == [block["id"] for block in wanted]
        assert len({block["id"] for block in wanted}) == len(wanted)
        assert world.errors == []


@settings(max_examples=50, deadline=None)
@given(ticks=st.integers(0, 30), answer=st.sampled_from(sorted(ANSWERS)), late=st.booleans())
async def test_a_cancel_at_any_tick_leaves_an_agent_that_works(ticks: int, answer: str, late: bool):
    gate = Gate()
    gate.open()
    async with agent_world([gate, *ANSWERS[answer]], fallback=says("ok")) as world:
        world.tools.register(ScriptedTool())
        world.tools.register(ScriptedTool("read", concurrency_safe=True))
        agent = world.agent()
        agent.followup(world.message("first"))
        for _ in range(ticks):
            await anyio.lowlevel.checkpoint()
        agent.cancel("session/cancel")
        if not late:
            await agent.when_idle()
        await world.prompt(agent, "second")
        assert world.texts(agent)[-1] == "second"
        # the first answer is still to come when the cancel preceded the call
        assert world.reasons(agent)[-1]["kind"] in ("completed", "max-tokens", "error")
        check_nesting(world.events[agent.id])
