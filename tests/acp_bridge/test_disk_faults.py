"""Disks that fail under a conversation (contracts session-log.md §9, agent-loop.md §4): the turn ends, the user is
told, nothing that was written is lost, and the log is whole again when the disk is.
"""

import shutil
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial

import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from tests.support.bridge_world import bridge_world
from tests.support.crash_facts import assert_repaired
from tests.support.failing_files import DISK_FULL, IO_ERROR, FailingFiles
from tests.support.scripted_adapter import says
from tests.support.small_disk import SmallDisk, small_disk

PROMPTS = ["the first", "x" * 20_000, "the third"]
TOLD = "This conversation may be lost"


async def stored(root, session, cwd):
    """The events of the log, as another process finds them."""
    events = []
    opened = await JsonlSessionStore(root, VirtualRuntime()).load(session, cwd, on_event=events.append)
    await opened.journal.close()
    return events


def prompts_of(events):
    return [event.data["content"][0]["text"] for event in events if event.type == "user/message"]


@contextmanager
def full(_files: FailingFiles, disk: SmallDisk):
    disk.fill()
    yield
    disk.free()


@contextmanager
def full_in_the_middle_of_a_line(files: FailingFiles, _disk: SmallDisk):
    files.short, files.write_error = 50, DISK_FULL
    yield
    files.write_error = None


@contextmanager
def failing_writes(files: FailingFiles, _disk: SmallDisk):
    files.write_error = files.truncate_error = IO_ERROR
    yield
    files.write_error = files.truncate_error = None


@contextmanager
def failing_syncs(files: FailingFiles, _disk: SmallDisk):
    files.sync_error = IO_ERROR
    yield
    files.sync_error = None


@pytest.mark.parametrize("fault", [full, full_in_the_middle_of_a_line, failing_writes, failing_syncs])
async def test_a_turn_on_a_failing_disk_ends_is_told_and_is_stored_when_the_disk_is_well_again(
    tmp_path, fault: Callable[..., object]
):
    files = FailingFiles()
    with small_disk(tmp_path / "disk") as disk:
        root = disk.path / "sessions"
        store = partial(JsonlSessionStore, root, operations=files)
        async with bridge_world(fallback=says("x"), cwd=tmp_path, store=store) as world:
            session = await world.new_session()
            assert await world.prompt(session, PROMPTS[0]) == {"stopReason": "end_turn"}
            before = log_path(root, session, world.cwd).read_bytes()
            with fault(files, disk):
                answer = await world.answer(await world.send_prompt(session, PROMPTS[1]))
                failed = answer.get("error", {}).get("data", {}).get("reason") == "persistence"
                assert failed or answer["result"]["_meta"] == {"dsh": {"persistence": "failed"}}
                assert world.text().count(TOLD) == 1
                assert log_path(root, session, world.cwd).read_bytes().startswith(before)
            assert await world.prompt(session, PROMPTS[2]) == {"stopReason": "end_turn"}
            assert world.text().count(TOLD) == 1
        events = await stored(root, session, str(tmp_path))
    assert_repaired(events)
    assert prompts_of(events) == PROMPTS
    assert [event.data["turn"] for event in events if event.type == "turn/end"] == [1, 2, 3]


async def test_a_conversation_on_a_read_only_disk_goes_on_is_told_and_is_stored_when_it_may_be(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        root = disk.path / "sessions"
        store = partial(JsonlSessionStore, root)
        async with bridge_world(fallback=says("x"), cwd=tmp_path, store=store) as world:
            session = await world.new_session()
            disk.make_read_only()
            answer = await world.answer(await world.send_prompt(session, PROMPTS[0]))
            assert "result" in answer or answer["error"]["data"]["reason"] == "persistence"
            assert world.text().count(TOLD) == 1
            assert not root.exists()
            disk.make_writable()
            assert await world.prompt(session, PROMPTS[2]) == {"stopReason": "end_turn"}
        events = await stored(root, session, str(tmp_path))
    assert_repaired(events)
    assert prompts_of(events) == [PROMPTS[0], PROMPTS[2]]


async def test_a_log_that_is_removed_while_it_is_open_is_written_anew_and_that_is_told(tmp_path):
    root = tmp_path / "sessions"
    store = partial(JsonlSessionStore, root)
    async with bridge_world(fallback=says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.prompt(session, PROMPTS[0])
        shutil.rmtree(root)
        assert await world.prompt(session, PROMPTS[1]) == {"stopReason": "end_turn"}
        assert world.text().count("The stored conversation had been removed") == 1
        assert await world.prompt(session, PROMPTS[2]) == {"stopReason": "end_turn"}
        assert world.text().count("had been removed") == 1
    events = await stored(root, session, str(tmp_path))
    assert_repaired(events)
    assert prompts_of(events) == PROMPTS


async def test_a_log_whose_place_somebody_took_is_told_in_each_turn_and_left_alone(tmp_path):
    root = tmp_path / "sessions"
    store = partial(JsonlSessionStore, root)
    async with bridge_world(fallback=says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.prompt(session, PROMPTS[0])
        path = log_path(root, session, world.cwd)
        path.rename(path.with_name("moved"))
        path.write_bytes(b"somebody else's")
        answer = await world.prompt(session, PROMPTS[1])
        assert answer["_meta"] == {"dsh": {"persistence": "failed"}}
        assert "another file stands in its place" in world.text()
        path.unlink()
        assert await world.prompt(session, PROMPTS[2]) == {"stopReason": "end_turn"}
    events = await stored(root, session, str(tmp_path))
    assert prompts_of(events) == PROMPTS
