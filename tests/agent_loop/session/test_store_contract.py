"""What every session store promises (contract session-log.md §7–§9): one suite, the real store and the fake."""

import anyio
import pytest

from agent_loop.session.events import SessionHeader, make_event
from agent_loop.session.store import (
    PersistenceError,
    SessionLockedError,
    SessionMismatchError,
    SessionNotFoundError,
)
from tests.support.session_turns import (
    answer,
    call_block,
    events_of,
    step_start,
    text_turn,
    turn_start,
    user,
)


async def everything(journal, from_seq=0):
    return [event async for event in journal.read(from_seq)]


async def stored(store, pairs, session_id="s", cwd="/there"):
    """Log `pairs` and close, as a process that ended in order; returns the events."""
    journal = store.create(SessionHeader(session_id, 5, cwd=cwd))
    events = events_of(pairs)
    for event in events:
        journal.append(event)
    await journal.close()
    return events


async def test_what_was_closed_is_loaded_as_it_was(store):
    events = await stored(store, text_turn(1))
    fed = []
    opened = await store.load("s", "/there", on_event=fed.append)
    assert opened.header == SessionHeader("s", 5, cwd="/there")
    assert opened.event_count == len(events)
    assert fed == events
    assert await everything(opened.journal) == events
    assert await everything(opened.journal, 4) == events[4:]
    assert await everything(opened.journal, len(events)) == []
    await opened.journal.close()


async def test_a_session_without_prompt_is_not_stored(store):
    journal = store.create(SessionHeader("s", 5))
    title = make_event("session/title", 0, 1, {"title": "t", "by": "user"})
    journal.append(title)
    journal.write_pending()
    await journal.flush()
    assert await everything(journal) == [title]
    await journal.close()
    with pytest.raises(SessionNotFoundError):
        await store.load("s", None)


@pytest.mark.parametrize("first", [turn_start(1), ("command/run", {"commandId": "c", "line": "/help"})])
async def test_the_first_turn_or_command_brings_what_waited(store, first):
    pairs = [("mode/change", {"modeId": "ask"}), first]
    journal = store.create(SessionHeader("s", 5))
    events = events_of(pairs)
    for event in events:
        journal.append(event)
    journal.write_pending()
    assert await everything(journal) == events
    await journal.close()
    opened = await store.load("s", None)
    assert (await everything(opened.journal))[:2] == events
    await opened.journal.close()


async def test_reading_joins_what_is_written_and_what_waits(store):
    events = events_of(text_turn(1))
    journal = store.create(SessionHeader("s", 5))
    for event in events[:3]:
        journal.append(event)
    journal.write_pending()
    for event in events[3:]:
        journal.append(event)
    assert await everything(journal, 5) == events[5:]
    reading = journal.read(1)
    journal.write_pending()
    assert [event async for event in reading] == events[1:]
    await journal.close()


async def test_appends_after_a_load_continue_the_log(store):
    await stored(store, text_turn(1))
    opened = await store.load("s", "/there")
    more = events_of([*text_turn(1), *text_turn(2)])[7:]
    for event in more:
        opened.journal.append(event)
    await opened.journal.close()
    again = await store.load("s", "/there")
    assert (await everything(again.journal))[7:] == more
    await again.journal.close()


async def test_a_crashed_turn_is_closed_at_load_with_the_time_of_its_last_event(store):
    events = await stored(store, [turn_start(1), user("x"), step_start(1, 1), answer(1, 1, call_block("c"))])
    fed = []
    opened = await store.load("s", "/there", on_event=fed.append)
    assert fed[:4] == events
    assert [event.type for event in fed[4:]] == ["tool/call", "tool/result", "step/end", "turn/end"]
    assert [event.seq for event in fed] == list(range(8))
    assert {event.time for event in fed[4:]} == {events[-1].time}
    assert opened.event_count == 8
    assert await everything(opened.journal) == fed
    await opened.journal.close()
    again = []
    await (await store.load("s", "/there", on_event=again.append)).journal.close()
    assert again == fed


async def test_an_unknown_session_is_not_found(store):
    for session_id in ("nobody", "", "../../etc/passwd", "s" * 5000):
        with pytest.raises(SessionNotFoundError) as caught:
            await store.load(session_id, "/there")
        assert caught.value.session_id == session_id


async def test_a_session_is_loaded_without_naming_its_directory(store):
    await stored(store, text_turn(1))
    opened = await store.load("s", None)
    assert opened.header.cwd == "/there"
    await opened.journal.close()


async def test_a_session_of_no_directory_is_loaded_from_any(store):
    await stored(store, text_turn(1), cwd=None)
    opened = await store.load("s", "/anywhere")
    assert opened.header.cwd is None
    await opened.journal.close()


async def test_a_session_of_another_directory_is_refused_by_both_names(store):
    await stored(store, text_turn(1))
    with pytest.raises(SessionMismatchError, match="/there, not to /elsewhere"):
        await store.load("s", "/elsewhere")
    # and a refused load holds nothing
    await (await store.load("s", "/there/../there/")).journal.close()


async def test_the_same_directory_by_another_name_is_accepted(store, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    await stored(store, text_turn(1), cwd=str(tmp_path / "real"))
    await (await store.load("s", str(tmp_path / "link"))).journal.close()


async def test_a_session_that_is_open_cannot_be_loaded(store, runtime):
    journal = store.create(SessionHeader("s", 5))
    for event in events_of(text_turn(1)):
        journal.append(event)
    await journal.flush()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def refused():
                with pytest.raises(SessionLockedError):
                    await store.load("s", None)
                tasks.cancel_scope.cancel()

            tasks.start_soon(refused)
            while True:
                await anyio.lowlevel.checkpoint()
                runtime.advance(100)
    await journal.close()
    await (await store.load("s", None)).journal.close()


async def test_a_second_log_of_one_id_is_refused_and_the_first_stays(store):
    events = await stored(store, text_turn(1, "the first"))
    journal = store.create(SessionHeader("s", 6, cwd="/there"))
    for event in events_of(text_turn(1, "the second")):
        journal.append(event)
    for _ in range(2):
        with pytest.raises(PersistenceError, match="exists"):
            journal.write_pending()
    with pytest.raises(PersistenceError):
        await journal.close()
    opened = await store.load("s", "/there")
    assert await everything(opened.journal) == events
    await opened.journal.close()


def test_an_empty_id_is_refused(store):
    with pytest.raises(SessionMismatchError, match="empty"):
        store.create(SessionHeader("", 0))


async def test_closing_twice_is_closing_once_and_a_late_event_is_not_lost_silently(store):
    journal = store.create(SessionHeader("s", 5))
    journal.append(events_of([turn_start(1)])[0])
    await journal.close()
    await journal.close()
    journal.write_pending()
    journal.append(events_of(text_turn(1))[1])
    with pytest.raises(PersistenceError, match="closed"):
        journal.write_pending()
