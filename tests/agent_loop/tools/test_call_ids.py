"""Tool-call ids, unique in the session."""

from typing import Any

from agent_loop.tools.call_ids import CallIds


def delta(index: int, call_id: str) -> Any:
    return {"type": "tool-call-delta", "index": index, "id": call_id, "name": "bash", "argumentsDelta": "{}"}


def block(call_id: str) -> Any:
    return {"type": "tool-call", "id": call_id, "name": "bash", "arguments": "{}"}


def end(index: int, value: Any) -> Any:
    return {"type": "block-end", "index": index, "block": value}


def test_the_first_use_is_verbatim_and_the_very_same_object():
    ids = CallIds(set(), turn=1, step=1)
    for chunk in (delta(0, "a"), delta(0, "a"), end(0, block("a"))):
        assert ids.in_chunk(chunk) is chunk
    assert ids.in_message([block("a")]) == [block("a")]


def test_other_chunks_pass_untouched():
    ids = CallIds({"a"}, turn=1, step=1)
    text: Any = {"type": "text-delta", "index": 0, "text": "a"}
    closing = end(0, {"type": "text", "text": "a"})
    assert ids.in_chunk(text) is text
    assert ids.in_chunk(closing) is closing
    assert ids.in_message([closing["block"]]) == [closing["block"]]


def test_a_repeat_of_an_earlier_step_is_renamed_everywhere():
    ids = CallIds({"a"}, turn=3, step=2)
    original = delta(0, "a")
    assert ids.in_chunk(original) == delta(0, "a#3.2")
    assert original == delta(0, "a")
    assert ids.in_chunk(end(0, block("a"))) == end(0, block("a#3.2"))
    assert ids.in_message([block("a#3.2")]) == [block("a#3.2")]


def test_two_blocks_of_one_step_with_one_id_are_told_apart():
    ids = CallIds(set(), turn=1, step=1)
    assert ids.in_chunk(delta(0, "a")) == delta(0, "a")
    assert ids.in_chunk(delta(1, "a")) == delta(1, "a#1.1")
    assert ids.in_chunk(delta(2, "a")) == delta(2, "a#1.1.2")
    assert ids.in_chunk(delta(3, "a")) == delta(3, "a#1.1.3")
    assert ids.in_chunk(end(1, block("a"))) == end(1, block("a#1.1"))


def test_a_call_that_no_chunk_named_gets_a_unique_id_in_the_message():
    ids = CallIds({"call-0"}, turn=2, step=1)
    nameless = delta(0, "")
    assert ids.in_chunk(nameless) is nameless
    assert ids.in_message([block("call-0"), block("call-0")]) == [block("call-0#2.1"), block("call-0#2.1.2")]
