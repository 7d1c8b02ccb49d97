"""Reading a log while somebody writes it."""

import os

import pytest

from agent_loop.session.events import SessionHeader
from agent_loop.session.follow import LogFollower
from agent_loop.session.store import SessionDamagedError
from tests.support.session_commands import log_bytes
from tests.support.session_turns import text_turn

HEADER = SessionHeader("s", 1, cwd="/srv/app")
TURN = log_bytes(HEADER, text_turn(1))
TWO = log_bytes(HEADER, [*text_turn(1), *text_turn(2)])
COUNT = len(text_turn(1))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(TURN)
    return path


@pytest.fixture
def follower(log):
    reading = LogFollower("s", log)
    yield reading
    reading.close()


def test_what_is_added_comes_with_the_next_read_and_half_a_line_with_its_other_half(log, follower):
    first = follower.read()
    assert (first.header, first.begins, first.at_end, len(first.events)) == (HEADER, True, True, COUNT)
    again = follower.read()
    assert (again.begins, again.events) == (False, [])
    with log.open("ab") as file:
        file.write(TWO[len(TURN) : -5])
        file.flush()
        assert len(follower.read().events) == COUNT - 1
        file.write(TWO[-5:])
    [last] = follower.read().events
    assert (last.type, last.seq) == ("turn/end", 2 * COUNT - 1)


def test_a_log_that_is_not_what_it_was_is_read_from_its_beginning(log, follower):
    log.write_bytes(TWO)
    follower.read()
    os.truncate(log, len(TURN))
    shorter = follower.read()
    assert (shorter.begins, len(shorter.events)) == (True, COUNT)
    other = log.with_name("other")
    other.write_bytes(TWO)
    other.replace(log)
    replaced = follower.read()
    assert (replaced.begins, len(replaced.events)) == (True, 2 * COUNT)


def test_a_bad_line_at_the_end_is_waited_out_until_it_is_cut_off(log, follower):
    follower.read()
    with log.open("ab") as file:
        file.write(b"\0\0\0\n")
    assert follower.read().events == []
    assert not follower.read().begins
    # as a load does: cut, then written on
    log.write_bytes(TWO)
    mended = follower.read()
    assert (mended.begins, len(mended.events)) == (True, 2 * COUNT)


def test_damage_and_absence_are_told(log, follower):
    log.write_bytes(TURN + b"\0\n" + TWO[len(TURN) :])
    with pytest.raises(SessionDamagedError):
        follower.read()
    log.write_bytes(b"{}\n")
    with pytest.raises(SessionDamagedError):
        follower.read()
    log.unlink()
    with pytest.raises(FileNotFoundError):
        follower.read()
