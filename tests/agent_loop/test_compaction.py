"""What is summarised, when, and what becomes of the history when it works and when it does not."""

from dataclasses import replace

import anyio
import pytest

from agent_loop.compaction import is_due, plan_compaction
from agent_loop.errors import LlmError
from agent_loop.inbox import InboxMessage
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.derive import Entry, derive_messages
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.tools.seam import AllowAll
from agent_loop.vocabulary import text_block
from tests.support.agent_world import CWD, OPTIONS, USER, agent_world
from tests.support.scripted_adapter import Gate, calls, says
from tests.support.scripted_tool import ScriptedTool, outcome

FULL = {"inputTokens": 900, "outputTokens": 10}
SMALL = {"inputTokens": 100, "outputTokens": 1}
AUTO = {"window": 1000, "compact_at": 0.8}
OVERFLOW = LlmError("too long", "CONTEXT_OVERFLOW")
LONG = "x" * 5000
SUMMARY = ["<context source=compaction>", "SUM", "</context>"]


def said(text):
    return {"role": "user", "content": [text_block(text)]}


def answer(text):
    return {"role": "assistant", "content": [text_block(text)]}


def call(*ids):
    blocks = [{"type": "tool-call", "id": each, "name": "t", "arguments": "{}"} for each in ids]
    return {"role": "assistant", "content": blocks}


def result(call_id, *blocks):
    return {"role": "user", "content": [{"type": "tool-result", "toolCallId": call_id, "content": list(blocks)}]}


def entries(*messages, prompts=()):
    return [Entry(seq * 10, message, seq in prompts) for seq, message in enumerate(messages)]


def options(**changes):
    return replace(OPTIONS, **changes)


def cut(plan):
    return plan and (plan.first, plan.last, len(plan.messages))


def sent(world, number=-1):
    """The texts of a request."""
    blocks = [block for message in world.adapter.requests[number].messages for block in message["content"]]
    return [block.get("text", block["type"]) for block in blocks]


def ask(text=""):
    return InboxMessage(f"compact-{text}", [], USER, text)


async def big(_arguments, _context):
    """The body of a tool whose result is long."""
    return outcome(LONG)


async def summarise(world, agent, text=""):
    agent.followup(ask(text))
    await agent.when_idle()


# when, and what


@pytest.mark.parametrize(
    ("used", "window", "share", "due"),
    [
        (800, 1000, 0.8, True),
        (799, 1000, 0.8, False),
        (None, 1000, 0.8, False),
        (800, None, 0.8, False),
        (1000, 1000, None, False),
    ],
)
def test_the_threshold_is_a_share_of_a_window_that_is_known(used, window, share, due):
    assert is_due(used, options(window=window, compact_at=share)) is due


def test_the_command_keeps_the_last_turn_and_the_threshold_as_many_as_fit():
    turns = entries(said(LONG), answer(LONG), said("b"), answer("b"), said("c"), answer("c"), prompts=(0, 2, 4))
    assert cut(plan_compaction(turns, options(), cause="command")) == (0, 30, 4)
    assert cut(plan_compaction(turns, options(window=1000), cause="threshold")) == (0, 10, 2)
    assert plan_compaction(turns[2:], options(), cause="threshold") is None, "that little is not worth it"
    assert plan_compaction([], options(), cause="command") is None


def test_a_call_is_never_parted_from_its_results():
    one_turn = entries(
        said("a"),
        call("c1", "c2"),
        result("c1", text_block(LONG)),
        result("c2", text_block("x")),
        call("c3"),
        result("c3", text_block("y")),
        prompts=(0,),
    )
    assert cut(plan_compaction(one_turn, options(window=1000), cause="overflow")) == (0, 30, 4)
    big = entries(said("a"), call("c1"), result("c1", text_block(LONG)), prompts=(0,))
    assert cut(plan_compaction(big, options(window=1000), cause="overflow")) == (0, 20, 3)


def test_a_prompt_without_an_answer_is_kept_whatever_its_size():
    waiting = entries(said("a"), answer("b"), said(LONG), prompts=(0, 2))
    assert cut(plan_compaction(waiting, options(window=1000), cause="overflow")) == (0, 10, 2)
    assert plan_compaction(waiting[2:], options(window=1000), cause="overflow") is None
    assert cut(plan_compaction(entries(said(LONG), answer("b")), options(window=4), cause="command")) == (0, 10, 2)


def test_images_and_links_count():
    picture = {"role": "user", "content": [{"type": "image", "ref": "r"}, {"type": "resource-link", "uri": "u" * 9}]}
    plan = plan_compaction(entries(picture, answer("a")), options(window=1000), cause="threshold")
    assert plan is not None
    assert plan.total == 6010


# how it goes


async def test_a_summary_stands_in_place_of_what_it_tells_of():
    answers = says("a"), says("b"), says(" SUM \n", usage=SMALL), says("c")
    async with agent_world(*answers) as world:
        agent = world.agent()
        for text in ("one", "two"):
            await world.prompt(agent, text)
        await summarise(world, agent, "names")
        assert sent(world)[:2] == ["one", "a"]
        assert sent(world)[-1].endswith("The user adds: names")
        await world.prompt(agent, "three")
        assert sent(world) == [*SUMMARY, "two", "b", "three"]
        turn = [event for event in world.events[agent.id] if event.data.get("turn") == 3]
        assert turn[0].data["trigger"] == {"kind": "compaction"}
        assert [event.type for event in turn] == [
            "turn/start",
            "step/start",
            "request/header",
            *["assistant/chunk"] * 5,
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert turn[2].data["purpose"] == "compaction"
        assert world.of(agent, "assistant/message")[2] == {"turn": 3, "step": 1, "content": [], "usage": SMALL}
        assert world.of(agent, "history/compacted") == [{"fromSeq": 1, "toSeq": 8, "summary": "SUM"}]
        assert agent.session.compacted_turn == 3
        assert derive_messages(world.events[agent.id]) == await agent.session.messages()


async def test_a_second_summary_swallows_the_first():
    answers = says("a"), says("b"), says("SUM"), says("c"), says("SUM 2"), says("d")
    async with agent_world(*answers) as world:
        agent = world.agent()
        for text in ("one", "two"):
            await world.prompt(agent, text)
        await summarise(world, agent)
        await world.prompt(agent, "three")
        await summarise(world, agent)
        assert sent(world)[:5] == [*SUMMARY, "two", "b"]
        await world.prompt(agent, "four")
        assert sent(world)[1:] == ["SUM 2", "</context>", "three", "c", "four"]


async def test_past_the_threshold_the_next_prompt_waits_for_a_summary():
    answers = says(LONG, usage=FULL), says("SUM", usage=FULL), says("b", usage=SMALL), says("c")
    async with agent_world(*answers) as world:
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert sent(world) == [*SUMMARY, "two"]
        await world.prompt(agent, "three")
        triggers = [data["trigger"]["kind"] for data in world.of(agent, "turn/start")]
    assert triggers == ["message", "compaction", "message", "message"]


async def test_where_little_was_said_a_full_context_is_no_reason():
    async with agent_world(says("a", usage=FULL), says("b")) as world:
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert world.of(agent, "history/compacted") == []


async def test_in_the_middle_of_a_turn_it_is_a_step_of_that_turn():
    answers = calls(("c1", "echo", {})), says("SUM"), says("done")
    answers[0][-1:-1] = [{"type": "usage", "usage": FULL}]

    async with agent_world(*answers, policy=AllowAll()) as world:
        world.tools.register(ScriptedTool(body=big))
        agent = world.agent(window=2000, compact_at=0.4)
        await world.prompt(agent, "one")
        assert sent(world, 1)[:3] == ["one", "tool-call", "tool-result"]
        assert sent(world) == SUMMARY
        assert world.reasons(agent) == [{"kind": "completed"}]
        assert [data["step"] for data in world.of(agent, "step/end")] == [1, 2, 3]


async def test_a_failure_in_the_middle_of_a_turn_is_told_and_the_turn_goes_on():
    answers = [calls((f"c{at}", "echo", {})) for at in range(2)]
    for each in answers:
        each[-1:-1] = [{"type": "usage", "usage": FULL}]

    async with agent_world(answers[0], [LlmError("down", "QUOTA")], answers[1], says("done")) as world:
        world.tools.register(ScriptedTool(body=big))
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        assert world.reasons(agent) == [{"kind": "completed"}]
        notices = world.of(agent, "session/notice")
    assert [notice["title"] for notice in notices] == ["The conversation could not be summarised"]
    assert notices[0]["description"].endswith("down")


async def test_a_call_that_is_refused_as_too_long_is_tried_again_shorter():
    answers = says("a"), [OVERFLOW], says("SUM"), says("b")
    async with agent_world(*answers) as world:
        agent = world.agent(compact_at=0.8)
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert sent(world) == [*SUMMARY, "two"]
        assert world.reasons(agent) == [{"kind": "completed"}] * 2
        assert [data["step"] for data in world.of(agent, "step/end")] == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[OVERFLOW], says("SUM"), [OVERFLOW]], "too long"),
        ([[OVERFLOW], [LlmError("down", "QUOTA")]], "too long; it could not be summarised either: down"),
    ],
)
async def test_it_is_tried_again_once(answers, message):
    async with agent_world(says("a"), *answers) as world:
        agent = world.agent(compact_at=0.8)
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert world.reasons(agent)[1]["message"] == message
        assert world.reasons(agent)[1]["code"] == "CONTEXT_OVERFLOW"


async def test_a_single_prompt_that_is_too_long_is_said_to_be():
    async with agent_world([OVERFLOW], [OVERFLOW]) as world:
        for share in (0.8, None):
            agent = world.agent(compact_at=share)
            await world.prompt(agent, LONG)
            assert world.reasons(agent)[0]["message"] == "too long"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (says("  "), "the model gave no summary"),
        (says("no", finish="refusal"), "the model refused to summarise the conversation"),
        ([{"type": "finish", "reason": {"kind": "error", "message": "broken", "code": "X"}}], "broken"),
        ([{"type": "finish", "reason": {"kind": "error"}}], "the model call failed"),
    ],
)
async def test_without_a_summary_the_history_stays(given, why):
    async with agent_world(says(LONG, usage=FULL), given, says("b")) as world:
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        assert sent(world) == ["one", LONG, "two"]
        assert [reason["kind"] for reason in world.reasons(agent)] == ["completed", "error", "completed"]
        assert world.reasons(agent)[1]["message"] == why
        assert len(world.of(agent, "session/notice")) == 1


async def test_a_summary_that_was_cut_off_says_so():
    async with agent_world(says("a"), says("SUM", finish="max-tokens")) as world:
        agent = world.agent()
        await world.prompt(agent)
        await summarise(world, agent)
        assert world.of(agent, "history/compacted")[0]["summary"] == "SUM\n[The summary was cut off here.]"


async def test_with_nothing_to_summarise_no_model_is_asked():
    async with agent_world() as world:
        agent = world.agent()
        await summarise(world, agent)
        assert world.reasons(agent) == [{"kind": "completed"}]
        assert world.types(agent) == ["turn/start", "turn/end"]


@pytest.mark.parametrize("early", [True, False])
async def test_a_cancelled_summary_leaves_the_history_as_it_was(early):
    gate = Gate()
    async with agent_world(says("a"), [gate, *says("SUM")]) as world:
        agent = world.agent()
        await world.prompt(agent)
        if early:
            world.hooks.on("agent/step-start", lambda agent, *_: agent.cancel("session/cancel"))
        agent.followup(ask())
        if not early:
            await gate.reached.wait()
            agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.reasons(agent)[1] == {"kind": "aborted", "reason": "session/cancel"}
        assert world.of(agent, "history/compacted") == []
        assert len(await agent.session.messages()) == 2


async def test_a_cancel_ends_a_prompt_that_waits_for_its_summary_too():
    gate = Gate()
    async with agent_world(says(LONG, usage=FULL), [gate, *says("SUM")]) as world:
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        agent.followup(world.message("two"))
        await gate.reached.wait()
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.texts(agent) == ["one"]
        assert [data["trigger"]["kind"] for data in world.of(agent, "turn/start")] == ["message", "compaction"]


@pytest.mark.parametrize("early", [True, False])
async def test_a_cancel_while_an_overflow_is_summarised_ends_the_turn(early):
    gate = Gate()
    async with agent_world(says("a"), [OVERFLOW], [gate, *says("SUM")]) as world:
        agent = world.agent(compact_at=0.8)
        await world.prompt(agent)

        def cancel(agent, _turn, step):
            if early and step == 2:
                agent.cancel("session/cancel")

        world.hooks.on("agent/step-start", cancel)
        agent.followup(world.message("two"))
        if not early:
            await gate.reached.wait()
            agent.cancel("session/cancel")
        await agent.when_idle()
        assert world.reasons(agent)[1]["kind"] == "aborted"
        assert world.of(agent, "history/compacted") == []


async def test_it_queues_like_a_prompt_and_takes_no_message_along():
    gate = Gate()
    async with agent_world([gate, *says("a")], says("SUM"), says("b")) as world:
        agent = world.agent()
        agent.followup(world.message("one"))
        await gate.reached.wait()
        agent.followup(ask())
        agent.followup(world.message("two"))
        agent.inject(world.message("context", {"kind": "plugin", "plugin": "p"}))
        gate.open()
        await agent.when_idle()
        triggers = [data["trigger"]["kind"] for data in world.of(agent, "turn/start")]
    assert triggers == ["message", "compaction", "message"]


async def test_a_refused_turn_takes_only_itself_along():
    answers = says("a"), calls(("c1", "echo", {})), says("SUM"), says("no", finish="refusal"), says("c")
    answers[1][-1:-1] = [{"type": "usage", "usage": FULL}]

    async with agent_world(*answers) as world:
        world.tools.register(ScriptedTool(body=big))
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        await world.prompt(agent, "two")
        await world.prompt(agent, "three")
        assert sent(world) == [*SUMMARY, "three"], "what was said before that turn is told in the summary"


async def test_the_request_for_a_summary_fits_what_the_model_can_take():
    async with agent_world(*[says("y" * 9000)] * 4, [OVERFLOW], says("SUM"), says("b")) as world:
        agent = world.agent(window=8000, compact_at=1.0)
        for number in range(4):
            await world.prompt(agent, f"prompt {number}")
        await world.prompt(agent, "last")
        texts = sent(world, 5)
    assert texts[0] == "prompt 0", "shortened texts were enough"
    assert "characters left out" in texts[1]
    assert sum(map(len, texts[:-1])) < 18_000


async def test_where_shorter_texts_do_not_help_the_beginning_is_left_out():
    async with agent_world(*[says("y" * 3900)] * 12, says("SUM"), says("b")) as world:
        agent = world.agent(window=4000)
        for number in range(12):
            await world.prompt(agent, f"prompt {number}")
        await summarise(world, agent)
        texts = sent(world)
    assert texts[0].startswith("[The beginning of the conversation is left out")
    assert texts[1].startswith(("prompt", "y"))
    assert "prompt 10" in texts


async def test_images_and_results_are_shortened_with_the_rest():
    blocks = [text_block("see"), {"type": "image", "mimeType": "image/png", "ref": "r" * 64}]

    async def big(_arguments, _context):
        return outcome("z" * 9000)

    answers = calls(("c1", "echo", {})), says("a"), says("b"), says("SUM")
    async with agent_world(*answers) as world:
        world.tools.register(ScriptedTool(body=big))
        agent = world.agent(window=3000)
        agent.followup(InboxMessage("m", blocks, USER))
        await agent.when_idle()
        await world.prompt(agent, "two")
        await summarise(world, agent)
        request = world.adapter.requests[-1]
        assert sent(world)[:2] == ["see", "[an image]"]
        inner = request.messages[2]["content"][0]["content"][0]["text"]
    assert "5000 characters left out" in inner


async def test_a_log_that_cannot_be_read_is_met_by_the_turn_and_not_by_the_driver(tmp_path):
    def store(runtime: VirtualRuntime) -> JsonlSessionStore:
        return JsonlSessionStore(tmp_path, runtime)

    async with agent_world(says(LONG, usage=FULL), store=store) as world:
        agent = world.agent(**AUTO)
        await world.prompt(agent, "one")
        session_id = agent.id
        await agent.dispose()
        again = await world.registry.resume(replace(OPTIONS, **AUTO), session_id=session_id, cwd=CWD)
        path = log_path(tmp_path, session_id, CWD)
        path.rename(path.with_suffix(".away"))
        path.mkdir()
        with anyio.fail_after(10):
            await world.prompt(again, "two")
        assert world.reasons(again)[-1]["kind"] == "error"
        path.rmdir()
        path.with_suffix(".away").rename(path)
