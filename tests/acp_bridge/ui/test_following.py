"""The stream of events of a session's page."""

import json
import os
from contextlib import aclosing

import pytest

from acp_bridge.ui.following import KEEP_ALIVE_LOOKS, OWNER_LOOKS, Sources, session_frames
from acp_bridge.ui.frames import KEEP_ALIVE
from agent_loop.session.file_lock import FileLock
from agent_loop.session.layout import find_log, lock_path
from tests.support.immediate_runtime import ImmediateRuntime
from tests.support.page import add_events
from tests.support.session_commands import CommandWorld, tools
from tests.support.session_turns import text_turn

MANY = 30_000


@pytest.fixture
def world(tmp_path):
    return CommandWorld(tmp_path / "sessions")


def sources_of(world):
    def find(session_id):
        return find_log(world.root, session_id, None)

    return Sources(world.store(world.root), find, tools().get, ImmediateRuntime())


def read(frames):
    """(name, data) of each frame."""
    lines = [each.decode().split("\n") for each in frames]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in lines]


async def collected(world, session_id, *, looks=1, between=None):
    """What is told at each of so many looks."""
    left = looks

    def ended():
        nonlocal left
        left -= 1
        if between and left < looks - 1:
            between(looks - left - 1)
        return left < 0

    async with aclosing(session_frames(sources_of(world), session_id, ended=ended)) as frames:
        return [each async for each in frames]


async def test_a_log_is_told_and_what_is_added_to_it(world):
    log = world.write("s", text_turn(1))
    told = read(await collected(world, "s", looks=2, between=lambda _look: add_events(log, *text_turn(2))))
    assert [name for name, _ in told] == ["begin", "title", "loops", "entries", "owner", "entries"]
    assert told[4] == ("owner", "none")
    assert "Turn 2" in told[5][1]["html"]


async def test_a_log_of_many_reads_is_told_once_and_its_end_only(world):
    world.write("s", [pair for turn in range(1, MANY // 7) for pair in text_turn(turn)])
    [entries] = [data for name, data in read(await collected(world, "s", looks=4)) if name == "entries"]
    assert entries["leftOut"] > 10_000


async def test_the_owner_is_looked_for_again_when_the_lock_tells_of_another(world):
    log = world.write("s", text_turn(1))
    held = []

    def take_and_release(look):
        if look == 1:
            held.append(FileLock.take(lock_path(log)))
        elif look == OWNER_LOOKS + 1:
            held[0].release()

    told = await collected(world, "s", looks=2 * OWNER_LOOKS + 1, between=take_and_release)
    assert [data for name, data in read(told) if name == "owner"] == ["none", "open", "none"]


async def test_a_stream_without_news_shows_that_it_lives(world):
    world.write("s", text_turn(1))
    assert (await collected(world, "s", looks=KEEP_ALIVE_LOOKS + 1))[-1] == KEEP_ALIVE


async def test_what_ends_a_stream_is_told(world):
    assert read(await collected(world, "none")) == [("problem", "no session 'none' is stored")]
    log = world.write("s", text_turn(1))
    told = read(await collected(world, "s", looks=2, between=lambda _look: log.unlink(missing_ok=True)))
    assert told[-1] == ("problem", "no session 's' is stored")
    log.write_bytes(b"{}\n")
    assert "damaged at line 1" in read(await collected(world, "s"))[0][1]
    os.unlink(log)
    log.mkdir()
    assert read(await collected(world, "s")) == [("problem", "the log cannot be read: Is a directory")]
