"""The tasks that agents run in.

May not know: what an agent is. Invariant: every task belongs to the task group, runs one driver at a time, and waits
for another one only until `close`; a driver that raises ends its task, and with it the group.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from anyio.abc import TaskGroup

Driver = Callable[[], Coroutine[Any, Any, None]]

_MOST_WAITING: Final = 4


class Drivers:
    """Starts drivers. To wake a task that waits costs a prompt a tenth of what a new task does."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._waiting: list[asyncio.Future[Driver | None]] = []
        self._closed = False

    def start(self, driver: Driver) -> None:
        """Run `driver` as a task of the group."""
        while self._waiting:
            next_driver = self._waiting.pop()
            # a group that was cancelled has cancelled its tasks, too
            if not next_driver.done():
                next_driver.set_result(driver)
                return
        self._tasks.start_soon(self._run, driver)

    def close(self) -> None:
        """No task waits any more; those that run end with their driver."""
        self._closed = True
        for next_driver in self._waiting:
            if not next_driver.done():
                next_driver.set_result(None)
        self._waiting.clear()

    async def _run(self, driver: Driver | None) -> None:
        while driver is not None:
            await driver()
            if self._closed or len(self._waiting) >= _MOST_WAITING:
                return
            # a task that waits keeps no agent in memory
            driver = None
            next_driver: asyncio.Future[Driver | None] = asyncio.get_running_loop().create_future()
            self._waiting.append(next_driver)
            driver = await next_driver
