"""What every store does with logs that nobody writes: list, read, add whole, delete. One suite, the real store and the
fake.
"""

from contextlib import aclosing

import anyio
import pytest

from agent_loop.session.events import SessionHeader
from agent_loop.session.store import (
    PersistenceError,
    SessionLockedError,
    SessionMismatchError,
    SessionNotFoundError,
    SessionSummary,
)
from tests.support.session_turns import events_of, step_start, text_turn, turn_start, user


def titled(title, by="prompt"):
    return "session/title", {"title": title, "by": by}


async def as_stream(events):
    for event in events:
        yield event


async def add(store, pairs, session_id="s", cwd="/there", time=1000):
    events = events_of(pairs, time=time)
    await store.add(SessionHeader(session_id, 5, cwd=cwd), as_stream(events))
    return events


async def read(store, session_id="s"):
    log = await store.read(session_id)
    async with aclosing(log.events) as events:
        return [event async for event in events]


async def test_what_was_added_whole_can_be_loaded_and_read(store):
    events = await add(store, text_turn(1))
    assert await read(store) == events
    assert (await store.read("s")).header == SessionHeader("s", 5, cwd="/there")
    opened = await store.load("s", "/there")
    assert [event async for event in opened.journal.read()] == events
    await opened.journal.close()


async def test_a_log_of_a_known_id_is_not_added_again(store):
    events = await add(store, text_turn(1))
    with pytest.raises(PersistenceError, match="exists"):
        await add(store, text_turn(1, "another"))
    assert await read(store) == events


async def test_a_log_without_an_id_is_not_added(store):
    with pytest.raises(SessionMismatchError, match="empty"):
        await add(store, text_turn(1), session_id="")


async def test_events_that_break_off_add_nothing(store):
    async def broken():
        for event in events_of(text_turn(1))[:3]:
            yield event
        raise LookupError

    with pytest.raises(LookupError):
        await store.add(SessionHeader("s", 5), broken())
    assert not store.exists("s")
    await add(store, text_turn(1))


async def test_a_log_that_somebody_writes_is_read_without_waiting_and_not_changed(store):
    journal = store.create(SessionHeader("s", 5))
    events = events_of([turn_start(1), user("x"), step_start(1, 1)])
    for event in events:
        journal.append(event)
    journal.write_pending()
    assert await read(store) == events
    assert await read(store) == events
    await journal.close()


async def test_an_unknown_log_is_not_read_not_there_and_not_deleted(store):
    for session_id in ("nobody", "", "../../etc/passwd", "s" * 5000):
        with pytest.raises(SessionNotFoundError):
            await store.read(session_id)
        assert not store.exists(session_id)
        assert not await store.delete(session_id)


async def test_what_is_stored_is_there_whatever_its_directory(store):
    await add(store, text_turn(1), cwd=None)
    assert store.exists("s")


async def test_a_deleted_log_is_gone_and_its_id_can_be_written_again(store):
    await add(store, text_turn(1))
    assert await store.delete("s")
    assert not store.exists("s")
    assert await store.list() == []
    assert not await store.delete("s")
    await add(store, text_turn(1))
    assert store.exists("s")


async def test_a_log_that_is_being_written_cannot_be_deleted(store, runtime):
    journal = store.create(SessionHeader("s", 5))
    for event in events_of(text_turn(1)):
        journal.append(event)
    await journal.flush()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def refused():
                with pytest.raises(SessionLockedError):
                    await store.delete("s")
                tasks.cancel_scope.cancel()

            tasks.start_soon(refused)
            while True:
                await anyio.lowlevel.checkpoint()
                runtime.advance(100)
    await journal.close()
    assert await store.delete("s")


async def test_nothing_is_listed_where_nothing_is_stored(store, tmp_path):
    assert await store.list() == []
    assert await store.list("/there") == []
    assert list(tmp_path.iterdir()) == []


async def test_a_row_tells_title_times_count_and_size(store):
    events = await add(store, [titled("first"), *text_turn(1), titled("second", "user"), *text_turn(2)])
    (row,) = await store.list()
    size = row.size
    assert row == SessionSummary("s", "/there", "second", 5, events[-1].time, len(events), size)
    assert size > 1000


async def test_a_log_without_a_title_has_none_and_one_without_events_is_as_old_as_its_header(store):
    await add(store, [])
    (row,) = await store.list()
    assert (row.title, row.updated_at, row.event_count) == (None, 5, 0)


async def test_the_last_updated_comes_first_and_then_the_lower_id(store):
    for session_id, time in (("b", 100), ("old", 5), ("a", 100), ("new", 900)):
        await add(store, text_turn(1), session_id, time=time)
    assert [row.id for row in await store.list()] == ["new", "a", "b", "old"]


async def test_a_listing_of_a_directory_has_its_sessions_alone_by_any_name_of_it(store, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    await add(store, text_turn(1), "here", cwd=str(tmp_path / "real"))
    await add(store, text_turn(1), "linked", cwd=str(tmp_path / "link"))
    await add(store, text_turn(1), "gone", cwd="/gone/x")
    await add(store, text_turn(1), "nowhere", cwd=None)
    for name in ("real", "link", "link/", "real/../real"):
        assert [row.id for row in await store.list(f"{tmp_path}/{name}")] == ["here", "linked"]
    assert [row.id for row in await store.list("/gone/./x/")] == ["gone"]
    assert await store.list("/unused") == []
    assert len(await store.list()) == 4


async def test_what_is_being_written_is_listed_as_far_as_it_is_written(store):
    journal = store.create(SessionHeader("s", 5))
    events = events_of([titled("t"), *text_turn(1), *text_turn(2)])
    journal.append(events[0])
    journal.write_pending()
    assert await store.list() == []
    for index, event in enumerate(events[1:], start=2):
        journal.append(event)
        journal.write_pending()
        (row,) = await store.list()
        assert (row.event_count, row.updated_at, row.title) == (index, event.time, "t")
    await journal.close()
