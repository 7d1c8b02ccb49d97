"""The schedule of an agent: what is sent when, in which order, and what a failure leaves (contract loops.md §3, §6)."""

import anyio
import pytest

from agent_loop.loops.domain import Created, LoopRecord, heartbeat, to_data
from agent_loop.loops.runtime import MAX_DELAY_MS
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.store import PersistenceError
from tests.support.agent_world import CWD, OPTIONS
from tests.support.loop_world import loop_world, looping_agent, settled
from tests.support.scripted_adapter import Gate, says
from tests.support.spy_agent import spied

LOOP = {"kind": "plugin", "plugin": "loop"}
DAY_MS = 86_400_000


async def test_a_loop_fires_at_its_interval_into_the_next_turn_or_the_running_one():
    async with looping_agent() as (world, agent):
        loop_id = await world.create(agent, "check the build")
        await world.advance(999)
        assert agent.sent == []
        await world.advance(1)
        agent.stands = "running"
        await world.advance(1000)
        [(first, *how_first), (second, *how_second)] = agent.sent
        assert how_first == ["next-turn", True]
        assert how_second == ["next-step", True]
        text = heartbeat(LoopRecord(loop_id, "check the build", 1, 0))
        assert [message.content for message in (first, second)] == [[{"type": "text", "text": text}]] * 2
        assert first.source == second.source == LOOP
        assert agent.id not in text
        assert agent.others == []
        assert world.changes(agent) == ["create", "dispatch", "dispatch"]
        assert world.failures == []


async def test_two_loops_at_two_times_are_two_heartbeats():
    async with looping_agent() as (world, agent):
        quick, slow = await world.create(agent, "quick", 1), await world.create(agent, "slow", 3)
        await world.advance(1000)
        assert [message.id for message, _, _ in agent.sent] == [quick]
        await world.advance(2000)
        # both are due: first the one that was due earlier
        assert [message.id for message, _, _ in agent.sent] == [quick, quick, slow]
        assert agent.others == []


async def test_of_two_at_the_same_time_the_older_loop_is_first():
    async with looping_agent() as (world, agent):
        ids = [await world.create(agent, name, 2) for name in ("b", "a")]
        await world.advance(2000)
        assert [message.id for message, _, _ in agent.sent] == ids


async def test_each_session_has_its_own_loops():
    async with loop_world() as world:
        a, b = spied(world.agents.agent()), spied(world.agents.agent())
        loop_id = await world.create(a)
        assert await world.listed(b) == []
        foreign = await world.call(b, "loop_delete", id=loop_id)
        assert foreign.is_error
        assert f"there is no loop {loop_id!r} in this session" in foreign.content[0]["text"]
        await world.advance(1000)
        assert (len(a.sent), b.sent) == (1, [])
        await world.create(b)
        await a.dispose()
        await world.advance(1000)
        assert (len(a.sent), len(b.sent)) == (1, 1)
        assert a.others == b.others == []


async def test_a_deleted_loop_fires_no_more():
    async with looping_agent() as (world, agent):
        loop_id = await world.create(agent)
        outcome = await world.call(agent, "loop_delete", id=loop_id)
        assert outcome.meta == {"deleted": True, "id": loop_id}
        await world.advance(10_000)
        assert agent.sent == []
        assert world.agents.runtime.sleeping == 0
        assert world.changes(agent) == ["create", "delete"]
        assert (await world.call(agent, "loop_delete", id=loop_id)).is_error


async def test_a_loop_deleted_while_its_heartbeat_is_about_to_be_sent_sends_none():
    async with looping_agent() as (world, agent):
        loop_id = await world.create(agent)
        gate = await world.due()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: world.call(agent, "loop_delete", id=loop_id))
            await settled()
            gate.open()
        await settled()
        assert agent.sent == []
        assert world.changes(agent) == ["create", "delete"]


async def test_an_agent_that_went_while_its_log_was_flushed_is_sent_nothing():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        gate = await world.due()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.dispose)
            await settled()
            gate.open()
        await world.advance(5000)
        assert agent.sent == []
        assert world.failures == []


async def test_another_agent_with_the_same_id_is_not_sent_what_was_due_before():
    async with loop_world() as world:
        registry = world.agents.registry
        old = spied(registry.create(OPTIONS, cwd=CWD, session_id="mine"))
        await world.create(old)
        old.session.append("command/run", {"commandId": "c", "line": "/loop"})
        gate = await world.due()
        await old.dispose()
        new = spied(await registry.resume(OPTIONS, session_id="mine", cwd=CWD))
        gate.open()
        await settled()
        assert (old.sent, new.sent) == ([], [])
        world.loops.begin("mine")
        await settled()
        assert (old.sent, len(new.sent)) == ([], 1)


async def test_many_requests_for_a_drive_are_one():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        gate = await world.due()
        for _ in range(5):
            world.loops.begin(agent.id)
            world.agents.runtime.advance(0)
        flushed = world.disk.flushes
        gate.open()
        await settled()
        assert len(agent.sent) == 1
        # the flush after the dispatch, and that of the one drive that follows
        assert world.disk.flushes == flushed + 2


async def test_a_far_time_is_waited_for_in_pieces():
    async with looping_agent() as (world, agent):
        await world.create(agent, "monthly", 30 * DAY_MS // 1000)
        flushed = world.disk.flushes
        await world.advance(MAX_DELAY_MS - 1)
        assert world.disk.flushes == flushed
        await world.advance(1)
        assert (world.disk.flushes, agent.sent) == (flushed + 1, [])
        await world.advance(30 * DAY_MS - MAX_DELAY_MS - 1)
        assert agent.sent == []
        await world.advance(1)
        assert len(agent.sent) == 1


async def test_after_a_suspended_machine_one_heartbeat_comes_and_the_beat_is_kept():
    async with looping_agent() as (world, agent):
        await world.create(agent, "look", 60)
        began = world.agents.runtime.now_ms()
        await world.advance(8 * 3_600_000 + 17_000)
        assert len(agent.sent) == 1
        [loop] = await world.listed(agent)
        assert loop["next_at"] == began + 8 * 3_600_000 + 60_000
        await world.advance(42_999)
        assert len(agent.sent) == 1
        await world.advance(1)
        assert len(agent.sent) == 2


async def test_a_reporter_that_raises_stops_no_loop():
    async with looping_agent() as (world, agent):

        def raise_it(_agent, _error):
            raise RuntimeError("the reporter is broken")

        world.agents.hooks.on("loop/error", raise_it)
        await world.create(agent)
        world.disk.fails = 1
        await world.advance(1000)
        assert (agent.sent, len(world.failures)) == ([], 1)
        await world.advance(1000)
        assert len(agent.sent) == 1
        assert [name for name, _ in world.agents.errors] == ["loop/error"]


async def test_what_nobody_foresaw_stops_no_loop_either():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        agent.refuses = ZeroDivisionError("a bug")
        await world.advance(1000)
        assert [name for name, _ in world.agents.errors] == ["loop/drive"]
        assert world.changes(agent) == ["create"]
        agent.refuses = None
        await world.advance(1000)
        assert len(agent.sent) == 1


async def test_a_flush_that_fails_before_sends_and_logs_nothing_and_is_tried_again_ever_later():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        world.disk.fails = 8
        await world.advance(1000)
        waits = [1, 2, 4, 8, 16, 32, 60, 60]
        for number, seconds in enumerate(waits, start=1):
            assert len(world.failures) == number
            await world.advance(seconds * 1000 - 1)
            assert len(world.failures) == number
            assert agent.sent == []
            assert world.changes(agent) == ["create"]
            await world.advance(1)
        assert len(agent.sent) == 1
        assert all(isinstance(failure, PersistenceError) for failure in world.failures)
        # all is well again: the next failure is waited after as the first
        world.disk.fails = 1
        await world.advance(1000)
        assert len(world.failures) == 9
        await world.advance(1000)
        assert len(agent.sent) == 2


async def test_a_flush_that_fails_after_a_heartbeat_is_told_and_the_heartbeat_is_not_repeated():
    async with looping_agent() as (world, agent):
        await world.create(agent, "look", 100)
        gate = await world.due(100_000)
        # the flush that waits at the gate is to succeed, the next one to fail
        second = Gate()
        world.disk.gates.append(second)
        gate.open()
        await second.reached.wait()
        world.disk.fails = 1
        second.open()
        await settled()
        assert (len(agent.sent), len(world.failures)) == (1, 1)
        assert world.changes(agent) == ["create", "dispatch"]
        await world.advance(1000)
        assert (len(agent.sent), len(world.failures)) == (1, 1)


async def test_a_heartbeat_that_is_refused_is_not_logged_as_sent():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        agent.refuses = PersistenceError(agent.id, "full")
        await world.advance(1000)
        assert (len(world.failures), world.changes(agent)) == (1, ["create"])
        agent.refuses = None
        await world.advance(1000)
        assert (len(agent.sent), world.changes(agent)) == (1, ["create", "dispatch"])


async def test_a_loop_that_cannot_be_made_durable_first_is_not_made():
    async with looping_agent() as (world, agent):
        world.disk.fails = 1
        outcome = await world.call(agent, "loop_create", prompt="look", time_in_seconds=1)
        assert outcome.is_error
        assert world.changes(agent) == []
        assert world.agents.runtime.sleeping == 0


async def test_a_loop_whose_event_could_not_be_made_durable_is_told_as_failed_and_yet_scheduled():
    async with looping_agent() as (world, agent):
        gate = Gate()
        world.disk.gates = [gate, Gate()]
        second = world.disk.gates[1]
        async with anyio.create_task_group() as tasks:
            outcomes = []

            async def create() -> None:
                outcomes.append(await world.call(agent, "loop_create", prompt="look", time_in_seconds=5))

            tasks.start_soon(create)
            gate.open()
            await second.reached.wait()
            world.disk.fails = 1
            second.open()
        assert outcomes[0].is_error
        # it is in the log, which is written again as soon as that goes
        assert world.changes(agent) == ["create"]
        await world.advance(5000)
        assert len(agent.sent) == 1


@pytest.mark.parametrize("arguments", [{"prompt": " ", "time_in_seconds": 1}, {"prompt": "x", "time_in_seconds": 0}])
async def test_invalid_input_appends_nothing_and_does_not_even_flush(arguments):
    async with looping_agent() as (world, agent):
        assert (await world.call(agent, "loop_create", **arguments)).is_error
        assert (await world.call(agent, "loop_delete", id="loop_none")).is_error
        assert world.changes(agent) == []
        assert world.disk.flushes == 0


async def test_a_log_that_cannot_be_folded_is_told_and_makes_no_schedule():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        agent.session.append("loop/change", {"version": 2})
        outcome = await world.call(agent, "loop_list")
        assert (outcome.is_error, outcome.error["code"]) == (True, "LOOP_LOG")
        logged = agent.session.next_seq
        assert (await world.call(agent, "loop_create", prompt="more", time_in_seconds=1)).is_error
        assert agent.session.next_seq == logged
        await world.advance(1000)
        assert agent.sent == []
        assert [failure.code for failure in world.failures] == ["LOOP_LOG"]


async def test_a_session_that_ends_is_waited_for_and_sent_nothing_more():
    async with looping_agent() as (world, agent):
        await world.create(agent)
        gate = await world.due()
        ended = anyio.Event()

        async def stop() -> None:
            await world.loops.stop(agent.id)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            await settled()
            assert not ended.is_set()
            gate.open()
        assert agent.sent == []
        assert world.agents.runtime.sleeping == 0
        refused = await world.call(agent, "loop_create", prompt="look", time_in_seconds=1)
        assert (refused.is_error, refused.error["code"]) == (True, "AGENT_DISPOSED")
        await world.loops.stop("no such session")
        world.loops.begin("no such session")


async def test_resumed_loops_wait_for_the_word_and_an_overdue_one_fires_once():
    store = MemorySessionStore()
    async with loop_world(store=lambda _runtime: store) as world:
        agent = spied(world.agents.registry.create(OPTIONS, cwd=CWD, session_id="mine"))
        agent.session.append("command/run", {"commandId": "c", "line": "/loop"})
        await world.create(agent, "overdue", 60)
        await world.create(agent, "later", 7200)
        await agent.dispose()
        await world.advance(3_630_000)
        resumed = spied(await world.agents.registry.resume(OPTIONS, session_id="mine", cwd=CWD))
        await settled()
        assert resumed.sent == []
        assert [loop["state"] for loop in await world.listed(resumed)] == ["overdue", "scheduled"]
        world.loops.begin("mine")
        await settled()
        assert len(resumed.sent) == 1
        assert "overdue" in resumed.texts()[0]
        await world.advance(29_999)
        assert len(resumed.sent) == 1
        await world.advance(1)
        assert len(resumed.sent) == 2


async def test_a_session_without_loops_costs_no_task_and_no_flush():
    async with looping_agent() as (world, agent):
        world.loops.begin(agent.id)
        await world.advance(1000)
        assert world.disk.flushes == 0


async def test_a_fork_does_not_inherit_loops():
    async with loop_world(says("hi")) as world:
        parent = world.agents.agent()
        await world.agents.prompt(parent)
        parent.session.append(
            "loop/change", to_data(Created(LoopRecord("loop_a", "look", 1, world.agents.runtime.now_ms() + 1000)))
        )
        await parent.session.flush()
        fork = spied(await world.agents.registry.fork(OPTIONS, parent_id=parent.id, cwd=CWD))
        world.loops.begin(fork.id)
        await world.advance(2000)
        assert (fork.sent, await world.listed(fork)) == ([], [])


async def test_an_agent_that_another_one_started_has_no_loops():
    async with loop_world() as world:
        owner = world.agents.agent()
        owned = world.agents.registry.create(OPTIONS, cwd=CWD, owner=owner.id)
        names = {row["name"] for row in world.agents.tools.schemas(owner.id)}
        assert names == {"loop_create", "loop_list", "loop_delete"}
        assert world.agents.tools.schemas(owned.id) == []
        await owned.dispose()
        await owner.dispose()
        assert world.agents.tools.schemas(owner.id) == []


async def test_a_heartbeat_that_still_waits_stands_for_the_next_one_too():
    gate = Gate()
    async with loop_world([gate, *says("busy")], fallback=says("done")) as world:
        agent = world.agents.agent()
        await world.create(agent)
        agent.followup(world.agents.message("a long turn"))
        await gate.reached.wait()
        for _ in range(5):
            await world.advance(1000)
        assert len(agent.pending) == 1
        assert world.changes(agent) == ["create", *["dispatch"] * 5]
        gate.open()
        await agent.when_idle()
        # one more step of the running turn
        assert len(world.agents.texts(agent)) == 2
        assert agent.pending == ()


async def test_a_heartbeat_that_a_cancel_left_without_a_wake_is_waked_by_the_next():
    gate = Gate()
    async with loop_world([gate, *says("busy")], fallback=says("done")) as world:
        agent = world.agents.agent()
        await world.create(agent)
        agent.followup(world.agents.message("a long turn"))
        await gate.reached.wait()
        await world.advance(1000)
        agent.cancel("session/cancel")
        await agent.when_idle()
        assert len(agent.pending) == 1
        await world.advance(1000)
        await agent.when_idle()
        assert agent.pending == ()
        assert world.agents.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}, {"kind": "completed"}]


async def test_a_loop_shorter_than_its_own_turn_starves_no_prompt():
    first, second = Gate(), Gate()
    async with loop_world([first, *says("a")], [second, *says("b")], fallback=says("c")) as world:
        agent = world.agents.agent()
        for name in ("one", "two", "three"):
            await world.create(agent, name, 1)
        await world.advance(1000)
        await first.reached.wait()
        await world.advance(5000)
        # the turn goes on for one more step, in which the loops fire again
        first.open()
        await second.reached.wait()
        await world.advance(5000)
        agent.followup(world.agents.message("mine"))
        second.open()
        await agent.when_idle()
        turns = [data["trigger"]["source"]["kind"] for data in world.agents.of(agent, "turn/start")]
        # the prompt is next, whatever fires; then what was late gets its turns
        assert turns[:2] == ["plugin", "user"]
        assert world.agents.of(agent, "turn/end")[0]["reason"] == {"kind": "completed"}


async def test_a_disk_that_hangs_keeps_no_session_from_ending():
    async with looping_agent(queue_seconds=0.01) as (world, agent):
        await world.create(agent)
        gate = await world.due()
        await world.loops.stop(agent.id)
        gate.open()
        await settled()
        assert agent.sent == []


async def test_a_delete_that_cannot_be_made_durable_first_deletes_nothing():
    async with looping_agent() as (world, agent):
        loop_id = await world.create(agent, "look", 5)
        world.disk.fails = 1
        assert (await world.call(agent, "loop_delete", id=loop_id)).is_error
        assert world.changes(agent) == ["create"]
        await world.advance(5000)
        assert len(agent.sent) == 1


async def test_a_delete_whose_event_could_not_be_made_durable_is_told_as_failed_and_yet_holds():
    async with looping_agent() as (world, agent):
        loop_id = await world.create(agent, "look", 5)
        first, second = Gate(), Gate()
        world.disk.gates = [first, second]
        outcomes = []

        async def delete() -> None:
            outcomes.append(await world.call(agent, "loop_delete", id=loop_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delete)
            first.open()
            await second.reached.wait()
            world.disk.fails = 1
            second.open()
        assert outcomes[0].is_error
        assert world.changes(agent) == ["create", "delete"]
        await world.advance(10_000)
        assert agent.sent == []


async def test_a_call_that_is_cancelled_while_it_waits_leaves_the_queue():
    async with looping_agent() as (world, agent):
        loop_id = await world.create(agent)
        gate = await world.due()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: world.call(agent, "loop_delete", id=loop_id))
            await settled()
            tasks.cancel_scope.cancel()
        gate.open()
        await settled()
        assert len(agent.sent) == 1
        assert world.changes(agent) == ["create", "dispatch"]
