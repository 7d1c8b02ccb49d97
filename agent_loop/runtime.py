"""Time, ids and randomness, injected (contract agent-loop.md §7).

May not know: what the time is used for. Invariant: no other module of agent_loop or acp_bridge reads a clock, makes
an id, sleeps or draws a random number.
"""

import asyncio
import heapq
import itertools
import random
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable

import anyio


class Runtime(ABC):
    """The one source of time, ids and jitter."""

    @abstractmethod
    def now_ms(self) -> int:
        """Wall clock, epoch milliseconds."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds that never go backwards."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` (a checkpoint when ≤ 0); cancellable at once."""

    @abstractmethod
    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once, outside of any task, when the wall clock stands at `at_ms` or later.

        Returns what takes it back; idempotent. Time in which the machine slept counts.
        """

    @abstractmethod
    def new_id(self) -> str:
        """A UUID that was never returned before."""

    @abstractmethod
    def jitter(self) -> float:
        """A number in [0, 1)."""


class SystemRuntime(Runtime):
    """The real clock, random UUIDs, random jitter.

    Timers of the event loop stand still while the machine sleeps: those of `call_at` look at the wall clock at least
    every `look_seconds`.
    """

    def __init__(self, *, look_seconds: float = 60.0) -> None:
        self._look_seconds = look_seconds

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, 0))

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def look() -> None:
            nonlocal timer
            left = (at_ms - self.now_ms()) / 1000
            if left <= 0:
                callback()
            else:
                timer = loop.call_later(min(left, self._look_seconds), look)

        timer: asyncio.Handle = loop.call_soon(look)

        def cancel() -> None:
            timer.cancel()

        return cancel

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def jitter(self) -> float:
        return random.random()  # noqa: S311 - spreads retries, protects nothing


class VirtualRuntime(Runtime):
    """A clock that stands still until `advance`; jitter is none, ids are a sequence unless `new_id` makes them.

    Used by tests and, through `DSH_SNAPSHOT_CLOCK`, by replayed scenarios.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000, *, new_id: Callable[[], str] | None = None) -> None:
        self._now_ms = start_ms
        self._new_id = new_id
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    @property
    def sleeping(self) -> int:
        """How many sleepers and timers wait for `advance`."""
        return len(self._timers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        cancel = self.call_at(self._now_ms + round(seconds * 1000), woken.set)
        try:
            await woken.wait()
        finally:
            cancel()

    def call_at(self, at_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """As the seam says; a time that has passed comes with the next `advance`, be it by nothing."""
        entry = (at_ms, next(self._order), callback)
        heapq.heappush(self._timers, entry)

        def cancel() -> None:
            if entry in self._timers:
                self._timers.remove(entry)
                heapq.heapify(self._timers)

        return cancel

    def advance(self, ms: int) -> None:
        """Move the clock by `ms`, waking the sleepers and calling the timers that are due, in order of their time."""
        self._now_ms += ms
        while self._timers and self._timers[0][0] <= self._now_ms:
            heapq.heappop(self._timers)[2]()

    def new_id(self) -> str:
        return self._new_id() if self._new_id else str(uuid.UUID(int=next(self._ids), version=4))

    def jitter(self) -> float:
        return 0.0
