"""Damage in the middle of a session log: told by line and byte, never touched by a load, and salvaged when asked."""

import io
import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.salvage import LogSalvage
from agent_loop.session.store import Quarantined, SessionDamagedError
from tests.support.crash_facts import assert_well_formed, unanswered
from tests.support.log_folder import LogFolder, lines_of, log_folder
from tests.support.logs import session_logs
from tests.support.session_turns import events_of
from tests.support.small_logs import logs

HEADER = SessionHeader("s", 5)

LOGS = st.one_of(session_logs(), logs().map(events_of)).filter(lambda events: len(events) > 3)


def misshapen(line: bytes) -> bytes:
    """Valid JSON that is no event of its type."""
    event = json.loads(line)
    return json.dumps({**event, "type": "turn/end", "data": {"turn": "one"}}).encode() + b"\n"


DAMAGES: dict[str, Any] = {
    "NULs": lambda line: b"\0" * 200 + b"\n",
    "NULs before it": lambda line: b"\0" * 7 + line,
    "half a line": lambda line: line[: len(line) // 2] + b"\n",
    "glued to half of itself": lambda line: line[: len(line) // 2] + line,
    "no line": lambda line: b"",
    "an empty line before it": lambda line: b"\n" + line,
    "wrong seq": lambda line: line.replace(b'"seq":', b'"seq":9'),
    "wrong shape": misshapen,
    "not even text": lambda line: line[:9] + b"\xff\xfe" + line[9:],
    "without its line end": lambda line: line[:-1],
    "twice": lambda line: line + line,
    "some other JSON": lambda line: b"[1]\n",
}
PLACES = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(sorted(DAMAGES))), min_size=1, max_size=4, unique_by=lambda at: at[0]
)


def damaged(lines: list[bytes], places: list[tuple[int, str]]) -> list[bytes]:
    """The lines behind the header, some of them damaged."""
    changed = [*lines]
    for at, kind in places:
        index = 1 + at % (len(lines) - 1)
        changed[index] = DAMAGES[kind](lines[index])
    return changed


@given(LOGS, st.integers(0, 60), st.sampled_from(sorted(DAMAGES)))
def test_damage_with_a_good_line_behind_it_is_told_by_line_and_byte_and_not_touched(events, at, kind):
    lines = lines_of(events, HEADER)
    # neither of the last two events, which would be a bad tail when they are one line
    index = 1 + at % (len(lines) - 3)
    content = b"".join([*lines[:index], DAMAGES[kind](lines[index]), *lines[index + 1 :]])
    # what stands where the damage begins: behind a line that stands twice it is the second
    behind = kind == "twice"

    async def story(folder: LogFolder) -> SessionDamagedError:
        folder.path.write_bytes(content)
        with pytest.raises(SessionDamagedError) as caught:
            await folder.load()
        assert folder.path.read_bytes() == content
        assert {file.name for file in folder.path.parent.iterdir()} == {"s.jsonl", "s.jsonl.lock"}
        return caught.value

    with log_folder(HEADER) as folder:
        told = anyio.run(story, folder)
    assert told.line == index + 1 + behind
    assert told.offset == len(b"".join(lines[: index + behind]))
    assert f"line {told.line} (byte {told.offset})" in told.message


@given(LOGS, PLACES)
def test_a_salvaged_log_loads_and_a_second_salvage_changes_nothing(events, places):
    lines = lines_of(events, HEADER)
    content = b"".join(damaged(lines, places))

    async def story(folder: LogFolder) -> None:
        folder.path.write_bytes(content)
        report = await folder.store.salvage("s")
        after = folder.path.read_bytes()
        assert (after == content) == (report.quarantine_path is None)
        assert (await folder.store.salvage("s")).quarantine_path is None
        assert folder.path.read_bytes() == after
        loaded = await folder.load()
        assert assert_well_formed(loaded).open_turn is None
        assert report.quarantine_path is None or unanswered(loaded) == []
        assert await folder.load() == loaded

    with log_folder(HEADER) as folder:
        anyio.run(story, folder)


@given(LOGS, PLACES)
def test_every_good_line_that_can_stand_stays_and_every_other_byte_is_handed_out(events, places):
    lines = lines_of(events, HEADER)
    content = b"".join(damaged(lines, places)[1:])
    kept: list[dict[str, Any]] = []
    taken_out: list[tuple[Quarantined, bytes]] = []
    salvage = LogSalvage(
        lambda line: kept.append(json.loads(line)), lambda entry, part: taken_out.append((entry, part))
    )
    offset = 0
    for number, line in enumerate(io.BytesIO(content), 2):
        salvage.feed(line, number, offset)
        offset += len(line)
    salvage.finish()
    for entry, part in taken_out:
        assert content[entry.offset : entry.offset + len(part)] == part
    # what was said is there, unless the very line that said it was damaged
    hit = {1 + at % (len(lines) - 1) for at, _kind in places}
    said = {"user/message", "assistant/message", "assistant/chunk", "command/run", "command/done", "session/title"}
    for index, event in enumerate(events, 1):
        if index not in hit and event.type in said:
            assert any(_says_the_same(event, row) for row in kept), event
    assert [row["seq"] for row in kept] == list(range(len(kept)))
    assert salvage.kept <= len(kept)


def _says_the_same(event: SessionEvent, row: dict[str, Any]) -> bool:
    numbers = ("turn", "step")
    mine = {key: value for key, value in event.data.items() if key not in numbers}
    theirs = {key: value for key, value in row["data"].items() if key not in numbers}
    return (row["type"], theirs) == (event.type, mine)
