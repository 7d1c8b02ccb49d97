"""A log that begins with another's turns."""

import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.store import SessionDamagedError, SessionNotFoundError
from tests.support.session_turns import delta, step_start, text_turn, turn_start, user
from tests.support.session_world import append_all, session_world

MODE = ("mode/change", {"modeId": "full"})
TITLE = ("session/title", {"title": "t", "by": "user"})


@pytest.fixture(params=["jsonl", "memory"])
def store(request, tmp_path):
    return JsonlSessionStore(tmp_path / "root", VirtualRuntime()) if request.param == "jsonl" else MemorySessionStore()


async def read(session):
    return [event async for event in session.events()]


async def test_a_fork_begins_with_its_parents_log_and_goes_on_by_itself(store):
    async with session_world(store) as world:
        parent = world.live.create(session_id="parent", cwd="/srv/app")
        append_all(parent, [*text_turn(1, "remember"), MODE, TITLE])
        await parent.flush()
        before = await read(parent)
        fork = await world.live.fork("parent", cwd="/other")
        assert await read(fork) == before
        assert fork.header.parent_session == "parent"
        assert (fork.header.seed_length, fork.header.cwd, fork.header.created_at) == (
            9,
            "/other",
            world.runtime.now_ms(),
        )
        assert (fork.mode, fork.title, fork.last_turn) == ("full", "t", 1)
        assert (await fork.messages())[0]["content"][0]["text"] == "remember"
        append_all(fork, text_turn(2))
        assert await read(parent) == before
        append_all(parent, text_turn(2, "another"))
        assert len(await read(fork)) == 16
    assert [row.event_count for row in await store.list()] == [16, 16]


async def test_nothing_of_the_turn_that_is_open_is_taken(store):
    async with session_world(store) as world:
        parent = world.live.create(session_id="parent", cwd="/srv/app")
        append_all(parent, [*text_turn(1), TITLE, turn_start(2), user("x"), step_start(2, 1), delta(2, 1, "y")])
        await parent.flush()
        fork = await world.live.fork("parent", cwd="/srv/app")
        assert [event.type for event in await read(fork)][-2:] == ["turn/end", "session/title"]
        assert (fork.header.seed_length, fork.open_turn) == (8, None)
        append_all(fork, text_turn(2))


@pytest.mark.parametrize("pairs", [[], [TITLE], [turn_start(1), user("x")]])
async def test_a_live_parent_of_which_nothing_has_settled_gives_an_empty_beginning(store, pairs):
    async with session_world(store) as world:
        append_all(world.live.create(session_id="parent", cwd="/srv/app"), pairs)
        world.live.write_pending()
        fork = await world.live.fork("parent", cwd="/srv/app")
        assert (fork.header.parent_session, fork.header.seed_length, fork.next_seq) == ("parent", None, 0)


async def test_a_stored_parent_is_forked_without_being_opened(store):
    async with session_world(store) as world:
        append_all(world.live.create(session_id="parent", cwd="/srv/app"), text_turn(1))
    async with session_world(store) as world:
        fork = await world.live.fork("parent", cwd="/srv/app")
        assert world.live.get("parent") is None
        assert fork.next_seq == 7


async def test_there_is_no_fork_of_an_unknown_session(store):
    async with session_world(store) as world:
        with pytest.raises(SessionNotFoundError, match="nobody"):
            await world.live.fork("nobody", cwd="/srv/app")
        assert world.heard == []
    assert await store.list() == []


async def test_a_damaged_parent_is_not_forked_and_leaves_nothing_behind(tmp_path):
    store = JsonlSessionStore(tmp_path, VirtualRuntime())
    async with session_world(store) as world:
        append_all(world.live.create(session_id="parent", cwd="/srv/app"), [*text_turn(1), *text_turn(2)])
    path = log_path(tmp_path, "parent", "/srv/app")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"broken\n", *lines[6:]]))
    async with session_world(store) as world:
        with pytest.raises(SessionDamagedError, match="line 6"):
            await world.live.fork("parent", cwd="/srv/app")
    assert [row.id for row in await store.list()] == ["parent"]
