"""Updates of single events, and what is never shown."""

import pytest

from acp_bridge.schema import ClientCapabilities, SchemaProblem
from acp_bridge.translate.v1.cards import TEXT_LIMIT
from acp_bridge.translate.v1.prompts import from_block, to_prompt
from acp_bridge.translate.v1.stops import Failed, Stopped, stop_of
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event


def renderer(**options):
    settings = {"cwd": "/p", "window": lambda: None, "live": True, **options}
    return UpdateRenderer(lambda _name: None, ClientCapabilities(), **settings)


def chunk(kind, text):
    data = {"turn": 2, "step": 3, "chunk": {"type": f"{kind}-delta", "index": 0, "text": text}}
    return make_event("assistant/chunk", 0, 0, data)


def test_text_and_thoughts_have_messages_of_their_own():
    shown = renderer()
    assert shown.render(chunk("text", "a")) == [
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}, "messageId": "m2.3"}
    ]
    assert shown.render(chunk("reasoning", "b")) == [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "b"}, "messageId": "t2.3"}
    ]


def test_an_empty_delta_is_not_shown():
    assert renderer().render(chunk("text", "")) == []


def test_a_huge_delta_is_split_below_the_line_limit():
    updates = renderer().render(chunk("text", "x" * (2 * TEXT_LIMIT + 1)))
    assert [len(update["content"]["text"]) for update in updates] == [TEXT_LIMIT, TEXT_LIMIT, 1]


def test_usage_counts_what_is_in_the_context_and_needs_a_known_window():
    usage = {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 100, "cacheWriteTokens": 1}
    event = make_event("assistant/message", 0, 0, {"turn": 1, "step": 1, "content": [], "usage": usage})
    assert renderer().render(event) == []
    assert renderer(window=lambda: 1000).render(event) == [{"sessionUpdate": "usage_update", "used": 116, "size": 1000}]
    assert renderer(window=lambda: 1000, live=False).render(event) == []


def test_a_notice_without_description_is_one_line():
    event = make_event("session/notice", 4, 0, {"severity": "info", "title": "hello"})
    (update,) = renderer().render(event)
    assert (update["content"]["text"], update["messageId"]) == ("hello\n", "n4")
    shown = UpdateRenderer(lambda _n: None, ClientCapabilities(notices=True), cwd=None, window=lambda: None, live=True)
    assert shown.render(event) == [{"sessionUpdate": "notice", "severity": "info", "title": "hello"}]


@pytest.mark.parametrize("live", [True, False])
def test_a_notice_is_the_same_live_and_on_load(live):
    event = make_event("session/notice", 4, 0, {"severity": "warning", "title": "hello", "description": "more"})
    assert renderer(live=live).render(event)[0]["content"]["text"] == "hello\nmore\n"
    able = UpdateRenderer(lambda _n: None, ClientCapabilities(notices=True), cwd=None, window=lambda: None, live=live)
    notice = {"sessionUpdate": "notice", "severity": "warning", "title": "hello", "description": "more"}
    assert able.render(event) == [notice]


def test_a_decision_about_a_call_that_is_not_on_the_screen_is_not_shown():
    event = make_event("permission/decision", 0, 0, {"callId": "x", "digest": "d", "outcome": "allow", "by": "user"})
    assert renderer().render(event) == []


def test_unknown_events_are_not_shown():
    assert renderer().render(make_event("from/later", 0, 0, {})) == []


def test_an_unknown_block_reads_as_its_kind():
    assert from_block({"type": "image", "url": "x"}, {}.get) == {"type": "text", "text": "[image]"}


def test_blocks_come_back_as_they_were_sent():
    link = {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3}
    text = {"type": "text", "text": "hi"}
    assert [from_block(block, {}.get) for block in to_prompt([text, link], images=False, redact=str).blocks] == [
        text,
        link,
    ]


def test_a_link_alone_is_a_prompt():
    assert to_prompt([{"type": "resource_link", "uri": "file:///a", "name": "a"}], images=False, redact=str)
    with pytest.raises(SchemaProblem, match="blank"):
        to_prompt([{"type": "text", "text": ""}], images=False, redact=str)


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ({"kind": "completed"}, Stopped("end_turn")),
        ({"kind": "max-tokens"}, Stopped("max_tokens")),
        ({"kind": "max-steps"}, Stopped("max_turn_requests")),
        ({"kind": "refusal"}, Stopped("refusal")),
        ({"kind": "disposed"}, Stopped("cancelled")),
        ({"kind": "aborted", "reason": "session/cancel"}, Stopped("cancelled")),
        ({"kind": "aborted", "reason": "cancel_request"}, Stopped("cancelled")),
        (
            {"kind": "aborted", "reason": "budget"},
            Failed("Internal error: turn failed: aborted: budget", {"reason": "aborted", "details": "aborted: budget"}),
        ),
        (
            {"kind": "error", "step": 1, "message": "no", "code": "AUTH"},
            Failed("Internal error: turn failed: no", {"reason": "auth", "details": "no"}),
        ),
        (
            {"kind": "brand-new"},
            Failed(
                "Internal error: turn failed: the turn ended: brand-new",
                {"reason": "brand-new", "details": "the turn ended: brand-new"},
            ),
        ),
    ],
)
def test_each_end_of_a_turn_has_one_answer(reason, answer):
    assert stop_of(reason) == answer


def test_a_huge_prompt_comes_back_in_parts_below_the_line_limit():
    text = {"type": "text", "text": "x" * (TEXT_LIMIT + 1)}
    event = make_event("user/message", 7, 0, {"content": [text], "source": {"kind": "user"}})
    updates = renderer(live=False).render(event)
    assert [len(update["content"]["text"]) for update in updates] == [TEXT_LIMIT, 1]
    assert {update["messageId"] for update in updates} == {"u7"}
    line = make_event("command/run", 8, 0, {"commandId": "1", "line": "/help " + "x" * TEXT_LIMIT})
    assert len(renderer(live=False).render(line)) == 2
