"""The fields that each event must have (contract session-log.md §3)."""

import pytest

from agent_loop.session.events import KNOWN_TYPES
from agent_loop.session.shapes import _CHUNK, _REQUIRED, shape_fault
from tests.support.session_turns import answer, call_block, text_turn, tool_turn


def test_every_known_type_has_its_row():
    assert set(_REQUIRED) == KNOWN_TYPES


@pytest.mark.parametrize(("event_type", "data"), [*text_turn(1), *tool_turn(2, "c")])
def test_the_events_of_a_turn_pass(event_type, data):
    assert shape_fault(event_type, data) is None


SAMPLES = {int: 1, str: "x", list: [], dict: {"kind": "any"}, bool: False}


@pytest.mark.parametrize("event_type", sorted(KNOWN_TYPES - {"assistant/chunk"}))
def test_each_required_field_is_missed_by_name(event_type):
    whole = {name: SAMPLES[kind] for name, kind in _REQUIRED[event_type]}
    assert shape_fault(event_type, whole) is None
    for name in whole:
        assert repr(name) in shape_fault(event_type, {key: whole[key] for key in whole if key != name})
        assert repr(name) in shape_fault(event_type, whole | {name: None})


@pytest.mark.parametrize("kind", sorted(_CHUNK))
def test_each_required_field_of_a_chunk_is_missed_by_name(kind):
    chunk = {"type": kind} | {name: SAMPLES[expected] for name, expected in _CHUNK[kind]}
    assert shape_fault("assistant/chunk", {"turn": 1, "step": 1, "chunk": chunk}) is None
    for name in chunk.keys() - {"type"}:
        broken = {key: chunk[key] for key in chunk if key != name}
        assert repr(name) in shape_fault("assistant/chunk", {"turn": 1, "step": 1, "chunk": broken})


@pytest.mark.parametrize("kind", ["image-delta", None, ["text-delta"], 1])
def test_a_chunk_of_an_unknown_type_is_refused(kind):
    assert shape_fault("assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": kind}})


def test_a_bool_is_no_turn_number():
    assert shape_fault("step/end", {"turn": True, "step": 1}) == "'turn' is not an integer"


def test_an_unknown_event_may_hold_anything():
    assert shape_fault("someone/else", [1, "two"]) is None


def test_data_of_a_known_event_is_an_object():
    assert shape_fault("loop/change", [1]) == "its data is not an object"


@pytest.mark.parametrize("block", ["text", None, {}, {"type": 1}])
def test_content_is_made_of_blocks(block):
    assert (
        shape_fault("user/message", {"content": [block], "source": {"kind": "user"}})
        == "its content holds something that is no block"
    )


@pytest.mark.parametrize(
    ("block", "missing"),
    [
        ({"type": "text"}, "text"),
        ({"type": "reasoning", "text": None}, "text"),
        ({"type": "tool-result", "content": []}, "toolCallId"),
        ({"type": "resource-link", "name": "n"}, "uri"),
        ({"type": "resource", "text": "t"}, "uri"),
    ],
)
def test_a_block_that_will_be_read_has_what_is_read(block, missing):
    fault = shape_fault("context/message", {"content": [block], "source": {"kind": "user"}})
    assert fault == f"a {block['type']} block is malformed: {missing!r} is not a string"


@pytest.mark.parametrize(
    ("event_type", "data", "fault"),
    [
        ("turn/end", {"turn": 1, "reason": {}}, "in 'reason', 'kind' is not a string"),
        ("user/message", {"content": [], "source": {"kind": 1}}, "in 'source', 'kind' is not a string"),
        ("assistant/message", {"turn": 1, "step": 1, "content": [], "usage": 7}, "'usage' is not an object"),
        (
            "assistant/message",
            {"turn": 1, "step": 1, "content": [], "usage": {"inputTokens": 7}},
            "in 'usage', 'outputTokens' is not an integer",
        ),
        (
            "tool/result",
            {"turn": 1, "step": 1, "callId": "c", "content": [], "isError": False, "meta": []},
            "'meta' is not an object",
        ),
    ],
)
def test_an_object_inside_an_event_has_what_is_read_of_it(event_type, data, fault):
    assert shape_fault(event_type, data) == fault


def test_what_an_event_may_leave_out_may_be_null():
    event_type, data = answer(1, 1)
    assert shape_fault(event_type, data | {"usage": None}) is None


def test_a_tool_call_block_has_its_fields():
    event_type, data = answer(1, 1, {**call_block("c"), "arguments": {}})
    assert shape_fault(event_type, data) == "a tool-call block is malformed: 'arguments' is not a string"


def test_blocks_of_unknown_types_are_nobodys_business():
    assert shape_fault("user/message", {"content": [{"type": "hologram"}], "source": {"kind": "martian"}}) is None
