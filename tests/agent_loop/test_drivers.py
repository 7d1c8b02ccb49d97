"""The tasks that agents run in."""

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.drivers import Drivers


class Ran:
    """Drivers that note the tasks that they ran in, and wait for `gate` there."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.tasks: list[asyncio.Task[None] | None] = []

    async def driver(self) -> None:
        self.tasks.append(asyncio.current_task())
        await self.gate.wait()

    async def until(self, number: int) -> None:
        while len(self.tasks) < number:
            await checkpoint()
        # a driver that need not wait ends in the same turn of the loop
        await checkpoint()


@asynccontextmanager
async def drivers() -> AsyncIterator[tuple[Drivers, Ran]]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            made = Drivers(tasks)
            yield made, Ran()
            made.close()


async def test_a_task_that_has_run_a_driver_runs_the_next_one():
    async with drivers() as (made, ran):
        ran.gate.set()
        for number in (1, 2, 3):
            made.start(ran.driver)
            await ran.until(number)
        assert len(set(ran.tasks)) == 1


async def test_a_task_that_waits_keeps_nothing_of_what_it_has_run():
    async with drivers() as (made, _ran):
        for _ in range(3):
            ran = Ran()
            ran.gate.set()
            made.start(ran.driver)
            await ran.until(1)
            known = weakref.ref(ran)
            del ran
            assert known() is None


async def test_drivers_at_the_same_time_have_tasks_of_their_own_of_which_a_few_wait_for_more():
    async with drivers() as (made, ran):
        for _ in range(6):
            made.start(ran.driver)
        await ran.until(6)
        first = set(ran.tasks)
        ran.gate.set()
        while sum(not task.done() for task in first if task) > 4:
            await checkpoint()
        for _ in range(6):
            made.start(ran.driver)
        await ran.until(12)
        assert len(first) == 6
        assert len(set(ran.tasks)) == 8


async def test_after_the_close_no_task_waits_and_what_is_started_is_run_all_the_same():
    async with drivers() as (made, ran):
        ran.gate.set()
        made.start(ran.driver)
        await ran.until(1)
        made.close()
        made.start(ran.driver)
        await ran.until(2)
        assert len(set(ran.tasks)) == 2


@pytest.mark.parametrize("closed", [False, True])
async def test_a_task_that_was_cancelled_with_its_group_is_given_nothing(closed):
    ran = Ran()
    ran.gate.set()
    async with anyio.create_task_group() as tasks:
        made = Drivers(tasks)
        made.start(ran.driver)
        await ran.until(1)
        tasks.cancel_scope.cancel()
        if closed:
            made.close()
        made.start(ran.driver)
    # a new one of a cancelled group runs until it waits
    assert len(set(ran.tasks)) == 2


async def test_a_driver_that_raises_ends_the_group():
    async def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ExceptionGroup):
        async with anyio.create_task_group() as tasks:
            Drivers(tasks).start(broken)
