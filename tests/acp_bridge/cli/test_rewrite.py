"""Parts of texts replaced, also where they are split over deltas."""

import re

import pytest

from acp_bridge.cli.rewrite import Edit, Rewriter
from agent_loop.session.events import SessionHeader, make_event
from tests.support.session_turns import answer, call_delta, delta, events_of, step_end, step_start, text, user

SMALL = 64
"""Characters of the longest run that these tests look for."""


def stars(text):
    """Every run of stars becomes its length in brackets."""
    return [Edit(found.start(), found.end(), f"<{len(found[0])}>", "stars") for found in re.finditer(r"\*+", text)]


def rewritten(pairs, **options):
    rewriter = Rewriter(stars, **options)
    events = [done for event in events_of(pairs) for done in rewriter.feed(event)]
    events += rewriter.finish()
    assert [(event.seq, event.time, event.type) for event in events] == [
        (event.seq, event.time, event.type) for event in events_of(pairs)
    ]
    return events, rewriter


def deltas(events, index=0):
    chunks = [event.data["chunk"] for event in events if event.type == "assistant/chunk"]
    return [chunk["text"] for chunk in chunks if chunk["index"] == index and "text" in chunk]


def chunk(kind, index, **fields):
    return "assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": kind, "index": index, **fields}}


def test_every_text_of_an_event_is_rewritten_keys_too_and_nothing_else():
    pairs = [("from/later", {"a*": ["**", 1, None, True, {"b": 2.5}]}), user("plain")]
    events, rewriter = rewritten(pairs)
    assert events[0].data == {"a<1>": ["<2>", 1, None, True, {"b": 2.5}]}
    assert events[1] == events_of(pairs)[1]
    assert rewriter.counts == {"stars": 2}


def test_what_is_split_over_deltas_stands_in_the_first_of_them_and_in_no_other():
    events, rewriter = rewritten(
        [delta(1, 1, "a*"), delta(1, 1, "**"), delta(1, 1, "*b*"), delta(1, 1, "c"), step_end(1, 1)]
    )
    assert deltas(events) == ["a<4>", "", "b<1>", "c"]
    assert rewriter.counts == {"stars": 2}


def test_two_texts_of_one_call_are_kept_apart():
    pairs = [
        chunk("text-delta", 0, text="a*"),
        chunk("reasoning-delta", 1, text="*x"),
        chunk("text-delta", 0, text="*b"),
        ("mode/change", {"modeId": "*"}),
        chunk("block-end", 0, block={"type": "text", "text": "a**b"}),
        answer(1, 1, *text("a**b")),
    ]
    events, _ = rewritten(pairs)
    assert deltas(events, 0) == ["a<2>", "b"]
    assert deltas(events, 1) == ["<1>x"]
    assert events[3].data == {"modeId": "<1>"}
    assert events[4].data["chunk"]["block"]["text"] == "a<2>b"


def test_the_arguments_of_a_call_its_id_and_its_name_are_rewritten():
    parts = [
        chunk("tool-call-delta", 0, id="c*", name="ba*sh", argumentsDelta='{"a":"*'),
        chunk("tool-call-delta", 0, id="c*", argumentsDelta='*"}'),
    ]
    events, _ = rewritten([*parts, call_delta(1, 1, "d"), step_end(1, 1)])
    assert [event.data["chunk"] for event in events[:2]] == [
        {"type": "tool-call-delta", "index": 0, "id": "c<1>", "name": "ba<1>sh", "argumentsDelta": '{"a":"<2>'},
        {"type": "tool-call-delta", "index": 0, "id": "c<1>", "argumentsDelta": '"}'},
    ]


def test_events_in_which_nothing_is_found_pass_as_they_are():
    pairs = [step_start(1, 1), delta(1, 1, "a"), chunk("finish", 0, reason={"kind": "stop"}), step_end(1, 1)]
    events, rewriter = rewritten(pairs)
    assert events == events_of(pairs)
    assert not rewriter.counts


def test_a_log_that_breaks_off_in_a_message_is_rewritten_to_its_end():
    assert deltas(rewritten([delta(1, 1, "*"), delta(1, 1, "*")])[0]) == ["<2>", ""]


def test_the_header_is_rewritten():
    rewriter = Rewriter(stars)
    assert rewriter.header(SessionHeader("s", 1, cwd="/a*")).cwd == "/a<1>"
    assert rewriter.header(SessionHeader("s", 1)).cwd is None


@pytest.mark.parametrize("held", [2, 3, 7])
def test_a_long_message_is_let_go_in_parts_and_nothing_is_missed_between_them(held):
    letters = "ab**cd" * SMALL
    size = SMALL // 4 + 1
    pieces = [letters[at : at + size] for at in range(0, len(letters), size)]
    rewriter = Rewriter(stars, held_events=held, longest=SMALL)
    events, most = [], 0
    for event in events_of([delta(1, 1, piece) for piece in pieces]):
        events += rewriter.feed(event)
        most = max(most, len(rewriter._held))
    assert len(events) >= len(pieces) - 12
    assert most <= 12
    events += rewriter.finish()
    assert "".join(deltas(events)) == "ab<2>cd" * SMALL
    assert rewriter.counts == {"stars": SMALL}


def test_a_run_that_reaches_into_what_is_still_held_is_held_whole():
    rewriter = Rewriter(stars, held_events=3, longest=SMALL)
    fed = [delta(1, 1, "a"), delta(1, 1, "**"), delta(1, 1, "*" + "x" * SMALL)]
    ready = [done for event in events_of(fed) for done in rewriter.feed(event)]
    assert deltas(ready) == ["a"]
    assert deltas(rewriter.finish()) == ["<3>", "x" * SMALL]


def test_a_block_that_has_ended_holds_nothing_back():
    rewriter = Rewriter(stars, held_events=4, longest=SMALL)
    fed = [
        chunk("reasoning-delta", 0, text="short*"),
        chunk("block-end", 0, block={"type": "reasoning", "text": "short*"}),
        chunk("text-delta", 1, text="y" * SMALL),
        chunk("text-delta", 1, text="z" * SMALL),
    ]
    ready = [done for event in events_of(fed) for done in rewriter.feed(event)]
    assert deltas(ready, 0) == ["short<1>"]
    assert len(ready) == 3


def test_a_block_that_stands_still_is_not_looked_at_again_for_every_event():
    rewriter = Rewriter(stars, held_events=2, longest=SMALL)
    looked = []
    rewriter._find = lambda text: looked.append(text) or stars(text)
    fed = [chunk("reasoning-delta", 0, text="x"), *(chunk("text-delta", 1, text="y" * SMALL) for _ in range(31))]
    assert [done for event in events_of(fed) for done in rewriter.feed(event)] == []
    assert len(looked) < 40
    assert len(rewriter.finish()) == 32


def test_deltas_are_known_by_their_kind():
    event = make_event("assistant/chunk", 0, 0, {"turn": 1, "step": 1, "chunk": {"type": "usage", "usage": {"a": "*"}}})
    assert Rewriter(stars).feed(event)[0].data["chunk"]["usage"] == {"a": "<1>"}
