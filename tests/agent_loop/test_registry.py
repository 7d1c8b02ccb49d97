"""Which agents are alive."""

from typing import Any

import anyio
import pytest

from agent_loop.errors import DuplicateError
from agent_loop.session.store import SessionNotFoundError
from agent_loop.tools.seam import ToolContext, ToolOutcome
from tests.support.agent_world import CWD, OPTIONS, World, agent_world
from tests.support.failing_store import FailingStore
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_tool import ScriptedTool, outcome


async def test_agents_are_found_by_id_and_listed_oldest_first():
    async with agent_world() as world:
        first = world.agent()
        second = world.registry.create(OPTIONS, cwd=CWD, session_id="mine", owner=first.id)
        assert world.registry.get("mine") is second
        assert world.registry.get("other") is None
        assert world.registry.list() == (first, second)
        assert world.registry.roots() == (first,)
        assert (second.owner, second.cwd, second.session.cwd) == (first.id, CWD, CWD)


async def test_a_duplicate_id_is_refused():
    async with agent_world() as world:
        world.registry.create(OPTIONS, cwd=CWD, session_id="mine")
        with pytest.raises(DuplicateError, match="agent"):
            world.registry.create(OPTIONS, cwd=CWD, session_id="mine")
        with pytest.raises(DuplicateError, match="agent"):
            await world.registry.resume(OPTIONS, session_id="mine", cwd=CWD)
        assert world.names().count("agent/created") == 1


async def stored(world: World, name: str) -> None:
    agent = world.registry.create(OPTIONS, cwd=CWD, session_id=name)
    await world.prompt(agent, "first")
    await agent.dispose()


async def test_a_resumed_agent_goes_on_where_the_log_ends():
    async with agent_world(fallback=says("ok")) as world:
        await stored(world, "mine")
        agent = await world.registry.resume(OPTIONS, session_id="mine", cwd=CWD)
        assert agent.session.last_turn == 1
        await world.prompt(agent, "second")
        assert [message["content"][0]["text"] for message in world.adapter.requests[1].messages] == [
            "first",
            "ok",
            "second",
        ]


async def test_an_id_is_taken_while_its_log_is_read():
    async with agent_world(says("ok")) as world:
        await stored(world, "mine")
        results: list[object] = []

        async def resume() -> None:
            try:
                results.append(await world.registry.resume(OPTIONS, session_id="mine", cwd=CWD))
            except DuplicateError as error:
                results.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resume)
            tasks.start_soon(resume)
        assert len(world.registry.list()) == 1
        assert sum(isinstance(result, DuplicateError) for result in results) == 1


async def test_a_session_that_is_not_stored_cannot_be_resumed():
    async with agent_world() as world:
        with pytest.raises(SessionNotFoundError):
            await world.registry.resume(OPTIONS, session_id="nowhere", cwd=CWD)
        assert world.registry.list() == ()


async def test_a_stale_handle_is_not_live_because_a_new_agent_has_its_id():
    async with agent_world(says("ok")) as world:
        await stored(world, "mine")
        agent = await world.registry.resume(OPTIONS, session_id="mine", cwd=CWD)
        await agent.dispose()
        successor = await world.registry.resume(OPTIONS, session_id="mine", cwd=CWD)
        await agent.dispose()
        assert world.registry.get("mine") is successor


async def test_every_caller_of_dispose_awaits_the_same_end():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        order: list[str] = []
        world.hooks.on("agent/turn-end", lambda *_args: order.append("turn-end"))

        async def dispose() -> None:
            await agent.dispose()
            order.append("returned")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dispose)
            tasks.start_soon(dispose)
        await dispose()
        assert order == ["turn-end", "returned", "returned", "returned"]
        assert world.names().count("agent/disposed") == 1


async def test_a_cancelled_caller_still_finishes_the_disposal():
    gate = Gate()
    async with agent_world([gate, HANG]) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await agent.dispose()
        assert world.registry.get(agent.id) is None
        assert agent.status == "idle"


async def test_a_body_that_cannot_be_stopped_does_not_keep_the_disposal():
    started, release = anyio.Event(), anyio.Event()

    async def body(_arguments: Any, _context: ToolContext) -> ToolOutcome:
        started.set()
        with anyio.CancelScope(shield=True):
            await release.wait()
        return outcome("at last")

    async with agent_world(calls(("a", "echo", {})), dispose_seconds=0.01) as world:
        world.tools.register(ScriptedTool(body=body))
        agent = world.agent()
        agent.followup(world.message("go"))
        await started.wait()
        await agent.dispose()
        assert world.registry.get(agent.id) is None
        assert agent.status == "running"
        release.set()
        await agent.when_idle()
        assert world.reasons(agent) == [{"kind": "disposed"}]


async def test_all_agents_are_disposed_side_by_side():
    gates = [Gate(), Gate()]
    async with agent_world(*([gate, HANG] for gate in gates)) as world:
        for gate in gates:
            world.agent().followup(world.message("go"))
            await gate.reached.wait()
        await world.registry.dispose_all()
        assert world.registry.list() == ()
        assert world.names().count("agent/disposed") == 2


async def test_a_log_that_cannot_be_closed_is_told_and_the_agent_is_gone():
    async with agent_world(says("ok"), store=lambda _runtime: FailingStore()) as world:
        assert isinstance(world.store, FailingStore)
        agent = world.agent()
        world.store.broken = True
        await world.prompt(agent)
        await agent.dispose()
        assert world.names()[-1] == "agent/error"
        assert world.registry.get(agent.id) is None


async def test_an_agent_that_was_never_spoken_to_is_disposed_at_once():
    async with agent_world() as world:
        agent = world.agent()
        assert not agent.disposed
        await agent.dispose()
        assert agent.disposed
        assert world.heard == [("agent/created",), ("agent/disposed",)]


async def test_a_fork_is_an_agent_of_its_own_that_remembers_what_its_parent_said():
    async with agent_world(fallback=says("ok")) as world:
        await stored(world, "mine")
        fork = await world.registry.fork(OPTIONS, parent_id="mine", cwd="/elsewhere")
        assert world.registry.get("mine") is None
        assert world.registry.list() == (fork,)
        assert (fork.cwd, fork.session.header.parent_session) == ("/elsewhere", "mine")
        await world.prompt(fork, "second")
        assert len(world.adapter.requests[1].messages) == 3
        with pytest.raises(SessionNotFoundError):
            await world.registry.fork(OPTIONS, parent_id="nobody", cwd=CWD)


async def test_what_is_stored_is_listed_and_can_be_deleted_unless_it_is_alive():
    async with agent_world(fallback=says("ok")) as world:
        await stored(world, "mine")
        assert [row.id for row in await world.registry.stored(None)] == ["mine"]
        assert [row.id for row in await world.registry.stored(CWD)] == ["mine"]
        assert await world.registry.stored("/elsewhere") == ()
        agent = await world.registry.resume(OPTIONS, session_id="mine", cwd=CWD)
        with pytest.raises(DuplicateError):
            await world.registry.delete("mine")
        await agent.dispose()
        assert await world.registry.delete("mine")
        assert not await world.registry.delete("mine")
        assert await world.registry.stored(None) == ()
