"""Session logs as files (contract session-log.md §9): what is on the disk, what is refused, what is repaired."""

import json
import os
import stat
import subprocess
import sys

import anyio
import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionHeader, make_event
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import lock_path, log_path
from agent_loop.session.store import (
    PersistenceError,
    SessionDamagedError,
    SessionLockedError,
    SessionMismatchError,
    SessionNotFoundError,
    SessionStoreError,
    SessionVersionError,
)
from tests.support.failing_files import DISK_FULL, FailingFiles
from tests.support.session_turns import events_of, step_start, text_turn, tool_turn, turn_start, user

HEADER = SessionHeader("s", 5, cwd="/srv/app")
LINES = [encode_header(HEADER), *map(encode_event, events_of([*text_turn(1), *tool_turn(2, "c")]))]


@pytest.fixture
def store(tmp_path):
    return JsonlSessionStore(tmp_path, VirtualRuntime())


@pytest.fixture
def path(tmp_path):
    path = log_path(tmp_path, "s", "/srv/app")
    path.parent.mkdir()
    return path


async def loaded(store, session_id="s", cwd="/srv/app"):
    """The events of a load, after closing."""
    events = []
    opened = await store.load(session_id, cwd, on_event=events.append)
    assert opened.event_count == len(events)
    assert [event async for event in opened.journal.read()] == events
    await opened.journal.close()
    return events


async def test_a_new_log_is_one_private_file_beside_its_lock(tmp_path, store):
    journal = store.create(HEADER)
    for event in events_of(text_turn(1)):
        journal.append(event)
    assert list(tmp_path.iterdir()) == []
    await journal.close()
    path = log_path(tmp_path, "s", "/srv/app")
    assert sorted(file.name for file in path.parent.iterdir()) == ["s.jsonl", "s.jsonl.lock"]
    assert path.read_bytes() == b"".join([encode_header(HEADER), *map(encode_event, events_of(text_turn(1)))])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_nlink == 1


async def test_a_load_of_a_whole_log_changes_no_byte_however_often(store, path):
    path.write_bytes(b"".join(LINES))
    for _ in range(3):
        assert len(await loaded(store)) == len(LINES) - 1
        assert path.read_bytes() == b"".join(LINES)


async def test_a_torn_tail_is_cut_and_the_turn_closed_once(store, path):
    path.write_bytes(b"".join(LINES[:13]) + LINES[13][:20])
    events = await loaded(store)
    assert events[-1].data == {"turn": 2, "reason": {"kind": "interrupted"}}
    after = path.read_bytes()
    assert after.startswith(b"".join(LINES[:13]))
    assert await loaded(store) == events
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    "tail", [LINES[9][:-1], b"\0" * 4096, b"{", LINES[9][:-3] + b"\n", b"\0\n\0\n", b"[]\n{}\nhalf"]
)
async def test_a_bad_tail_after_the_last_turn_is_cut(store, path, tail):
    whole = b"".join(LINES[:8])
    path.write_bytes(whole + tail)
    assert [event.seq for event in await loaded(store)] == list(range(7))
    assert path.read_bytes() == whole


async def test_a_last_event_without_its_line_end_is_torn(store, path):
    path.write_bytes(b"".join(LINES)[:-1])
    events = await loaded(store)
    assert events[-1].data["reason"] == {"kind": "interrupted"}
    assert len(events) == len(LINES) - 1


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"\0\0\0\n", "no JSON"),
        (LINES[3][:25] + b"\n", "no JSON"),
        (LINES[3][:25] + LINES[3], "no JSON"),
        (b"\n", "no JSON"),
        (b'{"seq":2}\n', "no event"),
        (LINES[4], "its seq is 3, 2 was expected"),
        (LINES[2], "its seq is 1, 2 was expected"),
        (encode_event(make_event("step/start", 2, 0, {"turn": 1})), "'step' is not an integer"),
        (encode_event(make_event("step/start", 2, 0, {"turn": 7, "step": 1})), "it names turn 7"),
    ],
)
async def test_a_bad_line_with_good_ones_behind_it_is_damage_and_nothing_is_touched(store, path, bad, words):
    content = b"".join([*LINES[:3], bad, *LINES[4:]])
    path.write_bytes(content)
    with pytest.raises(SessionDamagedError, match=words) as caught:
        await store.load("s", "/srv/app")
    assert (caught.value.line, caught.value.offset) == (4, len(b"".join(LINES[:3])))
    assert path.read_bytes() == content


async def test_the_first_of_several_bad_lines_is_named(store, path):
    path.write_bytes(b"".join([*LINES[:3], b"one\n", b"two\n", *LINES[4:]]))
    with pytest.raises(SessionDamagedError, match="line 4"):
        await store.load("s", "/srv/app")


@pytest.mark.parametrize("header", [b"", b"{}\n", LINES[0][:-1], LINES[1], b'{"type":"session","version":0}\n'])
async def test_a_file_without_header_is_damaged_at_its_first_byte(store, path, header):
    path.write_bytes(header)
    with pytest.raises(SessionDamagedError) as caught:
        await store.load("s", "/srv/app")
    assert (caught.value.line, caught.value.offset) == (1, 0)
    assert path.read_bytes() == header


async def test_a_later_format_is_refused_and_untouched(store, path):
    content = encode_header(SessionHeader("s", 5, cwd="/srv/app", version=2)) + b"whatever\n"
    path.write_bytes(content)
    with pytest.raises(SessionVersionError, match="format 2"):
        await store.load("s", "/srv/app")
    assert path.read_bytes() == content


async def test_a_header_of_another_session_is_refused(store, path):
    path.write_bytes(encode_header(SessionHeader("t", 5, cwd="/srv/app")))
    with pytest.raises(SessionMismatchError, match="'t'"):
        await store.load("s", "/srv/app")


async def test_a_log_in_the_wrong_folder_is_refused(store, path):
    path.write_bytes(encode_header(SessionHeader("s", 5, cwd="/elsewhere")))
    with pytest.raises(SessionMismatchError, match="wrong folder"):
        await store.load("s", None)


async def test_unknown_events_are_kept_verbatim(store, path):
    strange = make_event("someone/else", 7, 9, {"keep": ["me", None]})
    content = b"".join(LINES[:8]) + encode_event(strange)
    path.write_bytes(content)
    assert (await loaded(store))[-1] == strange
    assert path.read_bytes() == content


async def test_a_log_of_many_megabytes_is_read_in_pieces(store, path):
    big = "x" * 300_000
    pairs = [turn_start(1), *[user(big) for _ in range(10)], ("turn/end", {"turn": 1, "reason": {"kind": "completed"}})]
    path.write_bytes(encode_header(HEADER) + b"".join(map(encode_event, events_of(pairs))))
    assert len(await loaded(store)) == 12


async def test_a_log_that_is_changed_while_it_is_open_is_reported_by_its_line(store, path):
    path.write_bytes(b"".join(LINES))
    opened = await store.load("s", "/srv/app")
    path.write_bytes(b"".join([*LINES[:3], b"x" * (len(LINES[3]) - 1) + b"\n", *LINES[4:]]))
    with pytest.raises(SessionDamagedError) as caught:
        _ = [event async for event in opened.journal.read()]
    assert (caught.value.line, caught.value.offset) == (4, len(b"".join(LINES[:3])))
    await opened.journal.close()


async def test_a_log_that_vanished_while_it_is_open_cannot_be_read(store, path):
    path.write_bytes(b"".join(LINES))
    opened = await store.load("s", "/srv/app")
    path.unlink()
    with pytest.raises(SessionStoreError, match="cannot be opened"):
        _ = [event async for event in opened.journal.read()]
    await opened.journal.close()


async def test_a_reader_that_stops_early_leaves_no_file_open(store, path):
    path.write_bytes(b"".join(LINES))
    opened = await store.load("s", "/srv/app")
    before = os.listdir("/dev/fd")
    reading = opened.journal.read()
    assert (await anext(reading)).seq == 0
    await reading.aclose()
    assert len(os.listdir("/dev/fd")) == len(before)
    await opened.journal.close()


async def test_a_root_that_is_no_folder_surfaces_as_such(tmp_path):
    (tmp_path / "root").touch()
    store = JsonlSessionStore(tmp_path / "root", VirtualRuntime())
    with pytest.raises(SessionStoreError, match="cannot be opened: Not a directory"):
        await store.load("s", None)


async def test_a_log_that_is_a_folder_cannot_be_read(store, path):
    path.mkdir()
    with pytest.raises(SessionStoreError, match="cannot be opened"):
        await store.load("s", "/srv/app")


async def test_a_lock_that_cannot_be_made_is_reported(store, path):
    path.write_bytes(b"".join(LINES))
    lock_path(path).mkdir()
    with pytest.raises(PersistenceError, match="directory"):
        await store.load("s", "/srv/app")


async def test_a_log_deleted_while_its_lock_was_awaited_is_not_found(tmp_path, path):
    runtime = VirtualRuntime()
    store = JsonlSessionStore(tmp_path, runtime)
    path.write_bytes(b"".join(LINES))
    first = await store.load("s", "/srv/app")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def second():
                with pytest.raises(SessionNotFoundError):
                    await store.load("s", "/srv/app")

            tasks.start_soon(second)
            while not runtime.sleeping:
                await anyio.lowlevel.checkpoint()
            path.unlink()
            await first.journal.close()
            runtime.advance(50)


async def test_a_repair_that_cannot_be_written_refuses_the_load_and_holds_nothing(tmp_path, path):
    files = FailingFiles()
    store = JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)
    content = b"".join(LINES[:10])
    path.write_bytes(content)
    files.write_error = DISK_FULL
    with pytest.raises(PersistenceError, match="No space left"):
        await store.load("s", "/srv/app")
    assert path.read_bytes() == content
    files.write_error = None
    assert (await loaded(store))[-1].type == "turn/end"


HOLD = """
import sys
from pathlib import Path
import anyio
from agent_loop.runtime import SystemRuntime
from agent_loop.session.jsonl import JsonlSessionStore

async def main():
    await JsonlSessionStore(Path(sys.argv[1]), SystemRuntime()).load("s", None)
    print("open", flush=True)
    sys.stdin.read()

anyio.run(main)
"""


async def test_a_session_open_in_another_process_is_refused_by_its_pid_and_free_when_that_is_killed(tmp_path, path):
    path.write_bytes(b"".join(LINES))
    runtime = VirtualRuntime()
    store = JsonlSessionStore(tmp_path, runtime)
    with subprocess.Popen(  # noqa: ASYNC220 - a bystander; only its pipe is waited for, in a thread
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert await anyio.to_thread.run_sync(other.stdout.readline) == b"open\n"
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def refused():
                    with pytest.raises(SessionLockedError, match=rf"open in another process \(pid {other.pid}\)"):
                        await store.load("s", "/srv/app")
                    tasks.cancel_scope.cancel()

                tasks.start_soon(refused)
                while True:
                    await anyio.lowlevel.checkpoint()
                    runtime.advance(100)
        other.kill()
        other.wait()
    assert len(await loaded(store)) == len(LINES) - 1


async def test_no_id_leaves_its_folder(tmp_path, store):
    for session_id in ("../../out", "..", "/etc/x", "a\0b", "x\n"):
        journal = store.create(SessionHeader(session_id, 5))
        journal.append(events_of([turn_start(1)])[0])
        await journal.close()
        assert (await loaded(store, session_id, None))[-1].type == "turn/end"
    assert {folder.name for folder in tmp_path.iterdir()} == {"_no-cwd"}


async def test_every_line_is_one_json_object_ended_by_a_line_feed(tmp_path, store):
    journal = store.create(HEADER)
    for event in events_of([turn_start(1), user("a\u2028b\u0085c\nd"), step_start(1, 1)]):
        journal.append(event)
    await journal.close()
    text = log_path(tmp_path, "s", "/srv/app").read_bytes().decode()
    assert text.endswith("\n")
    assert len(text.splitlines()) == 4
    assert [type(json.loads(line)) for line in text.splitlines()] == [dict] * 4
