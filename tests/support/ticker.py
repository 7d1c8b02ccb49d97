"""A timer of the loop that keeps a record of how late it was, less what the machine itself was late by (Linux)."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

PERIOD = 0.01


def _waited_for_processor() -> float:
    """Seconds that this thread was ready to run while others had the processor."""
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


@asynccontextmanager
async def ticker() -> AsyncIterator[list[float]]:
    """Yields the growing list of seconds by which ticks of 10 ms were late through the fault of this process."""
    delays: list[float] = []

    async def tick() -> None:
        while True:
            due, waited = time.monotonic() + PERIOD, _waited_for_processor()
            await anyio.sleep(PERIOD)
            delays.append(time.monotonic() - due - (_waited_for_processor() - waited))

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        yield delays
        group.cancel_scope.cancel()
