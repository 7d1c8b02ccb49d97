"""Awaits that an abort signal or a time limit ends (contract llm.md §5: caller abort, watchdog, retry wait).

May not know: what is awaited. Invariant: a cancel scope lives exactly as long as one await, so an async generator may
wait between its yields.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

import anyio

from agent_loop.abort import AbortSignal
from agent_loop.errors import LlmError

T = TypeVar("T")


def raise_if_aborted(signal: AbortSignal) -> None:
    """Raise `LlmError` (`ABORTED`) when `signal` has aborted."""
    if signal.reason is not None:
        raise LlmError(f"the model call was cancelled ({signal.reason})", "ABORTED")


class Interruptible:
    """The awaits of one call, one after the other. A context manager: it listens to `signal` while it is open.

    `seconds` is the limit of each single await.
    """

    __slots__ = ("_expired", "_interrupt", "_release", "_seconds", "_signal", "_started", "_timer")

    def __init__(self, signal: AbortSignal, *, seconds: float = math.inf) -> None:
        self._signal = signal
        self._seconds = seconds
        self._expired = False
        self._interrupt = _nothing  # ends the await that runs
        self._started = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        # one registration and one timer for the whole call: a read per delta cannot afford its own
        self._release = self._signal.on_abort(self._cancel)
        if self._seconds < math.inf:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look_at_the_time)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release()
        if self._timer is not None:
            self._timer.cancel()

    def check(self) -> None:
        """See `raise_if_aborted`."""
        raise_if_aborted(self._signal)

    async def wait(self, start: Callable[[], Awaitable[T]]) -> T:
        """Await `start()`; it is cancelled on abort and when the time is up.

        Raises `LlmError` (`ABORTED`), `TimeoutError`, and whatever the awaitable raises.
        """
        with anyio.CancelScope() as scope:
            return await self.wait_for(start, scope.cancel)
        self.check()
        raise TimeoutError

    async def wait_for(self, start: Callable[[], Awaitable[T]], interrupt: Callable[[], None]) -> T:
        """The same for an await that `interrupt` ends, by making it raise `LlmError`: it costs no cancel scope."""
        self.check()
        self._expired = False
        self._interrupt = interrupt
        self._started = asyncio.get_running_loop().time()
        try:
            return await start()
        except LlmError:
            self.check()
            if self._expired:
                raise TimeoutError from None
            raise
        finally:
            self._started = math.inf
            self._interrupt = _nothing

    def _look_at_the_time(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._started + self._seconds - loop.time()
        if left <= 0:
            self._expired = True
            self._interrupt()
            left = self._seconds
        # between two awaits nothing has started, and the time left is infinite
        self._timer = loop.call_later(min(left, self._seconds), self._look_at_the_time)

    def _cancel(self) -> None:
        self._interrupt()


def _nothing() -> None:
    """Nobody waits."""
