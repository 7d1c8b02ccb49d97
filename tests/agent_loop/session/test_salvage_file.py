"""Salvaging the file of a damaged log (contract session-log.md §9)."""

import json
import os
import stat
import threading

import anyio
import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import encode_header
from agent_loop.session.events import SessionHeader
from agent_loop.session.file_lock import FileLock, LockHeldError
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import lock_path, log_path
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.store import (
    PersistenceError,
    SalvageReport,
    SessionDamagedError,
    SessionLockedError,
    SessionMismatchError,
    SessionNotFoundError,
    SessionVersionError,
)
from tests.support.crash_facts import assert_repaired
from tests.support.failing_files import DISK_FULL, IO_ERROR, FailingFiles
from tests.support.log_folder import HEADER, LogFolder, lines_of, log_folder
from tests.support.session_turns import events_of, text_turn, tool_turn

EVENTS = events_of([*text_turn(1), *tool_turn(2, "c")])
LINES = lines_of(EVENTS)
BAD = b"\0\0\xff\n"
DAMAGED = b"".join([*LINES[:4], BAD, *LINES[5:]])


@pytest.fixture
def folder():
    with log_folder() as made:
        yield made


def beside(folder: LogFolder, suffix: str):
    return folder.path.with_name(folder.path.name + suffix)


def names(folder: LogFolder):
    """The files of the session, without its lock."""
    return sorted(file.name for file in folder.path.parent.iterdir() if not file.name.endswith(".lock"))


async def test_a_damaged_log_loads_after_its_salvage_and_the_bad_line_lies_beside_it(folder):
    folder.path.write_bytes(DAMAGED)
    report = await folder.store.salvage("s")
    place = (5, len(b"".join(LINES[:4])), "it is no JSON")
    assert report == SalvageReport(len(EVENTS) - 1, (place,), str(beside(folder, ".damaged")))
    assert_repaired(await folder.load())
    assert folder.path.read_bytes().startswith(b"".join(LINES[:4]))
    told, _end, content = beside(folder, ".damaged").read_bytes().partition(b"\n")
    assert json.loads(told) == {"line": 5, "offset": place[1], "bytes": len(BAD), "what": place[2]}
    assert content == BAD + b"\n"
    assert names(folder) == ["s.jsonl", "s.jsonl.damaged"]
    for file in (folder.path, beside(folder, ".damaged")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.stat().st_nlink == 1


@pytest.mark.parametrize(
    "content", [b"".join(LINES), b"".join(LINES[:12]), b"".join(LINES[:8]) + BAD[:2], b"".join(LINES)[:-1]]
)
async def test_a_log_that_a_load_accepts_stays_as_it_is(folder, content):
    folder.path.write_bytes(content)
    report = await folder.store.salvage("s")
    assert (report.quarantined, report.quarantine_path) == ((), None)
    assert report.kept == len(content.splitlines()) - 1 - (not content.endswith(b"\n"))
    assert folder.path.read_bytes() == content
    assert names(folder) == ["s.jsonl"]


async def test_a_second_salvage_changes_nothing(folder):
    folder.path.write_bytes(DAMAGED)
    await folder.store.salvage("s")
    after = folder.path.read_bytes()
    assert await folder.store.salvage("s") == SalvageReport(len(EVENTS) - 1)
    assert folder.path.read_bytes() == after


async def test_each_salvage_adds_to_what_lies_beside(folder):
    for bad in (b"one\n", b"two\n"):
        folder.path.write_bytes(b"".join([*LINES[:4], bad, *LINES[5:]]))
        await folder.store.salvage("s")
    assert [line for line in beside(folder, ".damaged").read_bytes().splitlines() if line] == [
        b'{"line":5,"offset":369,"bytes":4,"what":"it is no JSON"}',
        b"one",
        b'{"line":5,"offset":369,"bytes":4,"what":"it is no JSON"}',
        b"two",
    ]


async def test_a_long_log_passes_in_batches(folder):
    pairs = [pair for turn in range(1, 30) for pair in text_turn(turn, "x" * 50_000)]
    lines = lines_of(events_of(pairs))
    folder.path.write_bytes(b"".join([*lines[:3], b"y" * 1_500_000 + b"\n", *lines[3:]]))
    report = await folder.store.salvage("s")
    assert report.kept == len(pairs)
    assert folder.path.read_bytes() == b"".join(lines)


# the header


async def test_a_header_of_another_session_or_folder_is_none_of_ours(folder):
    folder.path.write_bytes(DAMAGED.replace(b'"id":"s"', b'"id":"t"'))
    with pytest.raises(SessionMismatchError):
        await folder.store.salvage("s")
    folder.path.write_bytes(DAMAGED.replace(b'"cwd":"/w"', b'"cwd":"/v"'))
    with pytest.raises(SessionMismatchError):
        await folder.store.salvage("s")
    assert names(folder) == ["s.jsonl"]


@pytest.mark.parametrize("gap", [b"\n", b"glued"])
async def test_a_later_format_is_refused_untouched(folder, gap):
    content = encode_header(SessionHeader("s", 5, cwd="/w", version=2)).rstrip() + gap + b"".join(LINES[1:])
    folder.path.write_bytes(content)
    with pytest.raises(SessionVersionError):
        await folder.store.salvage("s")
    assert folder.path.read_bytes() == content
    assert names(folder) == ["s.jsonl"]


async def test_a_header_that_shares_its_line_with_an_event_is_told_and_both_stay(folder):
    folder.path.write_bytes(b"".join([LINES[0].rstrip(), *LINES[1:]]))
    report = await folder.store.salvage("s")
    assert report.quarantined == ((1, len(LINES[0]) - 1, "it shares the line of the header; both stay"),)
    assert folder.path.read_bytes() == b"".join(LINES)


LOST = (1, 0, "the header was lost; the new one says what is still known")


@pytest.mark.parametrize("first", [b"\0\0\0\n", b""])
async def test_a_lost_header_is_told_by_another_session_of_the_folder(folder, first):
    folder.path.with_name("a.jsonl").write_bytes(b"no header either\n")
    sibling = encode_header(SessionHeader("b", 1, cwd="/w"))
    folder.path.with_name("b.jsonl").write_bytes(sibling)
    folder.path.write_bytes(first + b"".join(LINES[1:]))
    report = await folder.store.salvage("s")
    assert report.quarantined[0] == LOST
    assert len(report.quarantined) == (2 if first else 1)
    assert folder.path.read_bytes() == encode_header(SessionHeader("s", 1000, cwd="/w")) + b"".join(LINES[1:])
    assert await folder.load() == EVENTS


async def test_a_lost_header_of_a_session_without_directory_is_told_by_its_path():
    with log_folder(SessionHeader("s", 5)) as folder:
        folder.path.write_bytes(b"{\n" + b"".join(LINES[1:]))
        await folder.store.salvage("s")
        assert await folder.load() == EVENTS


async def test_a_lost_header_that_nobody_tells_is_refused_untouched(folder):
    content = b"{\n" + b"".join(LINES[1:])
    folder.path.write_bytes(content)
    # a session that lies here by mistake tells of another directory
    folder.path.with_name("a.jsonl").write_bytes(encode_header(SessionHeader("a", 1, cwd="/elsewhere")))
    with pytest.raises(SessionDamagedError, match="its header is lost, and no other session") as caught:
        await folder.store.salvage("s")
    assert (caught.value.line, caught.value.offset) == (1, 0)
    assert folder.path.read_bytes() == content
    assert names(folder) == ["a.jsonl", "s.jsonl"]


@pytest.mark.parametrize("content", [b"", b"\0\0\0", LINES[0][:-1], BAD * 3])
async def test_a_log_of_which_nothing_can_be_kept_is_refused_untouched(folder, content):
    folder.path.write_bytes(content)
    with pytest.raises(SessionDamagedError, match="line 1"):
        await folder.store.salvage("s")
    assert folder.path.read_bytes() == content
    assert names(folder) == ["s.jsonl"]


async def test_a_fork_says_how_much_it_still_inherits():
    header = SessionHeader("s", 5, cwd="/w", parent_session="p", seed_length=7)
    with log_folder(header) as folder:
        folder.path.write_bytes(b"".join([encode_header(header), *LINES[1:4], BAD, *LINES[5:]]))
        await folder.store.salvage("s")
        assert json.loads(folder.path.read_bytes().splitlines()[0])["seedLength"] == 6


# faults


@pytest.fixture
def failing():
    """The same folder on a disk that fails on demand."""
    with log_folder() as made:
        files = FailingFiles()
        made.store = JsonlSessionStore(made.path.parents[1], VirtualRuntime(), operations=files)
        made.path.write_bytes(DAMAGED)
        yield made, files


@pytest.mark.parametrize("before", [b"", b"from an earlier salvage\n"])
@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [("write_error", DISK_FULL, "No space left"), ("sync_error", IO_ERROR, "Input/output error")],
)
async def test_a_disk_that_fails_leaves_everything_as_it_was(failing, before, kind, code, words):
    folder, files = failing
    damaged = beside(folder, ".damaged")
    if before:
        damaged.write_bytes(before)
    setattr(files, kind, code)
    with pytest.raises(PersistenceError, match=words):
        await folder.store.salvage("s")
    assert folder.path.read_bytes() == DAMAGED
    assert names(folder) == (["s.jsonl", "s.jsonl.damaged"] if before else ["s.jsonl"])
    assert not before or damaged.read_bytes() == before
    setattr(files, kind, None)
    assert (await folder.store.salvage("s")).kept == len(EVENTS) - 1


async def test_a_disk_that_fails_at_the_last_moment_leaves_the_old_log_or_the_new_one(failing):
    folder, files = failing
    files.directory_error = IO_ERROR
    with pytest.raises(PersistenceError):
        await folder.store.salvage("s")
    assert folder.path.read_bytes() == DAMAGED
    files.directory_error, files.directory_syncs_before_error = IO_ERROR, 1
    with pytest.raises(PersistenceError):
        await folder.store.salvage("s")
    # it took its place, and nobody can say yet whether that is durable: the old one is still there
    assert beside(folder, ".before-repair").read_bytes() == DAMAGED
    files.directory_error = None
    assert (await folder.store.salvage("s")).quarantine_path is None
    assert names(folder) == ["s.jsonl", "s.jsonl.damaged"]


async def test_what_a_crash_left_over_is_replaced(folder):
    folder.path.write_bytes(DAMAGED)
    os.link(folder.path, beside(folder, ".before-repair"))
    beside(folder, ".tmp").write_bytes(b"half a log")
    await folder.store.salvage("s")
    assert_repaired(await folder.load())
    assert names(folder) == ["s.jsonl", "s.jsonl.damaged"]


async def test_nobody_opens_the_session_meanwhile(failing):
    folder, files = failing
    files.hang = threading.Event()
    hanging = files.hang
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(folder.store.salvage, "s")
            while not files.syncs:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(LockHeldError):
                FileLock.take(lock_path(folder.path))
            files.hang = None
            hanging.set()
    assert_repaired(await folder.load())


# both stores


@pytest.fixture(params=["jsonl", "memory"])
def store(request, tmp_path):
    return JsonlSessionStore(tmp_path, VirtualRuntime()) if request.param == "jsonl" else MemorySessionStore()


async def test_an_unknown_session_is_not_found(store):
    for session_id in ("nobody", ""):
        with pytest.raises(SessionNotFoundError):
            await store.salvage(session_id)


async def test_a_healthy_session_is_told_to_be_so(store):
    journal = store.create(HEADER)
    for event in EVENTS:
        journal.append(event)
    await journal.close()
    assert await store.salvage("s") == SalvageReport(len(EVENTS))


async def test_a_session_that_is_open_is_not_touched(tmp_path):
    memory = MemorySessionStore()
    runtime = VirtualRuntime()
    jsonl = JsonlSessionStore(tmp_path, runtime)
    for store in (memory, jsonl):
        journal = store.create(HEADER)
        journal.append(EVENTS[0])
        journal.write_pending()
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:

                async def refused(store=store, tasks=tasks):
                    with pytest.raises(SessionLockedError):
                        await store.salvage("s")
                    tasks.cancel_scope.cancel()

                tasks.start_soon(refused)
                while True:
                    await anyio.lowlevel.checkpoint()
                    runtime.advance(100)
        await journal.close()


async def test_a_log_that_is_deleted_while_its_lock_is_awaited_is_not_found(tmp_path):
    runtime = VirtualRuntime()
    store = JsonlSessionStore(tmp_path, runtime)
    path = log_path(tmp_path, "s", "/w")
    path.parent.mkdir()
    path.write_bytes(DAMAGED)
    held = FileLock.take(lock_path(path))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def gone():
                with pytest.raises(SessionNotFoundError):
                    await store.salvage("s")

            tasks.start_soon(gone)
            while not runtime.sleeping:
                await anyio.lowlevel.checkpoint()
            path.unlink()
            held.release()
            runtime.advance(50)
