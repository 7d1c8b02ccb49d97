"""Steps: the request, its header, the stream, the message."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anyio

from agent_loop.errors import LlmError
from agent_loop.llm.fingerprint import Scrub, fingerprint
from agent_loop.llm.seam import LlmRequest
from agent_loop.prompt import PromptSection
from agent_loop.step import StepResult
from tests.support.agent_world import CWD, MODEL, agent_world
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_tool import ScriptedTool

ECHO = ("call-1", "echo", {"value": "x"})


async def test_the_header_stands_right_behind_the_step_start_and_signs_the_request():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        await world.prompt(agent)
        types = [event.type for event in world.events[agent.id]]
        assert types[types.index("step/start") + 1] == "request/header"
        [header] = world.of(agent, "request/header")
        [request] = world.adapter.requests
        assert header == {
            "turn": 1,
            "step": 1,
            "model": MODEL,
            "provider": "test",
            "fingerprint": fingerprint(request, scrub=Scrub(cwd=CWD, session_id=agent.id)),
            "system": "You are a test.",
        }
        assert (request.session_id, request.turn, request.step) == (agent.id, 1, 1)


async def test_the_header_is_logged_before_the_model_has_said_anything():
    async with agent_world([HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        while "request/header" not in [event.type for event in world.events.get(agent.id, [])]:
            await anyio.lowlevel.checkpoint()
        assert len(world.adapter.requests) == 1
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert len(world.of(agent, "request/header")) == 1


async def test_the_header_of_a_call_that_fails_at_once_is_logged():
    async with agent_world([LlmError("no key", "NO_CREDENTIAL")]) as world:
        agent = world.agent()
        await world.prompt(agent)
        types = [event.type for event in world.events[agent.id]]
        assert types[types.index("step/start") :] == ["step/start", "request/header", "step/end", "turn/end"]


async def test_a_layer_about_the_call_finds_the_header_in_the_log():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        found: list[int] = []

        def look(request: LlmRequest, inner: Any) -> Any:
            found.append(len(world.of(agent, "request/header")))
            return inner(request)

        world.hooks.wrap("llm/stream", look)
        await world.prompt(agent)
        assert found == [1]
        assert len(world.of(agent, "request/header")) == 1


async def test_a_retry_is_logged_behind_the_header():
    answers = [LlmError("busy", "RATE_LIMIT")], says("hi")
    async with agent_world(*answers) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        while "llm/retry" not in [event.type for event in world.events.get(agent.id, [])]:
            await anyio.lowlevel.checkpoint()
        world.runtime.advance(10_000)
        await agent.when_idle()
        types = [event.type for event in world.events[agent.id]]
        at = types.index("request/header")
        assert types[at - 1 : at + 3] == ["step/start", "request/header", "llm/retry", "assistant/chunk"]


async def test_optional_parts_of_the_header_are_logged_only_when_they_change():
    async with agent_world(fallback=says("hi")) as world:
        agent = world.agent()
        temperature: float | None = None

        async def tune(request: LlmRequest, inner: Any) -> LlmRequest:
            return await inner(replace(request, temperature=temperature))

        world.hooks.wrap("agent/request", tune)
        await world.prompt(agent)
        await world.prompt(agent)
        remove = world.tools.register(ScriptedTool())
        temperature = 0.5
        await world.prompt(agent)
        await world.prompt(agent)
        remove()
        temperature = None
        await world.prompt(agent)
        optional = [
            {key: header[key] for key in ("system", "tools", "parameters") if key in header}
            for header in world.of(agent, "request/header")
        ]
        assert optional == [
            {"system": "You are a test."},
            {},
            {"tools": world.adapter.requests[2].tools, "parameters": {"temperature": 0.5}},
            {},
            {"tools": [], "parameters": {}},
        ]


async def test_layers_shape_the_system_prompt_once_per_step():
    async with agent_world(fallback=says("hi")) as world:
        agent = world.agent()
        extra: tuple[PromptSection, ...] = (PromptSection("late", 10, "And polite."), PromptSection("empty", 5, ""))

        async def add(sections: tuple[PromptSection, ...], inner: Any) -> Any:
            return (*await inner(sections), *extra)

        async def drop(_sections: Any, _inner: Any) -> Any:
            return ()

        world.hooks.wrap("system-prompt/assemble", add)
        await world.prompt(agent)
        assert world.adapter.requests[0].system == "You are a test.\n\nAnd polite."
        world.hooks.wrap("system-prompt/assemble", drop)
        extra = ()
        await world.prompt(agent)
        assert world.adapter.requests[1].system is None
        assert world.of(agent, "request/header")[1]["system"] == ""
        await world.prompt(agent)
        assert "system" not in world.of(agent, "request/header")[2]


async def test_reasoning_goes_back_as_the_model_wants_it():
    thought = [
        {"type": "reasoning-delta", "index": 0, "text": "hmm"},
        {"type": "text-delta", "index": 1, "text": "hi"},
        {"type": "finish", "reason": {"kind": "stop"}},
    ]
    async with agent_world(fallback=thought) as world:
        agent = world.agent()
        await world.prompt(agent)
        await world.prompt(agent)
        agent.use_model(provider="test", model=MODEL, reasoning="strip")
        await world.prompt(agent)
        echoed, stripped = (request.messages[1]["content"] for request in world.adapter.requests[1:])
        assert [block["type"] for block in echoed] == ["reasoning", "text"]
        assert [block["type"] for block in stripped] == ["text"]


async def test_another_model_holds_from_the_next_turn_on():
    gate = Gate()
    async with agent_world([gate, *calls(ECHO)], says("done"), says("hi")) as world:
        world.tools.register(ScriptedTool())
        world.llm.register_adapter(["scripted-2"], world.adapter)
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        agent.use_model(provider="other", model="scripted-2", merge_users=True)
        gate.open()
        await agent.when_idle()
        await world.prompt(agent)
        assert [request.model for request in world.adapter.requests] == [MODEL, MODEL, "scripted-2"]
        assert world.of(agent, "request/header")[2]["provider"] == "other"
        assert agent.options.merge_users


async def test_a_repeated_call_id_is_made_unique_in_chunk_message_call_and_result():
    async with agent_world(calls(ECHO), calls(ECHO), says("done")) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()
        await world.prompt(agent)
        assert [data["callId"] for data in world.of(agent, "tool/call")] == ["call-1", "call-1#1.2"]
        assert [data["callId"] for data in world.of(agent, "tool/result")] == ["call-1", "call-1#1.2"]
        assert world.of(agent, "assistant/message")[1]["content"][0]["id"] == "call-1#1.2"
        deltas = [data["chunk"] for data in world.of(agent, "assistant/chunk")]
        assert [chunk["id"] for chunk in deltas if chunk["type"] == "tool-call-delta"] == ["call-1", "call-1#1.2"]


async def test_a_layer_may_change_the_answer_before_it_is_logged():
    async with agent_world(says("draft")) as world:
        agent = world.agent()

        async def rewrite(result: StepResult, inner: Any) -> StepResult:
            seen: StepResult = await inner(result)
            return replace(seen, content=[{"type": "text", "text": seen.content[0]["text"].upper()}])

        world.hooks.wrap("agent/step-result", rewrite)
        await world.prompt(agent)
        assert world.of(agent, "assistant/message")[0]["content"] == [{"type": "text", "text": "DRAFT"}]


async def test_usage_is_logged_also_with_an_empty_message():
    usage = {"inputTokens": 7, "outputTokens": 0}
    answer = [{"type": "usage", "usage": usage}, {"type": "finish", "reason": {"kind": "stop"}}]
    async with agent_world(answer) as world:
        agent = world.agent()
        await world.prompt(agent)
        assert world.of(agent, "assistant/message") == [{"turn": 1, "step": 1, "content": [], "usage": usage}]


async def test_a_retry_is_logged():
    failure = LlmError("busy", "RATE_LIMIT")
    async with agent_world([failure], says("hi")) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        while not world.of(agent, "llm/retry") if agent.id in world.events else True:
            await anyio.wait_all_tasks_blocked()
        world.runtime.advance(60_000)
        await agent.when_idle()
        [retry] = world.of(agent, "llm/retry")
        assert retry == {"turn": 1, "step": 1, "attempt": 1, "code": "RATE_LIMIT", "delayMs": 500}
        assert world.reasons(agent) == [{"kind": "completed"}]


async def test_somebody_who_listens_to_the_flow_holds_the_stream_before_each_chunk():
    async with agent_world(says("hi")) as world:
        agent = world.agent()
        drained = anyio.Event()
        logged: list[int] = []

        async def full(which: object, signal: Any) -> None:
            assert which is agent
            assert not signal.aborted
            logged.append(len(world.of(agent, "assistant/chunk")))
            await drained.wait()

        world.hooks.on("agent/flow", full, agent=agent.id)
        agent.followup(world.message("go"))
        while not logged:
            await anyio.wait_all_tasks_blocked()
        assert world.of(agent, "assistant/chunk") == []
        drained.set()
        await agent.when_idle()
        assert logged == [0, 1, 2, 3]


async def test_a_stream_that_never_waits_leaves_the_loop_to_others():
    def endless() -> Any:
        return [{"type": "text-delta", "index": 0, "text": "x"}] * 10_000

    async with agent_world(endless()) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        while not world.events.get(agent.id):
            await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert len(world.of(agent, "assistant/chunk")) < 1_000
        assert world.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]


async def test_an_abort_is_seen_before_the_chunk_is_logged():
    async with agent_world(says("hi")) as world:
        agent = world.agent()

        async def cancel(_agent: object, _signal: object) -> None:
            agent.cancel("session/cancel")

        world.hooks.on("agent/flow", cancel)
        await world.prompt(agent)
        assert world.of(agent, "assistant/chunk") == []
        assert world.of(agent, "assistant/message") == []


async def test_an_abort_that_the_stream_swallows_still_ends_the_step():
    async with agent_world() as world:
        agent = world.agent()

        async def deaf(_request: LlmRequest, _inner: Any) -> AsyncIterator[Any]:
            agent.cancel("session/cancel")
            for chunk in says("hi"):
                yield chunk

        world.hooks.wrap("llm/stream", deaf)
        await world.prompt(agent)
        assert world.of(agent, "assistant/chunk") == []
        assert world.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]


async def test_a_provider_that_says_aborted_aborts_the_turn_without_a_reason():
    async with agent_world(says("half", finish="aborted")) as world:
        agent = world.agent()
        await world.prompt(agent)
        assert world.of(agent, "assistant/message") == []
        assert world.reasons(agent) == [{"kind": "aborted"}]


async def test_an_error_finish_ends_the_turn_with_its_code():
    failed = {"type": "finish", "reason": {"kind": "error", "message": "overloaded", "code": "SERVER"}}
    bare = {"type": "finish", "reason": {"kind": "error"}}
    async with agent_world([failed], [bare]) as world:
        agent = world.agent()
        await world.prompt(agent)
        await world.prompt(agent)
        assert world.of(agent, "assistant/message") == []
        assert world.reasons(agent) == [
            {"kind": "error", "step": 1, "message": "overloaded", "code": "SERVER"},
            {"kind": "error", "step": 1, "message": "the model call failed", "code": "ERROR"},
        ]


async def test_what_a_failed_step_said_is_not_history():
    async with agent_world([*says("half")[:2], LlmError("cut", "STREAM_CLOSED")], says("whole")) as world:
        agent = world.agent()
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert [message["role"] for message in world.adapter.requests[1].messages] == ["user", "user"]
        assert world.types(agent, chunks=True)[:7] == [
            "turn/start",
            "user/message",
            "step/start",
            "assistant/chunk",
            "assistant/chunk",
            "step/end",
            "turn/end",
        ]


async def test_the_stream_is_closed_when_it_hangs_and_the_turn_is_cancelled():
    gate = Gate()
    async with agent_world([*says("x")[:2], gate, HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        gate.open()
        await anyio.wait_all_tasks_blocked()
        assert world.adapter.open_streams == 1
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.adapter.open_streams == 0


KEY = "hunter2-is-it"


async def test_a_secret_in_an_answer_a_prompt_or_the_system_prompt_reaches_neither_the_log_nor_the_model():
    answer = [{"type": "text-delta", "index": 0, "text": part} for part in ("it is hun", "ter2-i", "s-it", "!")]
    async with agent_world([*answer, {"type": "finish", "reason": {"kind": "stop"}}], says("ok")) as world:
        world.secrets.add("KEY", KEY)
        agent = world.agent(system_prompt=(PromptSection("role", 0, f"Never say {KEY}."),))
        await world.prompt(agent, f"say {KEY}")
        await world.prompt(agent)
        log = repr(world.events[agent.id])
        [first, second] = world.adapter.requests
        assert KEY not in log + repr(first.messages) + repr(second.messages)
        assert first.system == "Never say [redacted:KEY]."
        shown = "".join(data["chunk"].get("text", "") for data in world.of(agent, "assistant/chunk")[:-3])
        assert shown == "it is hun[redacted:KEY]!"
        assert second.messages[1]["content"] == [{"type": "text", "text": shown}]


async def test_a_key_that_becomes_known_later_leaves_the_system_prompt_then():
    async with agent_world(fallback=says("ok")) as world:
        agent = world.agent(system_prompt=(PromptSection("role", 0, f"Never say {KEY}."),))
        await world.prompt(agent)
        world.secrets.add("KEY", KEY)
        await world.prompt(agent)
        assert [request.system for request in world.adapter.requests] == [
            f"Never say {KEY}.",
            "Never say [redacted:KEY].",
        ]


async def test_a_call_runs_with_its_secret_and_is_logged_without_it():
    tool = ScriptedTool()
    async with agent_world(calls(("call-1", "echo", {"value": f"a {KEY}"})), says("ok")) as world:
        world.secrets.add("KEY", KEY)
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert tool.ran == [{"value": f"a {KEY}"}]
        assert KEY not in repr(world.events[agent.id])
        [call] = world.of(agent, "tool/call")
        [message, _last] = world.of(agent, "assistant/message")
        assert call["arguments"] == message["content"][0]["arguments"] == '{"value": "a [redacted:KEY]"}'


async def test_what_was_held_back_when_the_call_failed_is_logged():
    async with agent_world([{"type": "text-delta", "index": 0, "text": "hunter2-"}, LlmError("gone", "X")]) as world:
        world.secrets.add("KEY", KEY)
        agent = world.agent()
        await world.prompt(agent)
        assert [data["chunk"]["text"] for data in world.of(agent, "assistant/chunk")] == ["hunter2-"]


async def test_the_end_of_a_turn_is_told_as_it_is_logged():
    async with agent_world([LlmError(f"bad key {KEY}", "X")]) as world:
        world.secrets.add("KEY", KEY)
        agent = world.agent()
        await world.prompt(agent)
        [(_name, _turn, reason, _persisted)] = [row for row in world.heard if row[0] == "agent/turn-end"]
        assert reason["message"] == "bad key [redacted:KEY]"
        assert reason == world.of(agent, "turn/end")[0]["reason"]
