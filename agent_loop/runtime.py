"""Time, ids and randomness, injected (contract agent-loop.md §7).

May not know: what the time is used for. Invariant: no other module of agent_loop or acp_bridge reads a clock, makes
an id, sleeps or draws a random number.
"""

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
    def new_id(self) -> str:
        """A UUID that was never returned before."""

    @abstractmethod
    def jitter(self) -> float:
        """A number in [0, 1)."""


class SystemRuntime(Runtime):
    """The real clock, random UUIDs, random jitter."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, 0))

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
        self._sleepers: list[tuple[int, int, anyio.Event]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    @property
    def sleeping(self) -> int:
        """How many sleepers wait for `advance`."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        entry = (self._now_ms + round(seconds * 1000), next(self._order), anyio.Event())
        heapq.heappush(self._sleepers, entry)
        try:
            await entry[2].wait()
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    def advance(self, ms: int) -> None:
        """Move the clock by `ms`, waking the sleepers that are due, in order of their time."""
        self._now_ms += ms
        while self._sleepers and self._sleepers[0][0] <= self._now_ms:
            heapq.heappop(self._sleepers)[2].set()

    def new_id(self) -> str:
        return self._new_id() if self._new_id else str(uuid.UUID(int=next(self._ids), version=4))

    def jitter(self) -> float:
        return 0.0
