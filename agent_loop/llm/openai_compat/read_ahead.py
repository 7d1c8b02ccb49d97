"""The body of an answer, read while what has come of it is being used (contract llm.md §5).

May not know: HTTP, what is in the body. Invariant: bytes come out in their order, all of them before the error that
ended them; the task that reads has ended when `aclose` returns. One read of many small pieces costs one wait, not one
for each: the wait of a delta is what an answer of 20,000 of them is made of.
"""

import asyncio
import math

import anyio

from agent_loop.abort import AbortSignal
from agent_loop.llm.interruptible import raise_if_aborted
from agent_loop.llm.openai_compat.seam import HttpResponse

LIMIT = 1 << 20
"""Bytes that are held before the reading waits for somebody to take them."""


class ReadAhead:
    """Begins to read at once. `aclose` ends it; made inside the event loop.

    `seconds` is the longest silence while somebody waits. No cancel scope stands around the wait: an abort and the end
    of the time wake it like a byte does, and cost the answer's 20,000 waits nothing.
    """

    def __init__(self, response: HttpResponse, signal: AbortSignal, *, seconds: float = math.inf) -> None:
        self._response = response
        self._signal = signal
        self._seconds = seconds
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiting_since = math.inf
        self._expired = False
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # a task of its own, because a generator that yields between two reads can hold no task group open; `aclose`
        # is what a task group would do
        self._task = self._loop.create_task(self._read())
        self._task.add_done_callback(lambda _task: self._arrived.set())
        self._release = signal.on_abort(self._arrived.set)
        self._timer = self._loop.call_later(seconds, self._look_at_the_time) if seconds < math.inf else None

    async def next(self) -> bytes:
        """What has arrived since the last call, at least one byte; `b""` at the end.

        Raises `LlmError` (`ABORTED`), `TimeoutError`, and what `HttpResponse.read` raises.
        """
        while True:
            raise_if_aborted(self._signal)
            if self._pieces:
                return self._take()
            if self._task.done():
                return self._task.result()
            if self._expired:
                raise TimeoutError
            self._arrived.clear()
            self._waiting_since = self._loop.time()
            await self._arrived.wait()
            self._waiting_since = math.inf

    async def ended(self, *, seconds: float) -> None:
        """Drop what still comes, and return at the end of the body or when the time is up."""
        with anyio.move_on_after(seconds):
            while not self._task.done():
                self._take()
                self._arrived.clear()
                await self._arrived.wait()

    async def aclose(self) -> None:
        """Stop reading, and return when the task has ended; what it failed with is nobody's business any more."""
        self._release()
        if self._timer is not None:
            self._timer.cancel()
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()

    async def _read(self) -> bytes:
        while piece := await self._response.read():
            self._pieces.append(piece)
            self._size += len(piece)
            self._arrived.set()
            if self._size >= LIMIT:
                self._taken.clear()
                await self._taken.wait()
        return b""

    def _take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._taken.set()
        return data

    def _look_at_the_time(self) -> None:
        left = self._waiting_since + self._seconds - self._loop.time()
        if left <= 0:
            self._expired = True
            self._arrived.set()
            return
        # between two waits nothing has started, and the time left is infinite
        self._timer = self._loop.call_later(min(left, self._seconds), self._look_at_the_time)
