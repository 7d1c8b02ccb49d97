"""A live session: append, listeners, what is derived from the log (contract session-log.md §5, §6)."""

import os
from contextlib import aclosing

import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.json_check import InvalidEventError
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.log import TAIL_EVENTS
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.nesting import NestingError
from agent_loop.session.state import RequestParts
from tests.support.session_turns import (
    answer,
    call,
    call_block,
    call_delta,
    delta,
    result,
    step_end,
    step_start,
    text_turn,
    tool_turn,
    turn_end,
    turn_start,
    user,
)
from tests.support.session_world import append_all, session_world


async def test_an_append_gives_the_event_its_number_and_the_time_of_the_clock():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create(session_id="s", cwd="/srv/app")
        first = session.append(*turn_start(1))
        world.runtime.advance(7)
        second = session.append(*user("x"))
        assert (first.seq, second.seq, session.next_seq) == (0, 1, 2)
        assert second.time - first.time == 7
        assert (session.id, session.cwd, session.header.created_at) == ("s", "/srv/app", first.time)


async def test_the_open_turn_and_step_come_from_the_log():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        assert (session.open_turn, session.open_step, session.last_turn) == (None, None, 0)
        append_all(session, [turn_start(1), step_start(1, 1)])
        assert (session.open_turn, session.open_step, session.last_turn) == (1, 1, 1)
        append_all(session, [step_end(1, 1), turn_end(1)])
        assert (session.open_turn, session.open_step, session.last_turn) == (None, None, 1)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (("session/title", {"title": ("a", "tuple"), "by": "x"}), InvalidEventError),
        (("session/title", {"by": "x"}), InvalidEventError),
        (turn_end(1), NestingError),
    ],
)
async def test_a_refused_event_is_not_logged_and_nobody_hears_of_it(event, error):
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        heard = []
        session.subscribe(heard.append)
        with pytest.raises(error):
            session.append(*event)
        assert heard == []
        assert session.next_seq == 0
        assert session.append(*turn_start(1)).seq == 0


async def test_data_changed_after_the_append_does_not_change_the_log():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        event_type, data = user("as it was")
        append_all(session, [turn_start(1), (event_type, data)])
        data["content"][0]["text"] = "changed"
        assert (await session.messages())[0]["content"][0]["text"] == "as it was"
        (logged,) = [event async for event in session.events(1)]
        assert logged.data["content"][0]["text"] == "as it was"


async def test_listeners_hear_the_event_after_it_is_logged_the_bus_first():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        heard = []
        world.hooks.on(
            "session/event", lambda heard_of, event: heard.append(("bus", heard_of, event, session.next_seq))
        )
        world.hooks.on("session/event", lambda *_: heard.append("other agent"), agent="somebody else")
        remove = session.subscribe(lambda event: heard.append(("one", event)))
        session.subscribe(lambda event: heard.append(("two", event)))
        event = session.append(*turn_start(1))
        assert heard == [("bus", session, event, 1), ("one", event), ("two", event)]
        remove()
        heard.clear()
        session.append(*user("x"))
        assert [entry[0] for entry in heard] == ["bus", "two"]


async def test_a_listener_that_raises_is_reported_and_the_others_still_run():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        heard = []
        session.subscribe(lambda event: 1 / 0)
        session.subscribe(heard.append)
        event = session.append(*turn_start(1))
        assert heard == [event]
        assert [(name, type(error)) for name, error in world.errors] == [("session/event", ZeroDivisionError)]


async def test_a_listener_that_appends_does_not_disturb_the_order_that_the_others_hear():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        first, second = [], []

        def titling(event):
            first.append(event.seq)
            if event.type == "turn/start":
                session.append("session/title", {"title": "t", "by": "listener"})

        session.subscribe(titling)
        session.subscribe(lambda event: second.append(event.seq))
        session.append(*turn_start(1))
        session.append(*user("x"))
        assert first == second == [0, 1, 2]


async def test_sessions_do_not_hear_each_other():
    async with session_world(MemorySessionStore()) as world:
        one, two = world.live.create(), world.live.create()
        heard = []
        one.subscribe(heard.append)
        two.append(*turn_start(1))
        assert heard == []


async def test_history_grows_with_the_log():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        append_all(session, text_turn(1, "one", "1"))
        assert [message["role"] for message in await session.messages()] == ["user", "assistant"]
        append_all(session, tool_turn(2, "c"))
        assert [message["role"] for message in (await session.messages())[2:]] == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]


async def test_mode_usage_and_request_parts_are_the_last_ones_logged():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        assert (session.mode, session.last_usage, session.last_request) == (None, None, RequestParts())
        session.append("mode/change", {"modeId": "ask"})
        session.append("mode/change", {"modeId": "full"})
        header = {"turn": 1, "step": 1, "model": "m", "provider": "p", "fingerprint": "f"}
        usage = {"inputTokens": 3, "outputTokens": 4}
        tools = [{"name": "bash"}]
        append_all(session, [turn_start(1), step_start(1, 1)])
        session.append("request/header", {**header, "system": "be", "tools": tools})
        append_all(session, [answer(1, 1, usage=usage), step_end(1, 1), step_start(1, 2)])
        session.append("request/header", {**header, "step": 2, "system": "be good", "parameters": {"temperature": 0}})
        append_all(session, [answer(1, 2), step_end(1, 2)])
        assert session.mode == "full"
        assert session.last_usage == usage
        assert session.last_request == RequestParts("be good", tools, {"temperature": 0})


async def test_call_ids_are_those_that_were_called_and_after_the_step_those_only_streamed():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        head = [turn_start(1), step_start(1, 1), delta(1, 1, "x"), call_delta(1, 1, "a"), call_delta(1, 1, "b")]
        append_all(session, head)
        assert session.call_ids() == set()
        append_all(session, [answer(1, 1, call_block("a")), call(1, 1, "a")])
        assert session.call_ids() == {"a"}
        append_all(session, [result(1, 1, "a"), step_end(1, 1)])
        assert session.call_ids() == {"a", "b"}


async def test_unknown_events_are_logged_and_fold_into_nothing():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        event = session.append("someone/else", {"x": 1})
        assert [logged async for logged in session.events()] == [event]
        assert await session.messages() == []


@pytest.mark.parametrize("kind", ["jsonl", "memory"])
async def test_events_are_read_across_store_and_memory(kind, tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime()) if kind == "jsonl" else MemorySessionStore()
    async with session_world(store) as world:
        session = world.live.create()
        heard = []
        session.subscribe(heard.append)
        append_all(session, [turn_start(1), step_start(1, 1)])
        for number in range(TAIL_EVENTS):
            session.append(*delta(1, 1, str(number)))
            if number == TAIL_EVENTS // 2:
                # the rest waits in the buffer: a reading joins both
                world.live.write_pending()
        assert [event async for event in session.events()] == heard
        assert [event async for event in session.events(1)] == heard[1:]
        assert [event async for event in session.events(TAIL_EVENTS)] == heard[TAIL_EVENTS:]
        assert [event async for event in session.events(session.next_seq)] == []


async def test_reading_catches_up_with_what_is_appended_meanwhile():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create()
        session.append(*turn_start(1))
        seen = []
        async for event in session.events():
            seen.append(event.seq)
            if event.seq < 3:
                session.append(*user("more"))
        assert seen == [0, 1, 2, 3]


async def test_a_session_without_events_reads_as_nothing():
    async with session_world(MemorySessionStore()) as world:
        assert [event async for event in world.live.create().events()] == []


@pytest.mark.parametrize(
    ("listeners", "flushed"),
    [([], True), ([True, None], True), ([False], False), ([OSError("disk")], False)],
)
async def test_a_flush_succeeds_when_nobody_fails_or_says_no(listeners, flushed):
    async with session_world(MemorySessionStore()) as world:
        for answered in listeners:

            async def listener(_session, answered=answered):
                if isinstance(answered, Exception):
                    raise answered
                return answered

            world.hooks.on("session/flush", listener)
        assert await world.live.create().flush() is flushed


async def test_a_flush_that_nobody_hears_is_no_flush():
    async with session_world(MemorySessionStore()) as world:
        session = world.live.prepare()
        await world.live.aclose()
        assert await session.flush() is False


async def test_a_reader_that_stops_early_leaves_no_file_open(tmp_path):
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime())) as world:
        session = world.live.create()
        append_all(session, [turn_start(1), step_start(1, 1), *[delta(1, 1, "x")] * TAIL_EVENTS])
        world.live.write_pending()
        before = len(os.listdir("/dev/fd"))
        async with aclosing(session.events()) as events:
            assert (await anext(events)).seq == 0
        assert len(os.listdir("/dev/fd")) == before
