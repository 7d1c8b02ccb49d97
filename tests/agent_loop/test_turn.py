"""Turns: what is logged in which order, how they go on and how they end."""

from typing import Any

import anyio
import pytest

from agent_loop.agent import InboxMessage
from agent_loop.errors import DuplicateError
from tests.support.agent_world import PLUGIN, agent_world
from tests.support.scripted_adapter import Gate, calls, says
from tests.support.scripted_tool import ScriptedTool

ECHO = ("call-1", "echo", {"value": "x"})


async def test_a_text_turn_is_logged_in_the_order_of_the_contract():
    usage = {"inputTokens": 3, "outputTokens": 5}
    async with agent_world(says("hi there", usage=usage)) as world:
        agent = world.agent()
        await world.prompt(agent, "hello")
        assert [event.type for event in world.events[agent.id]] == [
            "turn/start",
            "user/message",
            "step/start",
            "request/header",
            *["assistant/chunk"] * 5,
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        [start] = world.of(agent, "turn/start")
        assert start == {"turn": 1, "trigger": {"kind": "message", "source": {"kind": "user"}}}
        [message] = world.of(agent, "assistant/message")
        assert message == {"turn": 1, "step": 1, "content": [{"type": "text", "text": "hi there"}], "usage": usage}
        assert world.reasons(agent) == [{"kind": "completed"}]
        assert agent.active_turn is None


async def test_chunks_are_logged_verbatim():
    answer = says("hi")
    async with agent_world(answer) as world:
        agent = world.agent()
        await world.prompt(agent)
        assert [data["chunk"] for data in world.of(agent, "assistant/chunk")] == answer


async def test_a_tool_call_is_run_and_the_next_step_sees_its_result():
    async with agent_world(calls(ECHO), says("done")) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()
        await world.prompt(agent)
        assert world.types(agent) == [
            "turn/start",
            "user/message",
            "step/start",
            "assistant/message",
            "tool/call",
            "tool/result",
            "step/end",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        second = world.adapter.requests[1]
        assert second.messages[-1] == {
            "role": "user",
            "content": [
                {"type": "tool-result", "toolCallId": "call-1", "content": [{"type": "text", "text": "ran x"}]}
            ],
        }
        assert (second.turn, second.step) == (1, 2)


async def test_turn_numbers_continue_from_the_log():
    async with agent_world(says("one"), says("two")) as world:
        agent = world.agent()
        await world.prompt(agent)
        await world.prompt(agent)
        assert [data["turn"] for data in world.of(agent, "turn/start")] == [1, 2]


async def test_notifications_follow_their_events_in_order():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        message = world.message("hello")
        seen: list[tuple[str, str]] = []
        for name in ("agent/turn-start", "agent/step-start", "agent/step-end", "agent/inbox/claimed", "agent/turn-end"):
            world.hooks.on(name, lambda *_args, name=name: seen.append((name, world.events[agent.id][-1].type)))
        agent.followup(message)
        await agent.when_idle()
        assert world.heard == [
            ("agent/created",),
            ("agent/inbox/inserted", message),
            ("agent/status", "running"),
            ("agent/turn-start", 1),
            ("agent/inbox/claimed", message, 1),
            ("agent/step-start", 1, 1),
            ("agent/step-end", 1, 1),
            ("agent/turn-end", 1, {"kind": "completed"}, True),
            ("agent/status", "idle"),
        ]
        assert seen == [
            ("agent/turn-start", "turn/start"),
            ("agent/inbox/claimed", "user/message"),
            ("agent/step-start", "step/start"),
            ("agent/step-end", "step/end"),
            ("agent/turn-end", "turn/end"),
        ]


async def test_the_log_is_flushed_before_the_turn_end_is_told():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        order: list[str] = []

        async def flushed(_session: object) -> bool:
            order.append("flush")
            return True

        world.hooks.on("session/flush", flushed)
        world.hooks.on("agent/turn-end", lambda *_args: order.append("turn-end"))
        await world.prompt(agent)
        assert order == ["flush", "turn-end"]


async def test_every_queued_prompt_is_a_turn_of_its_own():
    async with agent_world(fallback=says("ok")) as world:
        agent = world.agent()
        agent.followup(world.message("one"))
        agent.followup(world.message("two"))
        await agent.when_idle()
        assert world.texts(agent) == ["one", "two"]
        assert len(world.reasons(agent)) == 2


async def test_a_steering_message_extends_the_turn_before_it_closes():
    gate = Gate()
    async with agent_world([gate, *says("one")], says("two")) as world:
        agent = world.agent()
        agent.followup(world.message("prompt"))
        await gate.reached.wait()
        agent.steer(world.message("also this"))
        gate.open()
        await agent.when_idle()
        assert len(world.of(agent, "turn/start")) == 1
        assert world.types(agent) == [
            "turn/start",
            "user/message",
            "step/start",
            "assistant/message",
            "step/end",
            "user/message",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end",
        ]


async def test_plugin_messages_extend_a_turn_by_at_most_one_step():
    first, second, third = Gate(), Gate(), Gate()
    answers = ([first, *says("1")], [second, *says("2")], [third, *says("3")], says("4"))
    async with agent_world(*answers) as world:
        agent = world.agent()
        agent.followup(world.message("prompt"))
        await first.reached.wait()
        agent.steer(world.message("beat 1", PLUGIN))
        first.open()
        await second.reached.wait()
        agent.steer(world.message("beat 2", PLUGIN))
        agent.followup(world.message("queued prompt"))
        second.open()
        await third.reached.wait()
        third.open()
        await agent.when_idle()
        starts = [event.data["turn"] for event in world.log(agent) if event.type == "step/start"]
        assert starts == [1, 1, 2, 3]
        # the late one stands behind the queued prompt
        assert world.texts(agent) == ["prompt", "beat 1", "queued prompt", "beat 2"]


async def test_an_injected_message_is_context():
    async with agent_world(fallback=says("ok")) as world:
        agent = world.agent()
        agent.inject(world.message("by the way", PLUGIN))
        assert agent.status == "idle"
        agent.followup(world.message("prompt"))
        await agent.when_idle()
        assert world.types(agent)[:3] == ["turn/start", "context/message", "user/message"]
        # the prompt is the cause of the turn
        assert world.of(agent, "turn/start")[0]["trigger"]["source"] == {"kind": "user"}


async def test_a_late_notice_gets_a_turn_by_injection():
    first, second = Gate(), Gate()
    async with agent_world([first, *says("1")], [second, *says("2")], says("3")) as world:
        agent = world.agent()
        agent.followup(world.message("prompt"))
        await first.reached.wait()
        agent.inject(world.message("notice 1", PLUGIN))
        first.open()
        await second.reached.wait()
        agent.inject(world.message("notice 2", PLUGIN))
        second.open()
        await agent.when_idle()
        assert world.of(agent, "turn/start")[1]["trigger"] == {"kind": "injection", "source": PLUGIN}
        assert len(world.of(agent, "context/message")) == 2


async def test_a_turn_ends_at_the_step_cap():
    async with agent_world(fallback=calls(ECHO)) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent(max_steps=3)
        await world.prompt(agent)
        assert len(world.adapter.requests) == 3
        assert world.reasons(agent) == [{"kind": "max-steps"}]


async def test_an_answer_cut_by_length_runs_no_tool():
    async with agent_world(calls(ECHO, finish="max-tokens")) as world:
        tool = ScriptedTool()
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert tool.ran == []
        assert world.of(agent, "assistant/message")[0]["content"] == []
        assert world.reasons(agent) == [{"kind": "max-tokens"}]


async def test_max_tokens_sticks_to_the_end_of_the_turn():
    gate = Gate()
    async with agent_world([gate, *says("cut", finish="max-tokens")], says("more")) as world:
        agent = world.agent()
        agent.followup(world.message("prompt"))
        await gate.reached.wait()
        agent.steer(world.message("go on"))
        gate.open()
        await agent.when_idle()
        assert len(world.adapter.requests) == 2
        assert world.reasons(agent) == [{"kind": "max-tokens"}]


async def test_a_refused_turn_leaves_the_history():
    async with agent_world(says("first"), calls(ECHO, finish="refusal"), says("third")) as world:
        tool = ScriptedTool()
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent, "good")
        await world.prompt(agent, "bad")
        await world.prompt(agent, "good again")
        assert tool.ran == []
        assert world.reasons(agent)[1] == {"kind": "refusal"}
        texts = [message["content"][0]["text"] for message in world.adapter.requests[2].messages]
        assert texts == ["good", "first", "good again"]


async def test_a_finish_that_we_do_not_know_is_a_stop():
    async with agent_world(says("hi", finish="something-new")) as world:
        agent = world.agent()
        await world.prompt(agent)
        assert world.reasons(agent) == [{"kind": "completed"}]


async def test_a_layer_may_end_or_continue_a_turn():
    async with agent_world(calls(ECHO), says("again"), says("again")) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()

        async def stop(_wanted: bool, _next: Any) -> bool:
            return False

        remove = world.hooks.wrap("agent/turn-continuation", stop)
        await world.prompt(agent)
        assert len(world.adapter.requests) == 1
        remove()
        asked: list[bool] = []

        async def once_more(wanted: bool, inner: Any) -> bool:
            asked.append(await inner(wanted))
            return len(asked) == 1

        world.hooks.wrap("agent/turn-continuation", once_more)
        await world.prompt(agent)
        assert asked == [False, False]
        assert len(world.adapter.requests) == 3


async def test_a_cancel_ends_a_layer_that_never_answers():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        asked = anyio.Event()

        async def never(_wanted: bool, _next: Any) -> bool:
            asked.set()
            await anyio.sleep_forever()
            raise AssertionError

        world.hooks.wrap("agent/turn-continuation", never)
        agent.followup(world.message("prompt"))
        await asked.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]


async def test_two_agents_do_not_mix():
    first, second = Gate(), Gate()
    async with agent_world([first, *says("one")], [second, *says("two")]) as world:
        one, two = world.agent(), world.agent()
        one.followup(world.message("to one"))
        two.followup(world.message("to two"))
        await first.reached.wait()
        await second.reached.wait()
        second.open()
        await two.when_idle()
        assert one.status == "running"
        first.open()
        await one.when_idle()
        assert world.texts(one) == ["to one"]
        assert world.texts(two) == ["to two"]


async def test_a_pending_id_is_refused_and_may_be_used_again_later():
    gate = Gate()
    async with agent_world([gate, *says("1")], says("2"), says("3")) as world:
        agent = world.agent()
        agent.followup(world.message("running"))
        await gate.reached.wait()
        queued = InboxMessage("same", [], {"kind": "user"})
        agent.followup(queued)
        assert agent.pending == (queued,)
        with pytest.raises(DuplicateError):
            agent.followup(queued)
        gate.open()
        await agent.when_idle()
        agent.followup(queued)
        await agent.when_idle()
        assert len(world.reasons(agent)) == 3
