"""The model's history (contract session-log.md §6)."""

from agent_loop.session.derive import History, derive_messages
from agent_loop.session.events import make_event
from tests.support.session_turns import (
    answer,
    call_block,
    events_of,
    step_start,
    text,
    text_turn,
    tool_turn,
    turn_end,
    turn_start,
    user,
)


def derived(*pairs):
    return derive_messages(events_of(list(pairs)))


def test_a_text_turn_is_two_messages():
    assert derived(*text_turn(1, "hello", "hi")) == [
        {"role": "user", "content": text("hello")},
        {"role": "assistant", "content": text("hi")},
    ]


def test_a_tool_result_is_a_user_message_with_one_block():
    _, assistant, outcome, _ = derived(*tool_turn(1, "c1"))
    assert assistant == {"role": "assistant", "content": [call_block("c1")]}
    assert outcome == {
        "role": "user",
        "content": [{"type": "tool-result", "toolCallId": "c1", "content": text("done")}],
    }


def test_a_failed_tool_result_says_so():
    failed = ("tool/result", {"turn": 1, "step": 1, "callId": "c", "content": text("no"), "isError": True})
    assert derived(failed)[0]["content"][0]["isError"] is True


def test_an_empty_assistant_message_adds_nothing():
    assert derived(turn_start(1), step_start(1, 1), answer(1, 1)) == []


def test_the_blocks_of_a_user_message_are_kept_as_they_were_sent():
    blocks = [*text("see"), {"type": "resource-link", "uri": "file:///a", "name": "a"}]
    assert derived(("user/message", {"content": blocks, "source": {"kind": "user"}}))[0]["content"] == blocks


def test_context_and_steering_stand_between_tags_that_name_their_source():
    for event_type in ("context/message", "steering/message"):
        data = {"turn": 1, "content": text("tick"), "source": {"kind": "plugin", "plugin": "loop"}}
        assert derived((event_type, data)) == [
            {"role": "user", "content": [*text("<context source=plugin>"), *text("tick"), *text("</context>")]}
        ]


def test_a_source_without_kind_is_called_unknown():
    message = derived(("context/message", {"content": [], "source": {}}))[0]
    assert message["content"][0]["text"] == "<context source=unknown>"


def test_a_refused_turn_leaves_the_history():
    refused = [pair for pair in tool_turn(2, "c") if pair[0] != "turn/end"]
    assert derived(*text_turn(1), *refused, turn_end(2, "refusal")) == derived(*text_turn(1))
    assert derived(turn_start(1), user("x"), turn_end(1, "refusal")) == []


def test_after_a_refusal_the_next_turn_counts():
    assert [
        m["content"] for m in derived(turn_start(1), user("no"), turn_end(1, "refusal"), *text_turn(2, "yes", "ok"))
    ] == [
        text("yes"),
        text("ok"),
    ]


def compacted(first: int, last: int, summary: str):
    return "history/compacted", {"fromSeq": first, "toSeq": last, "summary": summary}


def test_a_compaction_replaces_its_range_by_one_context_message():
    pairs = [*text_turn(1, "one", "1"), *text_turn(2, "two", "2"), *text_turn(3, "three", "3")]
    messages = derived(*pairs, compacted(0, 13, "one and two"))
    assert [m["content"][0]["text"] for m in messages] == ["<context source=compaction>", "three", "3"]
    assert messages[0]["content"][1] == text("one and two")[0]


def test_a_compaction_in_the_middle_keeps_what_stands_before_and_after():
    pairs = [*text_turn(1, "one", "1"), *text_turn(2, "two", "2"), *text_turn(3, "three", "3")]
    messages = derived(*pairs, compacted(7, 13, "two"))
    assert [m["content"][0]["text"] for m in messages] == ["one", "1", "<context source=compaction>", "three", "3"]


def test_a_later_compaction_swallows_an_earlier_one():
    pairs = [*text_turn(1), compacted(0, 6, "first"), *text_turn(2), compacted(0, 14, "both")]
    (message,) = derived(*pairs)
    assert message["content"][1] == text("both")[0]


def test_unknown_events_add_nothing():
    assert derive_messages([make_event("someone/else", 0, 0, ["anything"])]) == []


def test_changing_a_derived_message_leaves_the_log_as_it_was():
    events = events_of(tool_turn(1, "c"))
    before = derive_messages(events)
    for message in derive_messages(events):
        for block in message["content"]:
            block.clear()
        message["content"].clear()
    assert derive_messages(events) == before


def test_each_call_gives_a_list_of_its_own():
    history = History()
    history.feed(events_of([user("x")])[0])
    history.messages().clear()
    assert len(history.messages()) == 1
