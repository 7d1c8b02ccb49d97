"""Records that share one line of a damaged log (contract session-log.md §9)."""

import pytest

from agent_loop.session.codec import encode_event
from agent_loop.session.events import make_event
from agent_loop.session.glued import first_object, parts_of
from tests.support.session_turns import answer, call_block, events_of, text_turn

LINES = [encode_event(event).rstrip() for event in events_of(text_turn(1))]


def parts(line: bytes):
    """(where, number of the event or the fault, bytes) of each part; together they are the line."""
    found = list(parts_of(line, ()))
    assert b"".join(part.content for part in found) in {line, line.rstrip(b"\n")}
    assert all(line[part.at :].startswith(part.content) for part in found)
    return [(part.at, part.event.seq if part.event else part.fault, part.content) for part in found]


def test_a_line_of_one_event_is_one_part():
    assert parts(LINES[0] + b"\n") == [(0, 0, LINES[0] + b"\n")]


def test_two_whole_records_are_two_parts():
    size = len(LINES[0])
    assert parts(LINES[0] + LINES[1] + b"\n") == [(0, 0, LINES[0]), (size, 1, LINES[1])]


@pytest.mark.parametrize(
    "before",
    [LINES[0][:40], b"\0" * 300, b'{"type":', b"}", LINES[4][:-30], b"\xff\xfe", b'{"type":"text","text":"x"}'],
)
def test_a_record_behind_something_broken_is_found(before):
    assert parts(before + LINES[1] + b"\n") == [
        (0, "it is no JSON", before),
        (len(before), 1, LINES[1]),
    ]


def test_what_is_broken_behind_a_record_is_a_part_of_its_own():
    line = LINES[0] + LINES[1][:30] + b"\n"
    assert parts(line) == [(0, 0, LINES[0]), (len(LINES[0]), "it is no JSON", LINES[1][:30] + b"\n")]


def test_an_object_within_a_record_is_no_record():
    inner = make_event("user/message", 1, 0, {"content": [{"type": "text", "text": "x"}], "source": {"kind": "user"}})
    whole = encode_event(inner).rstrip()
    assert parts(b"x" + whole) == [(0, "it is no JSON", b"x"), (1, 1, whole)]
    # and what only looks like one inside a text stays a text
    quoting = encode_event(make_event("from/later", 2, 0, LINES[0].decode())).rstrip()
    assert parts(LINES[0] + quoting) == [(0, 0, LINES[0]), (len(LINES[0]), 2, quoting)]


@pytest.mark.parametrize("line", [b"\0\0\n", b"\n", b"", b"{", b'{"type":' * 2000])
def test_a_line_without_any_record_is_one_bad_part(line):
    assert parts(line) == [(0, "it is no JSON", line)]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"[]\n", "it is no JSON object"),
        (b'{"wrapped":' + LINES[0] + b"}\n", "it is no event"),
        (encode_event(make_event("step/end", 2, 0, {"turn": 1})), "'step' is not an integer"),
    ],
)
def test_a_line_of_other_json_is_not_searched(line, fault):
    assert parts(line) == [(0, fault, line)]


def test_a_glued_record_of_the_wrong_shape_is_broken_like_the_rest():
    wrong = encode_event(make_event("step/end", 2, 0, {"turn": 1})).rstrip()
    assert parts(wrong + LINES[1]) == [(0, "it is no JSON", wrong), (len(wrong), 1, LINES[1])]


def test_the_object_at_the_beginning_is_given_alone():
    assert first_object(LINES[0] + b"rest") == LINES[0]
    assert first_object(b"rest" + LINES[0]) == b""


def test_text_of_any_script_keeps_its_places():
    line = encode_event(make_event(*_said("é\u2028😀"))).rstrip()
    assert parts(line[:-9] + line) == [(0, "it is no JSON", line[:-9]), (len(line) - 9, 3, line)]
    assert parts(line + line)[1] == (len(line), 3, line)


def _said(text: str):
    event_type, data = answer(1, 1, {"type": "text", "text": text}, call_block("c"))
    return event_type, 3, 0, data


def test_a_number_that_is_no_json_does_not_make_a_record():
    bad = LINES[0].replace(b'"turn":1', b'"turn":NaN')
    assert parts(bad + LINES[1])[0] == (0, "it is no JSON", bad)
