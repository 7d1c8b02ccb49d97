"""Projections of live sessions, and the one of the loops."""

import pytest

from agent_loop.errors import DuplicateError
from agent_loop.loops.domain import Created, Deleted, Dispatched, LoopRecord, to_data
from agent_loop.loops.projection import loop_projection
from agent_loop.session.events import make_event
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.projection import Projection, ProjectionRegistry
from tests.support.session_turns import text_turn
from tests.support.session_world import append_all, session_world

A = LoopRecord("loop_a", "look", 60, 61_000)
CHANGES = [to_data(change) for change in (Created(A), Dispatched("loop_a", 121_000), Deleted("loop_a"))]


def no_warning(text):
    raise AssertionError(text)


def event(data, seq=0):
    return make_event("loop/change", seq, 0, data)


def test_the_loops_are_folded_without_changing_a_state():
    projection = loop_projection(no_warning)
    states = [projection.init]
    for data in CHANGES:
        states.append(projection.apply(states[-1], event(data)))
    assert states == [
        {"loops": []},
        {"loops": [A.to_json()]},
        {"loops": [{**A.to_json(), "next_at": 121_000}]},
        {"loops": []},
    ]
    assert (projection.key, projection.state_version) == ("loop", 1)


def test_an_unrelated_event_leaves_the_identical_state():
    projection = loop_projection(no_warning)
    state = projection.apply(projection.init, event(CHANGES[0]))
    assert projection.apply(state, make_event("session/title", 1, 0, {"title": "t", "by": "user"})) is state


@pytest.mark.parametrize("data", [{"version": 9}, to_data(Deleted("loop_b")), to_data(Created(A))])
def test_a_change_that_cannot_be_read_is_told_and_leaves_the_identical_state(data):
    warnings: list[str] = []
    projection = loop_projection(warnings.append)
    state = projection.apply(projection.init, event(CHANGES[0]))
    assert projection.apply(state, event(data, 7)) is state
    assert len(warnings) == 1
    assert warnings[0].startswith("event 7: the loops of this session cannot be read")


async def test_nothing_is_read_before_somebody_asks_and_then_changes_are_told():
    async with session_world(MemorySessionStore()) as world:
        registry = ProjectionRegistry(world.hooks)
        registry.register(loop_projection(no_warning))
        told = []
        world.hooks.on("projections/change", lambda session, key, state: told.append((session.id, key, state)))
        session = world.live.create(session_id="s", cwd="/srv/app")
        assert await registry.snapshot(session) == {"asOfSeq": -1, "values": {"loop": {"loops": []}}}
        append_all(session, text_turn(1))
        session.append("loop/change", CHANGES[0])
        assert told == [("s", "loop", {"loops": [A.to_json()]})]
        assert await registry.snapshot(session) == {"asOfSeq": 7, "values": {"loop": {"loops": [A.to_json()]}}}
        other = world.live.create(session_id="other", cwd="/srv/app")
        other.append("loop/change", CHANGES[0])
        assert len(told) == 1
        assert (await registry.snapshot(other))["values"] == {"loop": {"loops": [A.to_json()]}}


async def test_a_change_that_changes_nothing_is_not_told():
    warnings: list[str] = []
    async with session_world(MemorySessionStore()) as world:
        registry = ProjectionRegistry(world.hooks)
        registry.register(loop_projection(warnings.append))
        told = []
        world.hooks.on("projections/change", lambda *_: told.append(1))
        session = world.live.create(cwd="/srv/app")
        await registry.snapshot(session)
        session.append("loop/change", {"version": 2})
        session.append("session/title", {"title": "t", "by": "user"})
        assert (told, len(warnings)) == ([], 1)


async def test_what_happens_while_the_log_is_first_read_counts_once():
    async with session_world(MemorySessionStore()) as world:
        registry = ProjectionRegistry(world.hooks)
        seqs = []

        def apply(state, event):
            seqs.append(event.seq)
            if event.seq == 1:
                session.append("session/title", {"title": "meanwhile", "by": "user"})
            return [*state, event.data["title"]]

        registry.register(Projection("titles", 1, frozenset({"session/title"}), [], apply))
        session = world.live.create(cwd="/srv/app")
        for title in ("a", "b", "c"):
            session.append("session/title", {"title": title, "by": "user"})
        snapshot = await registry.snapshot(session)
        assert seqs == [0, 1, 2, 3]
        assert snapshot == {"asOfSeq": 3, "values": {"titles": ["a", "b", "c", "meanwhile"]}}


async def test_a_fork_has_none_of_its_parents_loops():
    store = MemorySessionStore()
    async with session_world(store) as world:
        registry = ProjectionRegistry(world.hooks)
        registry.register(loop_projection(no_warning))
        parent = world.live.create(session_id="parent", cwd="/srv/app")
        append_all(parent, [("loop/change", CHANGES[0]), *text_turn(1)])
        await parent.flush()
        fork = await world.live.fork("parent", cwd="/srv/app")
        assert (await registry.snapshot(fork))["values"] == {"loop": {"loops": []}}
        fork.append("loop/change", CHANGES[0])
        assert (await registry.snapshot(fork))["values"] == {"loop": {"loops": [A.to_json()]}}


async def test_a_key_is_registered_once_and_can_be_taken_back():
    async with session_world(MemorySessionStore()) as world:
        registry = ProjectionRegistry(world.hooks)
        remove = registry.register(loop_projection(no_warning))
        with pytest.raises(DuplicateError):
            registry.register(loop_projection(no_warning))
        session = world.live.create(cwd="/srv/app")
        await registry.snapshot(session)
        remove()
        remove()
        assert await registry.snapshot(session) == {"asOfSeq": -1, "values": {}}
        registry.register(loop_projection(no_warning))
        assert (await registry.snapshot(session))["values"] == {"loop": {"loops": []}}
