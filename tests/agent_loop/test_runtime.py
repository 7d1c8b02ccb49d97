"""Time, ids and jitter."""

import time
import uuid

import anyio

from agent_loop.runtime import SystemRuntime, VirtualRuntime


async def test_the_system_runtime_is_the_real_thing():
    runtime = SystemRuntime()
    assert abs(runtime.now_ms() - time.time() * 1000) < 60_000
    first = runtime.monotonic()
    with anyio.fail_after(5):
        await runtime.sleep(0.001)
        await runtime.sleep(-1)
    assert runtime.monotonic() > first
    ids = {runtime.new_id() for _ in range(64)}
    assert len(ids) == 64
    assert all(str(uuid.UUID(each)) == each and uuid.UUID(each).version == 4 for each in ids)
    assert {uuid.UUID(each).variant for each in ids} == {uuid.RFC_4122}
    assert 0 <= runtime.jitter() < 1


def test_virtual_time_stands_still_until_advanced():
    runtime = VirtualRuntime(5_000)
    assert (runtime.now_ms(), runtime.monotonic()) == (5_000, 5.0)
    runtime.advance(250)
    assert (runtime.now_ms(), runtime.monotonic()) == (5_250, 5.25)
    assert runtime.jitter() == 0.0


def test_virtual_ids_are_a_sequence_of_uuids():
    first, second = VirtualRuntime(), VirtualRuntime()
    ids = [first.new_id(), first.new_id()]
    assert ids == [second.new_id(), second.new_id()]
    assert ids[0] != ids[1]
    uuid.UUID(ids[0])


async def test_sleepers_wake_when_they_are_due():
    runtime = VirtualRuntime()
    woken: list[str] = []

    async def sleep(name: str, seconds: float) -> None:
        await runtime.sleep(seconds)
        woken.append(name)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep, "late", 2)
            tasks.start_soon(sleep, "early", 1)
            tasks.start_soon(sleep, "at once", 0)
            await anyio.wait_all_tasks_blocked()
            assert woken == ["at once"]
            assert runtime.sleeping == 2
            runtime.advance(999)
            await anyio.wait_all_tasks_blocked()
            assert woken == ["at once"]
            runtime.advance(1)
            await anyio.wait_all_tasks_blocked()
            assert woken == ["at once", "early"]
            runtime.advance(1000)
    assert woken == ["at once", "early", "late"]
    assert runtime.sleeping == 0


async def test_a_cancelled_sleeper_is_forgotten():
    runtime = VirtualRuntime()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.sleep, 10)
            tasks.start_soon(runtime.sleep, 5)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert runtime.sleeping == 0


async def test_a_timer_of_the_system_looks_at_the_wall_clock_and_can_be_taken_back():
    runtime = SystemRuntime(look_seconds=0.001)
    rung, never = anyio.Event(), anyio.Event()
    runtime.call_at(runtime.now_ms() + 5, rung.set)
    cancel = runtime.call_at(runtime.now_ms() + 2, never.set)
    cancel()
    with anyio.fail_after(5):
        await rung.wait()
        overdue = anyio.Event()
        cancel_late = runtime.call_at(0, overdue.set)
        await overdue.wait()
    cancel_late()
    assert not never.is_set()


def test_virtual_timers_ring_in_the_order_of_their_time_when_the_clock_is_moved():
    runtime = VirtualRuntime(1_000)
    rung: list[str] = []
    for at, name in ((1_300, "late"), (1_200, "early"), (900, "overdue")):
        runtime.call_at(at, lambda name=name: rung.append(name))
    cancel = runtime.call_at(1_250, lambda: rung.append("cancelled"))
    assert (rung, runtime.sleeping) == ([], 4)
    cancel()
    cancel()
    runtime.advance(0)
    assert rung == ["overdue"]
    runtime.advance(1_000)
    assert rung == ["overdue", "early", "late"]
    assert runtime.sleeping == 0
