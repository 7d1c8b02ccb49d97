"""Log files that nobody writes: what lies beside them, and what a disk may do to whoever reads, adds or deletes."""

import stat
from contextlib import aclosing

import anyio
import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionHeader
from agent_loop.session.file_lock import FileLock
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import lock_path, log_path
from agent_loop.session.store import (
    PersistenceError,
    SessionDamagedError,
    SessionMismatchError,
    SessionNotFoundError,
    SessionStoreError,
    SessionVersionError,
)
from tests.support.failing_files import DISK_FULL, FailingFiles
from tests.support.session_turns import delta, events_of, step_start, text_turn, turn_start, user

HEADER = SessionHeader("s", 5, cwd="/srv/app")
EVENTS = events_of(text_turn(1))
LINES = [encode_header(HEADER), *map(encode_event, EVENTS)]


@pytest.fixture
def store(tmp_path):
    return JsonlSessionStore(tmp_path, VirtualRuntime())


@pytest.fixture
def path(tmp_path):
    path = log_path(tmp_path, "s", "/srv/app")
    path.parent.mkdir()
    return path


async def stream(events):
    for event in events:
        yield event


async def read(store):
    """What was read, and the error that ended it."""
    found = []
    try:
        log = await store.read("s")
        async with aclosing(log.events) as events:
            async for event in events:
                found.append(event)  # noqa: PERF401 - what came before the error counts
    except SessionStoreError as error:
        return found, error
    return found, None


async def test_a_torn_or_bad_tail_is_not_read_and_not_cut(store, path):
    for tail in (b'{"type":"turn/st', b"\0\0\0\0", b"broken\n", b"broken\n\0"):
        path.write_bytes(b"".join(LINES) + tail)
        assert await read(store) == (EVENTS, None)
        assert path.read_bytes() == b"".join(LINES) + tail


async def test_what_stands_before_a_damage_is_read_first(store, path):
    path.write_bytes(b"".join([*LINES[:4], b"broken\n", *LINES[4:]]))
    found, error = await read(store)
    assert found == EVENTS[:3]
    assert isinstance(error, SessionDamagedError)
    assert error.line == 5


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (b"garbage\n", SessionDamagedError),
        (b'{"type":"session","version":99,"id":"s","createdAt":1,"cwd":"/srv/app"}\n', SessionVersionError),
        (encode_header(SessionHeader("another", 5, cwd="/srv/app")), SessionMismatchError),
        (encode_header(SessionHeader("s", 5, cwd="/elsewhere")), SessionMismatchError),
    ],
)
async def test_a_log_that_cannot_be_loaded_is_not_read_either(store, path, header, kind):
    path.write_bytes(header + b"".join(LINES[1:]))
    found, error = await read(store)
    assert (found, type(error)) == ([], kind)


async def test_a_log_that_goes_while_it_is_read_is_not_found(store, path):
    path.write_bytes(b"".join(LINES))
    log = await store.read("s")
    path.unlink()
    with pytest.raises(SessionNotFoundError):
        await anext(log.events)


async def test_a_log_that_cannot_be_opened_is_said_to_be(store, path):
    path.write_bytes(b"".join(LINES))
    log = await store.read("s")
    path.unlink()
    path.mkdir()
    with pytest.raises(SessionStoreError, match="cannot be opened: Is a directory"):
        await anext(log.events)
    with pytest.raises(SessionStoreError, match="cannot be opened: Is a directory"):
        await store.read("s")


async def test_a_root_that_cannot_be_read_is_no_root_without_sessions(tmp_path):
    (tmp_path / "root").write_text("a file in the way")
    store = JsonlSessionStore(tmp_path / "root", VirtualRuntime())
    for question in (store.read, store.delete):
        with pytest.raises(SessionStoreError, match="Not a directory"):
            await question("s")
    with pytest.raises(SessionStoreError, match="Not a directory"):
        store.exists("s")
    with pytest.raises(PersistenceError, match="cannot be written"):
        await store.add(HEADER, stream(EVENTS))


async def test_an_added_log_is_one_private_file_beside_its_lock(store, path):
    await store.add(HEADER, stream(EVENTS))
    assert path.read_bytes() == b"".join(LINES)
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["s.jsonl", "s.jsonl.lock"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_long_log_is_added_in_batches(tmp_path, path):
    files = FailingFiles()
    store = JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)
    events = events_of([turn_start(1), user("x"), step_start(1, 1), *[delta(1, 1, "y" * 10_000)] * 100])
    await store.add(HEADER, stream(events))
    assert files.writes == 4
    assert (await read(store))[0] == events


async def test_a_full_disk_adds_nothing(tmp_path, path):
    files = FailingFiles()
    store = JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)
    for files.write_error, files.sync_error in ((DISK_FULL, None), (None, DISK_FULL)):
        with pytest.raises(PersistenceError, match="No space left"):
            await store.add(HEADER, stream(EVENTS))
        assert [entry.name for entry in path.parent.iterdir()] == ["s.jsonl.lock"]
    files.sync_error = None
    (path.parent / "s.jsonl.tmp").write_text("left over from a crash")
    await store.add(HEADER, stream(EVENTS))
    assert (await read(store))[0] == EVENTS


async def test_an_id_that_is_being_written_is_not_added(store, path):
    lock = FileLock.take(lock_path(path))
    with pytest.raises(PersistenceError, match="another process"):
        await store.add(HEADER, stream(EVENTS))
    lock.release()
    await store.add(HEADER, stream(EVENTS))


async def test_what_lies_beside_a_log_goes_with_it_except_its_lock(store, path):
    await store.add(HEADER, stream(EVENTS))
    other = path.with_name("s.jsonl.jsonl")
    other.write_bytes(b"another session")
    for suffix in (".damaged", ".before-repair", ".tmp"):
        path.with_name(path.name + suffix).write_text("x")
    assert await store.delete("s")
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["s.jsonl.jsonl", "s.jsonl.lock"]


async def test_a_damaged_log_can_be_deleted(store, path):
    path.write_bytes(b"garbage")
    assert await store.delete("s")
    assert not path.exists()


async def test_what_cannot_be_deleted_is_said_and_let_go(store, path):
    await store.add(HEADER, stream(EVENTS))
    path.with_name("s.jsonl.damaged").mkdir()
    with pytest.raises(SessionStoreError, match="cannot be deleted: Is a directory") as caught:
        await store.delete("s")
    assert caught.value.code == "PERSISTENCE"
    path.with_name("s.jsonl.damaged").rmdir()
    assert await store.delete("s")


async def test_of_two_who_delete_one_has_deleted(tmp_path, path):
    runtime = VirtualRuntime()
    store = JsonlSessionStore(tmp_path, runtime)
    await store.add(HEADER, stream(EVENTS))
    lock = FileLock.take(lock_path(path))
    answers = []
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def delete():
                answers.append(await store.delete("s"))

            tasks.start_soon(delete)
            await anyio.wait_all_tasks_blocked()
            path.unlink()
            lock.release()
            runtime.advance(100)
    assert answers == [False]


async def test_nothing_of_a_deleted_log_stays_in_the_index(tmp_path, store):
    secret = "the name of the secret project"
    titled = events_of([*text_turn(1), ("session/title", {"title": secret, "by": "user"})])
    await store.add(HEADER, stream(titled))
    await store.add(SessionHeader("t", 5, cwd="/srv/app"), stream(EVENTS))
    assert secret in [row.title for row in await store.list()]
    assert secret.encode() in (tmp_path / "index.sqlite").read_bytes()
    assert await store.delete("s")
    assert secret.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("index.sqlite*"))
    assert [row.id for row in await store.list()] == ["t"]
