"""Properties of the session log: small logs, awkward texts, every place where a file can be cut."""

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_loop.session.codec import decode_event, encode_event
from agent_loop.session.derive import History, derive_messages
from agent_loop.session.events import SessionEvent, make_event
from agent_loop.session.json_check import MAX_INTEGER, InvalidEventError, own_json
from agent_loop.session.layout import encode_id
from agent_loop.session.log import Tail
from agent_loop.session.nesting import Nesting, NestingError
from tests.support.crash_facts import assert_well_formed
from tests.support.log_folder import LogFolder, lines_of, log_folder
from tests.support.session_turns import Pair, events_of
from tests.support.small_logs import logs

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


@given(logs(), st.data())
def test_the_log_numbers_without_gaps_and_derives_the_same_at_once_as_bit_by_bit(pairs, data):
    tail, history = Tail(), History()
    events = [tail.admit(event_type, value, time=0) for event_type, value in pairs]
    assert [event.seq for event in events] == list(range(len(pairs)))
    for index, event in enumerate(events):
        history.feed(event)
        if data.draw(st.booleans()):
            assert history.messages() == derive_messages(events[: index + 1])
    assert history.messages() == derive_messages(events) == derive_messages(events) == tail.state.history.messages()


@given(logs(closed=True))
def test_a_log_replayed_from_a_seed_is_identical(pairs):
    events = events_of(pairs)
    tail = Tail()
    for event in events:
        tail.admit(event.type, event.data, time=event.time)
    assert list(tail.events) == events
    assert tail.state.history.messages() == derive_messages(events)
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


async def cut_everywhere(folder: LogFolder, events: list[SessionEvent]) -> None:
    content = b"".join(lines_of(events))
    for size in range(content.index(b"\n") + 1, len(content) + 1):
        folder.path.write_bytes(content[:size])
        loaded = await folder.load()
        whole = content[:size].count(b"\n") - 1
        assert loaded[:whole] == events[:whole]
        assert assert_well_formed(loaded).open_turn is None


@settings(max_examples=2, deadline=None)
@given(logs().filter(lambda pairs: 3 < len(pairs) < 8))
def test_a_file_cut_at_any_byte_loads_to_a_repaired_beginning(pairs):
    with log_folder() as folder:
        anyio.run(cut_everywhere, folder, events_of(pairs))


@settings(max_examples=20, deadline=None)
@given(logs().filter(bool))
def test_what_a_store_wrote_loads_as_it_was_and_loading_twice_changes_no_byte(pairs):
    async def story(folder: LogFolder) -> None:
        journal = folder.store.create(folder.header)
        for event in events_of(pairs):
            journal.append(event)
            if event.seq % 3 == 0:
                journal.write_pending()
        await journal.close()
        first = await folder.load()
        assert first[: len(pairs)] == events_of(pairs)
        after = folder.path.read_bytes()
        assert await folder.load() == first
        assert folder.path.read_bytes() == after

    with log_folder() as folder:
        anyio.run(story, folder)
