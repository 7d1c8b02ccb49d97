"""The sessions of a process (contract session-log.md §7, §9): made, written in each tick, failing, closed."""

import errno
import threading

import anyio
import pytest

from agent_loop.errors import DuplicateError
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.events import SessionHeader
from agent_loop.session.json_check import InvalidEventError
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.nesting import NestingError
from agent_loop.session.store import PersistenceError, SessionMismatchError, SessionNotFoundError
from tests.support.failing_files import DISK_FULL, IO_ERROR, FailingFiles
from tests.support.session_turns import events_of, step_start, text_turn, turn_end, turn_start, user
from tests.support.session_world import append_all, session_world


async def test_a_created_session_is_live_and_announced():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create(cwd="/srv/app", created_at=42)
        assert world.live.get(session.id) is session
        assert world.heard == [("created", session.id)]
        assert session.header == SessionHeader(session.id, 42, cwd="/srv/app")
        assert world.live.get("another") is None


async def test_a_prepared_session_is_unknown_until_it_is_entered():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.prepare(session_id="s")
        assert world.live.get("s") is None
        world.live.enter(session)
        assert world.live.get("s") is session
        assert world.heard == []
        world.live.announce(session)
        assert world.heard == [("created", "s")]


async def test_a_duplicate_id_is_refused_when_prepared_and_when_entered():
    async with session_world(MemorySessionStore()) as world:
        twin = world.live.prepare(session_id="s")
        world.live.create(session_id="s")
        for again in (lambda: world.live.prepare(session_id="s"), lambda: world.live.enter(twin)):
            with pytest.raises(DuplicateError, match="'s'"):
                again()


async def test_the_id_of_a_stored_session_is_not_used_again():
    store = MemorySessionStore()
    async with session_world(store) as world:
        append_all(world.live.create(session_id="s", cwd="/srv/app"), text_turn(1))
    async with session_world(store) as world:
        with pytest.raises(DuplicateError, match="'s'"):
            world.live.create(session_id="s", cwd="/elsewhere")


async def test_a_session_is_deleted_when_nobody_has_it():
    store = MemorySessionStore()
    async with session_world(store) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        with pytest.raises(DuplicateError, match="'s'"):
            await world.live.delete("s")
        await world.live.detach(session)
        assert await world.live.delete("s")
        assert not await world.live.delete("s")
    assert store.logs == {}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"cwd": "relative/path"}, SessionMismatchError),
        ({"cwd": ""}, SessionMismatchError),
        ({"session_id": ""}, SessionMismatchError),
        ({"session_id": "\ud800"}, InvalidEventError),
        ({"cwd": "/\udcff"}, InvalidEventError),
    ],
)
async def test_a_session_that_could_not_be_stored_is_refused(options, error):
    async with session_world(MemorySessionStore()) as world:
        with pytest.raises(error):
            world.live.create(**options)


class CutShort(BaseException):
    """What no listener wall holds back."""


async def test_an_announcement_that_is_cut_short_rolls_back():
    async with session_world(MemorySessionStore()) as world:

        def cut(_session):
            raise CutShort

        remove = world.hooks.on("session/created", cut)
        with pytest.raises(CutShort):
            world.live.create(session_id="s")
        assert world.live.get("s") is None
        remove()
        world.live.create(session_id="s")


async def test_a_load_whose_announcement_is_cut_short_lets_go_of_the_log():
    store = MemorySessionStore()
    async with session_world(store) as world:
        append_all(world.live.create(session_id="s"), text_turn(1))
    async with session_world(store) as world:

        def cut(_session):
            raise CutShort

        remove = world.hooks.on("session/created", cut)
        with pytest.raises(CutShort):
            await world.live.load("s", None)
        assert world.live.get("s") is None
        remove()
        assert (await world.live.load("s", None)).last_turn == 1


async def test_a_seed_is_copied_silently_and_turn_numbers_continue():
    store = MemorySessionStore()
    async with session_world(store) as world:
        heard = []
        world.hooks.on("session/event", lambda _session, event: heard.append(event))
        seed = events_of(text_turn(1, "from the parent"))
        session = world.live.create(session_id="child", seed=seed, parent="mother", cwd="/srv/app")
        assert heard == []
        assert session.header.parent_session == "mother"
        assert session.header.seed_length == len(seed)
        assert [event async for event in session.events()] == seed
        seed[1].data["content"].clear()
        assert (await session.messages())[0]["content"][0]["text"] == "from the parent"
        append_all(session, text_turn(2))
        assert heard[0].seq == len(seed)
    assert len(store.logs["child"].events) == 14


async def test_a_seeded_session_is_written_without_waiting_for_a_prompt():
    store = MemorySessionStore()
    async with session_world(store) as world:
        world.live.create(session_id="child", seed=events_of(text_turn(1)))
        await anyio.lowlevel.checkpoint()
        assert len(store.logs["child"].events) == 7


@pytest.mark.parametrize(
    ("seed", "error"),
    [(events_of(text_turn(1))[1:], InvalidEventError), (events_of([user("x")]), NestingError)],
)
async def test_a_seed_that_is_no_beginning_of_a_log_is_refused(seed, error):
    async with session_world(MemorySessionStore()) as world:
        with pytest.raises(error):
            world.live.create(seed=seed)


async def test_a_flush_writes_before_it_first_waits(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime())
    async with session_world(store) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        await session.flush()
        path = log_path(tmp_path, "s", None)

        async def append_and_flush():
            session.append(*turn_start(2))
            await session.flush()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append_and_flush)
            # one tick: it has appended and come to its first wait
            await anyio.lowlevel.checkpoint()
            assert b'"turn":2' in path.read_bytes()


async def test_what_a_tick_appended_is_written_once_at_its_end(tmp_path):
    files = FailingFiles()
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)) as world:
        session = world.live.create()
        append_all(session, text_turn(1))
        assert files.writes == 0
        await anyio.lowlevel.checkpoint()
        assert files.writes == 1
        append_all(session, text_turn(2))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert files.writes == 2


async def test_the_log_is_in_the_kernel_before_a_frame_of_the_same_tick(tmp_path):
    """A fake wire that writes within the listener, as the real one does through `before_write`."""
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime())) as world:
        session = world.live.create(session_id="s")
        frames = []

        def write_frame(event):
            world.live.write_pending()
            lines = log_path(tmp_path, "s", None).read_bytes().count(b"\n")
            frames.append((event.seq, lines))

        session.subscribe(write_frame)
        append_all(session, text_turn(1))
        assert frames == [(seq, seq + 2) for seq in range(7)]


async def test_a_load_gives_the_session_as_it_was_left():
    store = MemorySessionStore()
    async with session_world(store) as world:
        before = world.live.create(session_id="s", cwd="/srv/app")
        before.append("mode/change", {"modeId": "full"})
        append_all(before, text_turn(1))
    async with session_world(store) as world:
        heard = []
        world.hooks.on("session/event", lambda _session, event: heard.append(event))
        after = await world.live.load("s", "/srv/app")
        assert heard == []
        assert world.heard == [("created", "s")]
        assert world.live.get("s") is after
        assert (after.next_seq, after.last_turn, after.mode) == (8, 1, "full")
        assert await after.messages() == await before.messages()
        append_all(after, text_turn(2))
        assert after.last_turn == 2


async def test_a_live_session_is_not_loaded_again_nor_while_it_is_being_loaded(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime())
    async with session_world(store) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        with pytest.raises(DuplicateError):
            await world.live.load("s", None)
        await world.live.detach(session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.live.load, "s", None)
            while "s" not in world.live._busy:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(DuplicateError):
                await world.live.load("s", None)
            with pytest.raises(DuplicateError):
                world.live.create(session_id="s")


async def test_a_failed_load_leaves_the_id_free():
    async with session_world(MemorySessionStore()) as world:
        with pytest.raises(SessionNotFoundError):
            await world.live.load("s", None)
        world.live.create(session_id="s")


async def test_a_failing_disk_is_told_once_per_turn_and_forgotten_when_it_recovers(tmp_path):
    files = FailingFiles()
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        await anyio.lowlevel.checkpoint()
        files.write_error = DISK_FULL
        append_all(session, [turn_start(2), user("x")])
        world.live.write_pending()
        assert isinstance(session.failure, PersistenceError)
        append_all(session, [turn_end(2)])
        world.live.write_pending()
        assert await session.flush() is False
        assert [entry[0] for entry in world.heard] == ["created", "write-failed"]
        assert world.heard[1][2].__cause__.errno == errno.ENOSPC
        session.append(*turn_start(3))
        world.live.write_pending()
        assert [entry[0] for entry in world.heard] == ["created", "write-failed", "write-failed"]
        files.write_error = None
        world.live.write_pending()
        assert session.failure is not None, "nothing new was appended: nothing was tried"
        session.append(*step_start(3, 1))
        world.live.write_pending()
        assert session.failure is None
        assert log_path(tmp_path, "s", None).read_bytes().count(b"\n") == 1 + session.next_seq


async def test_one_failing_session_does_not_keep_the_others_from_being_written(tmp_path):
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime())) as world:
        bad, good = world.live.create(session_id="bad", cwd="/bad"), world.live.create(session_id="good")
        log_path(tmp_path, "bad", "/bad").mkdir(parents=True)
        bad.append(*turn_start(1))
        good.append(*turn_start(1))
        world.live.write_pending()
        assert bad.failure is not None
        assert good.failure is None
        assert log_path(tmp_path, "good", None).exists()
        with pytest.raises(PersistenceError):
            await world.live.detach(bad)


async def test_a_flush_makes_the_log_durable_and_clears_the_failure(tmp_path):
    files = FailingFiles()
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)) as world:
        session = world.live.create()
        session.append(*turn_start(1))
        assert await session.flush() is True
        session.append(*user("x"))
        files.sync_error = IO_ERROR
        assert await session.flush() is False
        assert session.failure is not None
        files.sync_error = None
        assert await session.flush() is True
        assert session.failure is None


async def test_a_detached_session_is_stored_and_its_id_free_again():
    store = MemorySessionStore()
    async with session_world(store) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        await world.live.detach(session)
        assert world.live.get("s") is None
        again = await world.live.load("s", None)
        await world.live.detach(session)
        assert world.live.get("s") is again, "a stale session is not the one that has its id now"


async def test_two_who_detach_the_same_session_wait_for_the_same_end(tmp_path):
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime())) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.live.detach, session)
            tasks.start_soon(world.live.detach, session)
        assert world.live.get("s") is None
        assert (await world.live.load("s", None)).last_turn == 1


async def test_an_event_for_a_detached_session_is_reported_as_not_written():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        await world.live.detach(session)
        session.append(*turn_start(2))
        world.live.write_pending()
        assert isinstance(session.failure, PersistenceError)


async def test_detaching_is_finished_even_when_its_caller_is_cancelled(tmp_path):
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime())) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await world.live.detach(session)
        assert log_path(tmp_path, "s", None).read_bytes().count(b"\n") == 8
        await world.live.load("s", None)


async def test_a_disk_that_hangs_does_not_hold_up_the_end(tmp_path):
    files = FailingFiles()
    store = JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)
    async with session_world(store, last_words_seconds=0.1) as world:
        session = world.live.create(session_id="s")
        append_all(session, text_turn(1))
        await session.flush()
        append_all(session, text_turn(2))
        files.hang = threading.Event()
        with anyio.fail_after(30), pytest.raises(PersistenceError, match="did not answer"):
            await world.live.detach(session)
        hanging, files.hang = files.hang, None
        hanging.set()
        assert world.live.get("s") is None
        assert (await world.live.load("s", None)).last_turn == 2


async def test_closing_closes_every_session_and_groups_what_failed(tmp_path):
    files = FailingFiles()
    store = JsonlSessionStore(tmp_path, VirtualRuntime(), operations=files)
    async with session_world(store) as world:
        for name in ("a", "b"):
            append_all(world.live.create(session_id=name), [turn_start(1)])
        world.live.write_pending()
        world.live.get("a").append(*user("lost"))
        files.write_error = DISK_FULL
        world.live.create(session_id="never prompted")
        with pytest.raises(ExceptionGroup) as caught:
            await world.live.aclose()
        assert [error.session_id for error in caught.value.exceptions] == ["a"]
        assert [world.live.get(name) for name in ("a", "b", "never prompted")] == [None, None, None]
        await world.live.aclose()


async def test_a_root_that_cannot_be_read_refuses_the_first_write_and_not_the_session(tmp_path):
    (tmp_path / "root").write_text("a file in the way")
    async with session_world(JsonlSessionStore(tmp_path / "root", VirtualRuntime())) as world:
        session = world.live.create(session_id="s", cwd="/srv/app")
        append_all(session, text_turn(1))
        assert not await session.flush()
        assert session.failure is not None
        assert "Not a directory" in str(session.failure)
        with pytest.raises(PersistenceError):
            await world.live.detach(session)
