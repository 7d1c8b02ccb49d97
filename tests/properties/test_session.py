"""Properties of the session log: small logs, awkward texts, every place where a file can be cut."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import decode_event, encode_event, encode_header
from agent_loop.session.derive import History, derive_messages
from agent_loop.session.events import SessionEvent, SessionHeader, make_event
from agent_loop.session.journal import FileOperations
from agent_loop.session.json_check import MAX_INTEGER, InvalidEventError, own_json
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import encode_id, log_path
from agent_loop.session.log import Tail
from agent_loop.session.nesting import Nesting, NestingError
from agent_loop.session.store import SessionDamagedError
from tests.support.session_turns import (
    Pair,
    answer,
    call,
    call_block,
    call_delta,
    delta,
    events_of,
    result,
    step_end,
    step_start,
    text,
    turn_end,
    turn_start,
    user,
)

TEXTS = st.text(st.sampled_from('ab\n\u2028\x85"\\é😀\0'), max_size=4)
CALL_IDS = st.sampled_from(["a", "b", "call-0", "a#1.1"])
LOG_ONLY = st.sampled_from(
    [
        ("session/title", {"title": "t", "by": "user"}),
        ("mode/change", {"modeId": "ask"}),
        ("command/done", {"commandId": "c", "ok": True, "text": ""}),
        ("permission/request", {"callId": "a", "digest": "d"}),
        ("permission/decision", {"callId": "a", "digest": "d", "outcome": "allow", "by": "user"}),
        ("someone/else", {"turn": 9}),
    ]
)
KINDS = st.sampled_from(["completed", "aborted", "error", "refusal"])


@st.composite
def logs(draw: st.DrawFn, *, closed: bool = False) -> list[Pair]:
    """A well-formed log of at most 25 events, which may end anywhere unless `closed`."""
    pairs: list[Pair] = []
    turn = 0
    while len(pairs) < 12 and draw(st.booleans()):
        turn += 1
        pairs.append(turn_start(turn))
        if draw(st.booleans()):
            pairs.append(user(draw(TEXTS)))
        for step in range(1, draw(st.integers(0, 2)) + 1):
            pairs += [step_start(turn, step), *draw(steps(turn, step)), step_end(turn, step)]
        if draw(st.booleans()):
            source = {"kind": "plugin", "plugin": draw(TEXTS)}
            pairs.append(("context/message", {"content": text(draw(TEXTS)), "source": source}))
        pairs.append(turn_end(turn, draw(KINDS)))
    if closed:
        return pairs
    return pairs[: draw(st.integers(0, min(25, len(pairs))))]


@st.composite
def steps(draw: st.DrawFn, turn: int, step: int) -> list[Pair]:
    """What stands in a step; it may lack its message, and calls may lack their results."""
    pairs = [delta(turn, step, draw(TEXTS))]
    calls = draw(st.lists(CALL_IDS, max_size=2, unique=True))
    pairs += [call_delta(turn, step, call_id) for call_id in calls]
    if draw(st.booleans()):
        pairs.append(answer(turn, step, *text(draw(TEXTS)), *map(call_block, calls)))
        for call_id in calls[: draw(st.integers(0, 2))]:
            pairs += [call(turn, step, call_id), result(turn, step, call_id, draw(TEXTS))]
    return pairs


@given(logs(), st.data())
def test_the_log_numbers_without_gaps_and_derives_the_same_at_once_as_bit_by_bit(pairs, data):
    tail, history = Tail(), History()
    events = [tail.admit(event_type, value, time=0) for event_type, value in pairs]
    assert [event.seq for event in events] == list(range(len(pairs)))
    for index, event in enumerate(events):
        history.feed(event)
        if data.draw(st.booleans()):
            assert history.messages() == derive_messages(events[: index + 1])
    assert history.messages() == derive_messages(events) == derive_messages(events) == tail.state.messages()


@given(logs(closed=True))
def test_a_log_replayed_from_a_seed_is_identical(pairs):
    events = events_of(pairs)
    tail = Tail()
    for event in events:
        tail.admit(event.type, event.data, time=event.time)
    assert list(tail.events) == events
    assert tail.state.messages() == derive_messages(events)
    assert tail.state.nesting.last_turn == sum(event.type == "turn/start" for event in events)


@given(logs(), st.data())
def test_events_that_are_no_messages_never_change_the_history(pairs, data):
    woven: list[Pair] = []
    for pair in pairs:
        woven += data.draw(st.lists(LOG_ONLY, max_size=2))
        woven.append(pair)
    assert derive_messages(events_of(woven)) == derive_messages(events_of(pairs))


@given(logs())
def test_changing_what_was_derived_leaves_the_log_as_it_was(pairs):
    events = events_of(pairs)
    before = [encode_event(event) for event in events]
    messages = derive_messages(events)
    for message in messages:
        for block in message["content"]:
            for part in block.get("content", []):
                part.clear()
            block.clear()
        message["content"].append({"type": "text", "text": "intruder"})
    assert [encode_event(event) for event in events] == before


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.text(max_size=5), st.integers(0, 2**40), st.integers(0, 2**50))
def test_an_event_reads_back_from_its_line_as_it_was(data, event_type, seq, time):
    owned = own_json(event_type, data)
    line = encode_event(make_event(event_type, seq, time, owned))
    assert line.count(b"\n") == 1
    assert len(line.decode().splitlines()) == 1
    back = decode_event(line)
    assert back == (event_type, seq, time, data)
    assert repr(back.data) == repr(data), "int and float, 0.0 and -0.0 keep their kind"


WILD = st.recursive(
    JSON | st.binary(max_size=2) | st.just(float("nan")) | st.just("\ud800") | st.integers(2**53),
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner) | st.dictionaries(st.integers(), inner, max_size=2),
    max_leaves=5,
)


@given(WILD)
def test_data_is_either_refused_by_name_or_reads_back_equal(data):
    owned = refusal = None
    try:
        owned = own_json("x/y", data)
    except InvalidEventError as error:
        refusal = error
    if refusal is not None:
        assert "x/y" in refusal.message
        return
    assert decode_event(encode_event(make_event("x/y", 0, 0, owned))).data == data


@given(st.lists(st.text(st.characters(), min_size=1, max_size=6), unique=True, max_size=6))
def test_ids_become_names_one_to_one_and_never_paths(ids):
    names = [encode_id(session_id) for session_id in ids]
    assert len(set(names)) == len(ids)
    assert all("/" not in name and "\0" not in name and name not in {"", ".", ".."} for name in names)
    assert all(name.isascii() for name in names)


@given(logs(closed=True), st.lists(logs(closed=True).filter(bool).map(lambda pairs: pairs[-1]), max_size=3), st.data())
def test_a_refused_event_changes_nothing(pairs, intruders, data):
    nesting = Nesting()
    for event_type, value in pairs:
        for intruder_type, intruder in intruders:
            state = (nesting.open_turn, nesting.open_step, nesting.last_turn, nesting.last_step)
            try:
                nesting.check(intruder_type, intruder)
            except NestingError:
                assert state == (nesting.open_turn, nesting.open_step, nesting.last_turn, nesting.last_step)
        nesting.check(event_type, value)
        nesting.apply(event_type, value)


HEADER = SessionHeader("s", 5)


class Unsynced(FileOperations):
    """Thousands of loads need not reach the platter."""

    def sync(self, descriptor: int) -> None:
        return


def write_log(root: Path, content: bytes) -> None:
    log_path(root, "s", None).write_bytes(content)


def read_log(root: Path) -> bytes:
    return log_path(root, "s", None).read_bytes()


async def load(root: Path) -> list[SessionEvent]:
    events: list[SessionEvent] = []
    opened = await JsonlSessionStore(root, VirtualRuntime(), operations=Unsynced()).load(
        "s", None, on_event=events.append
    )
    await opened.journal.close()
    return events


def well_formed(events: list[SessionEvent]) -> bool:
    nesting = Nesting()
    for seq, event in enumerate(events):
        assert event.seq == seq
        nesting.check(event.type, event.data)
        nesting.apply(event.type, event.data)
    return nesting.open_turn is None


async def check_cut(root: Path, content: bytes, size: int, events: list[SessionEvent]) -> None:
    """Load the first `size` bytes of a log that held `events`."""
    write_log(root, content[:size])
    if size <= content.index(b"\n"):
        with pytest.raises(SessionDamagedError) as caught:
            await load(root)
        assert (caught.value.line, caught.value.offset) == (1, 0)
        assert read_log(root) == content[:size]
        return
    loaded = await load(root)
    kept = content[:size].count(b"\n") - 1
    assert loaded[:kept] == events[:kept]
    assert well_formed(loaded)
    if kept < len(loaded):
        assert loaded[-1].data["reason"] == {"kind": "interrupted"}
        assert {event.time for event in loaded[kept:]} == {events[kept - 1].time}
    after = read_log(root)
    assert after.count(b"\n") == len(loaded) + 1
    if size % 7 == 0:
        assert await load(root) == loaded
        assert read_log(root) == after


async def cut_everywhere(root: Path, content: bytes, events: list[SessionEvent]) -> None:
    for size in range(len(content) + 1):
        await check_cut(root, content, size, events)


CALLING = [
    turn_start(1),
    step_start(1, 1),
    answer(1, 1, call_block("a"), call_block("b")),
    call(1, 1, "a"),
    result(1, 1, "a", "\u2028é"),
    call(1, 1, "b"),
]


@settings(max_examples=2, deadline=None)
@example(CALLING)
@given(logs().filter(lambda pairs: 3 < len(pairs) < 10))
def test_a_file_cut_at_any_byte_loads_to_a_repaired_beginning_or_is_refused(pairs):
    events = events_of(pairs)
    with tempfile.TemporaryDirectory() as folder:
        log_path(Path(folder), "s", None).parent.mkdir()
        content = encode_header(HEADER) + b"".join(map(encode_event, events))
        anyio.run(cut_everywhere, Path(folder), content, events)


@settings(max_examples=20, deadline=None)
@given(logs())
def test_what_a_store_wrote_loads_as_it_was_and_loading_twice_changes_no_byte(pairs):
    async def story(root: Path) -> Any:
        journal = JsonlSessionStore(root, VirtualRuntime()).create(HEADER)
        for event in events_of(pairs):
            journal.append(event)
            if event.seq % 3 == 0:
                journal.write_pending()
        await journal.close()
        first = await load(root)
        assert first[: len(pairs)] == events_of(pairs)
        after = read_log(root)
        assert await load(root) == first
        assert read_log(root) == after

    with tempfile.TemporaryDirectory() as folder:
        if pairs:
            anyio.run(story, Path(folder))
