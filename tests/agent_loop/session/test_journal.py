"""Writing a log on a disk that fails (contract session-log.md §9)."""

import os
import resource
import shutil
import threading
from contextlib import contextmanager

import anyio
import pytest

from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.disk_threads import DiskThreads
from agent_loop.session.events import SessionHeader
from agent_loop.session.file_lock import FileLock, Holder, LockHeldError, read_holder
from agent_loop.session.journal import TRIED_EACH_TICK, JsonlJournal
from agent_loop.session.layout import lock_path
from agent_loop.session.log_file import FileOperations
from agent_loop.session.store import PersistenceError
from tests.support.failing_files import DISK_FULL, IO_ERROR, FailingFiles
from tests.support.session_turns import delta, events_of, text_turn

HEADER = SessionHeader("s", 5)
EVENTS = events_of([*text_turn(1), *text_turn(2)])
HEAD = encode_header(HEADER)
LINES = [encode_event(event) for event in EVENTS]


@pytest.fixture
def files():
    return FailingFiles()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bucket" / "s.jsonl"


@pytest.fixture
def journal(path, files):
    return JsonlJournal(HEADER, path, operations=files, threads=DiskThreads())


def feed(journal, events):
    for event in events:
        journal.append(event)


async def test_a_batch_is_one_write(journal, files, path):
    feed(journal, EVENTS[:3])
    journal.write_pending()
    feed(journal, EVENTS[3:])
    journal.write_pending()
    journal.write_pending()
    assert files.writes == 2
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


async def test_a_flush_syncs_only_what_is_new(journal, files):
    await journal.flush()
    assert files.syncs == 0
    feed(journal, EVENTS[:1])
    await journal.flush()
    published = files.syncs
    await journal.flush()
    assert files.syncs == published
    feed(journal, EVENTS[1:])
    await journal.flush()
    await journal.flush()
    assert files.syncs == published + 1
    await journal.close()


async def test_a_short_write_is_continued(journal, files, path):
    files.short = 10
    feed(journal, EVENTS[:1])
    journal.write_pending()
    files.short = 3
    feed(journal, EVENTS[1:])
    journal.write_pending()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


async def test_a_failed_write_is_undone_and_its_events_wait(journal, files, path):
    feed(journal, EVENTS[:2])
    journal.write_pending()
    before = path.read_bytes()
    files.short, files.write_error = 7, DISK_FULL
    feed(journal, EVENTS[2:5])
    with pytest.raises(PersistenceError, match="No space left on device") as caught:
        journal.write_pending()
    assert caught.value.session_id == "s"
    assert path.read_bytes() == before
    assert [event async for event in journal.read()] == EVENTS[:5]
    feed(journal, EVENTS[5:])
    files.write_error = None
    journal.write_pending()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


async def test_what_could_not_be_undone_is_undone_before_the_next_write(journal, files, path):
    feed(journal, EVENTS[:2])
    journal.write_pending()
    before = path.read_bytes()
    files.short, files.write_error, files.truncate_error = 7, IO_ERROR, IO_ERROR
    feed(journal, EVENTS[2:])
    with pytest.raises(PersistenceError):
        journal.write_pending()
    assert path.read_bytes() == before + LINES[2][:7]
    files.write_error = None
    with pytest.raises(PersistenceError):
        journal.write_pending()
    files.truncate_error = None
    journal.write_pending()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


@pytest.mark.parametrize("kind", ["write_error", "sync_error"])
async def test_a_log_that_cannot_be_begun_leaves_no_file_and_is_begun_later(journal, files, path, kind):
    setattr(files, kind, DISK_FULL)
    feed(journal, EVENTS[:2])
    for _ in range(2):
        with pytest.raises(PersistenceError):
            journal.write_pending()
        assert [file.name for file in path.parent.iterdir()] == ["s.jsonl.lock"]
    setattr(files, kind, None)
    journal.write_pending()
    assert path.read_bytes() == HEAD + b"".join(LINES[:2])
    await journal.close()


async def test_what_a_crash_left_under_the_temporary_name_is_replaced(journal, path):
    path.parent.mkdir()
    path.with_name("s.jsonl.tmp").write_bytes(b"half a log")
    feed(journal, EVENTS[:1])
    journal.write_pending()
    assert path.read_bytes() == HEAD + LINES[0]
    assert not path.with_name("s.jsonl.tmp").exists()
    await journal.close()


async def test_a_failed_sync_is_reported_and_tried_again(journal, files):
    feed(journal, EVENTS[:1])
    await journal.flush()
    feed(journal, EVENTS[1:])
    files.sync_error = IO_ERROR
    for _ in range(2):
        with pytest.raises(PersistenceError, match="Input/output error"):
            await journal.flush()
    files.sync_error = None
    await journal.flush()
    await journal.close()


async def test_closing_reports_what_was_lost_and_lets_go_of_the_lock(journal, files, path):
    feed(journal, EVENTS[:1])
    await journal.flush()
    feed(journal, EVENTS[1:])
    files.write_error = DISK_FULL
    with pytest.raises(PersistenceError):
        await journal.close()
    FileLock.take(lock_path(path)).release()
    await journal.close()


async def test_a_log_that_another_process_began_is_not_touched(journal, path):
    path.parent.mkdir()
    held = FileLock.take(lock_path(path))
    feed(journal, EVENTS[:1])
    with pytest.raises(PersistenceError, match="open in another process"):
        journal.write_pending()
    held.release()
    journal.write_pending()
    await journal.close()


async def test_a_cancelled_flush_lets_the_next_one_through(journal, files):
    feed(journal, EVENTS[:1])
    await journal.flush()
    feed(journal, EVENTS[1:])
    files.hang = threading.Event()
    hanging, synced = files.hang, files.syncs
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(journal.flush)
            while files.syncs == synced:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        files.hang = None
        hanging.set()
        synced = files.syncs
        await journal.flush()
        assert files.syncs == synced + 1
        await journal.close()


async def test_what_is_asked_of_one_log_is_done_in_order_and_a_failure_stays_that_of_one(journal, files, path):
    feed(journal, EVENTS[:1])
    await journal.flush()
    ended = []

    async def flush():
        try:
            await journal.flush()
        except PersistenceError:
            ended.append("failed")
        else:
            ended.append("flushed")

    async def close():
        await journal.close()
        ended.append("closed")

    feed(journal, EVENTS[1:])
    files.hang, files.hanging_error = threading.Event(), IO_ERROR
    hanging, synced = files.hang, files.syncs
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush)
            while files.syncs == synced:
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(flush)
            tasks.start_soon(close)
            await anyio.wait_all_tasks_blocked()
            assert ended == []
            files.hang = None
            hanging.set()
    assert ended == ["failed", "flushed", "closed"]
    assert path.read_bytes() == HEAD + b"".join(LINES)


async def test_a_disk_that_stays_full_is_tried_again_a_bounded_number_of_times(journal, files, path):
    feed(journal, EVENTS[:1])
    journal.write_pending()
    files.write_error = DISK_FULL
    before = files.writes
    chunks = 2000
    many = events_of([*text_turn(1)[:3], *[delta(1, 1, "x")] * chunks])[1:]
    for event in many:
        journal.append(event)
        with pytest.raises(PersistenceError, match="No space left"):
            journal.write_pending()
    tries = files.writes - before
    assert TRIED_EACH_TICK < tries < 2 * TRIED_EACH_TICK
    with pytest.raises(PersistenceError):
        await journal.flush()
    assert files.writes - before == tries + 1, "a flush always tries"
    files.write_error = None
    await journal.flush()
    assert path.read_bytes() == HEAD + LINES[0] + b"".join(map(encode_event, many))
    # and from now on each tick writes again
    feed(journal, EVENTS[:1])
    journal.write_pending()
    assert path.read_bytes().endswith(LINES[0])
    await journal.close()


async def test_a_name_that_could_not_be_made_durable_is_told_by_the_flush_and_no_event_is_written_twice(
    journal, files, path
):
    files.directory_error = IO_ERROR
    feed(journal, EVENTS[:2])
    journal.write_pending()
    feed(journal, EVENTS[2:])
    for _ in range(2):
        with pytest.raises(PersistenceError, match="Input/output error"):
            await journal.flush()
    files.directory_error = None
    await journal.flush()
    synced = files.syncs
    await journal.flush()
    assert files.syncs == synced
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


# somebody else touches the files


async def test_a_log_whose_folder_was_removed_is_written_anew_with_all_that_it_held(journal, path):
    feed(journal, EVENTS[:3])
    await journal.flush()
    shutil.rmtree(path.parent)
    feed(journal, EVENTS[3:])
    journal.write_pending()
    assert not path.exists()
    await journal.flush()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    assert journal.put_back == 1
    assert sorted(file.name for file in path.parent.iterdir()) == ["s.jsonl", "s.jsonl.lock"]
    # the new lock is held, and the log goes on where it is now
    with pytest.raises(LockHeldError):
        FileLock.take(lock_path(path))
    feed(journal, EVENTS[:1])
    await journal.close()
    assert path.read_bytes() == HEAD + b"".join(LINES) + LINES[0]
    FileLock.take(lock_path(path)).release()


async def test_the_lock_names_the_socket_from_when_it_is_taken_also_when_it_is_taken_again(journal, path):
    journal.reachable_at("/run/first.sock")
    assert not lock_path(path).exists()
    feed(journal, EVENTS[:3])
    await journal.flush()
    assert read_holder(lock_path(path)) == Holder(os.getpid(), "/run/first.sock")
    journal.reachable_at("/run/s.sock")
    assert read_holder(lock_path(path)) == Holder(os.getpid(), "/run/s.sock")
    shutil.rmtree(path.parent)
    feed(journal, EVENTS[3:])
    await journal.flush()
    assert read_holder(lock_path(path)) == Holder(os.getpid(), "/run/s.sock")
    await journal.close()


async def test_a_log_of_which_only_the_file_was_removed_keeps_its_lock(journal, path):
    feed(journal, EVENTS[:3])
    await journal.flush()
    path.unlink()
    feed(journal, EVENTS[3:])
    await journal.flush()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


async def test_a_log_that_was_removed_before_its_name_was_durable_is_written_anew(journal, files, path):
    files.directory_error = IO_ERROR
    feed(journal, EVENTS[:3])
    journal.write_pending()
    files.directory_error = None
    shutil.rmtree(path.parent)
    await journal.flush()
    assert path.read_bytes() == HEAD + b"".join(LINES[:3])
    await journal.close()


async def test_a_removed_log_that_got_nothing_new_stays_removed(journal, path):
    feed(journal, EVENTS)
    await journal.flush()
    path.unlink()
    await journal.flush()
    await journal.close()
    assert not path.exists()


async def test_a_removed_log_that_cannot_be_written_anew_is_told_and_written_later(journal, files, path):
    feed(journal, EVENTS[:3])
    await journal.flush()
    shutil.rmtree(path.parent)
    path.parent.touch()
    feed(journal, EVENTS[3:])
    for _ in range(2):
        with pytest.raises(PersistenceError, match="Not a directory"):
            await journal.flush()
    path.parent.unlink()
    await journal.flush()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


async def test_a_removed_log_whose_disk_is_full_is_told_and_written_later(journal, files, path):
    feed(journal, EVENTS)
    journal.write_pending()
    path.unlink()
    files.write_error = DISK_FULL
    for _ in range(2):
        with pytest.raises(PersistenceError, match="No space left"):
            await journal.flush()
    assert [file.name for file in path.parent.iterdir()] == ["s.jsonl.lock"]
    files.write_error = None
    await journal.flush()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


async def test_another_file_in_the_place_of_the_log_is_told_and_not_touched(journal, path):
    feed(journal, EVENTS[:3])
    await journal.flush()
    os.replace(path, path.with_name("moved"))
    path.write_bytes(b"somebody else's")
    feed(journal, EVENTS[3:])
    with pytest.raises(PersistenceError, match="another file stands in its place"):
        await journal.flush()
    assert path.read_bytes() == b"somebody else's"
    assert path.with_name("moved").read_bytes() == HEAD + b"".join(LINES)
    path.unlink()
    await journal.close()
    assert path.read_bytes() == HEAD + b"".join(LINES)


async def test_the_folder_of_a_log_that_is_open_elsewhere_by_now_is_not_touched(journal, path):
    feed(journal, EVENTS[:3])
    await journal.flush()
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    held = FileLock.take(lock_path(path))
    feed(journal, EVENTS[3:])
    with pytest.raises(PersistenceError, match="open in another process"):
        await journal.flush()
    held.release()
    await journal.flush()
    assert path.read_bytes() == HEAD + b"".join(LINES)
    await journal.close()


@contextmanager
def file_size_limit(size: int):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_the_kernels_own_refusal_leaves_a_whole_log(path):
    journal = JsonlJournal(HEADER, path, operations=FileOperations(), threads=DiskThreads())
    feed(journal, EVENTS[:2])
    journal.write_pending()
    before = path.read_bytes()
    feed(journal, EVENTS[2:])
    with file_size_limit(len(before) + 50):
        try:
            journal.write_pending()
            refused = None
        except PersistenceError as error:
            refused = error
    assert refused is not None
    assert "File too large" in refused.message
    assert path.read_bytes() == before
    await journal.close()
    assert path.read_bytes() == HEAD + b"".join(LINES)
