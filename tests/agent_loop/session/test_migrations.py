"""Logs of older formats are read as the present one and never rewritten (contract session-log.md §1, §9)."""

import json

import pytest

from agent_loop.session.codec import LineError, decode_event, decode_header
from agent_loop.session.events import LOG_VERSION, SessionHeader
from agent_loop.session.migrations import MIGRATIONS, Migration, steps_from
from agent_loop.session.reader import LogReader
from agent_loop.session.salvage import LogSalvage
from agent_loop.session.scan import LogScan
from tests.support.session_turns import events_of, text_turn


def renamed(old: str, new: str):
    return lambda line: {new if key == old else key: value for key, value in line.items()}


# two formats that never were: the first called seq `number` and the type `kind`, the second still the latter
TABLE = {
    LOG_VERSION - 2: Migration(header=renamed("name", "id"), event=renamed("number", "seq")),
    LOG_VERSION - 1: Migration(header=renamed("made", "createdAt"), event=renamed("kind", "type")),
}
OLDEST = LOG_VERSION - 2
EVENTS = events_of(text_turn(1))


def old_line(event):
    return (
        json.dumps({"kind": event.type, "number": event.seq, "time": event.time, "data": event.data}).encode() + b"\n"
    )


HEADER_LINE = json.dumps({"type": "session", "version": OLDEST, "name": "s", "made": 5}).encode() + b"\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(HEADER_LINE + b"".join(map(old_line, EVENTS)))
    return path


def test_there_is_no_older_format_yet():
    assert dict(MIGRATIONS) == {}
    assert steps_from(LOG_VERSION) == ()
    for version in (LOG_VERSION - 1, -7, LOG_VERSION + 1):
        assert steps_from(version) is None


def test_a_format_that_never_was_is_no_header():
    with pytest.raises(LineError, match=f"there is no log format {LOG_VERSION - 1}"):
        decode_header(json.dumps(SessionHeader("s", 5, version=LOG_VERSION - 1).to_json()).encode())


def test_the_steps_lead_from_each_format_to_the_present_one():
    assert steps_from(OLDEST, TABLE) == (TABLE[OLDEST], TABLE[OLDEST + 1])
    assert steps_from(OLDEST + 1, TABLE) == (TABLE[OLDEST + 1],)
    assert steps_from(OLDEST, {OLDEST: TABLE[OLDEST]}) is None, "a step is missing"


def test_a_header_keeps_the_format_of_its_log():
    assert decode_header(HEADER_LINE, TABLE) == SessionHeader("s", 5, version=OLDEST)


def test_a_log_of_an_older_format_is_checked_and_read_as_the_present_one(path):
    before = path.read_bytes()
    events = []
    with path.open("rb") as file:
        scan = LogScan("s", file, events.append, migrations=TABLE)
        header = scan.read_header()
        while scan.advance():
            pass
    assert events == EVENTS
    reader = LogReader(header, path, from_seq=2, size=len(before), migrations=TABLE)
    assert reader.read_batch() == EVENTS[2:]
    reader.close()
    assert path.read_bytes() == before


def test_what_a_later_program_appended_is_read_as_well(path):
    more = events_of([*text_turn(1), *text_turn(2)])[7:]
    with path.open("ab") as file:
        file.writelines(
            json.dumps({"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}).encode() + b"\n"
            for event in more
        )
    events = []
    with path.open("rb") as file:
        scan = LogScan("s", file, events.append, migrations=TABLE)
        scan.read_header()
        while scan.advance():
            pass
    assert events == [*EVENTS, *more]


def test_a_salvage_writes_the_present_format():
    lines = []
    salvage = LogSalvage(lines.append, lambda *_part: None, steps=steps_from(OLDEST, TABLE))
    for number, event in enumerate(EVENTS, 2):
        salvage.feed(old_line(event), number, 0)
    salvage.finish()
    assert [decode_event(line).data for line in lines] == [event.data for event in EVENTS]
