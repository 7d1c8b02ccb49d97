"""The body of an answer, read while what has come of it is being used (contract llm.md §5).

May not know: HTTP, what is in the body. Invariant: bytes come out in their order, all of them before the error that
ended them; the task that reads has ended when `aclose` returns. One read of many small pieces costs one wait, not one
for each: the wait of a delta is what an answer of 20,000 of them is made of.
"""

import asyncio

import anyio

from agent_loop.llm.interruptible import Interruptible
from agent_loop.llm.openai_compat.seam import HttpResponse

LIMIT = 1 << 20
"""Bytes that are held before the reading waits for somebody to take them."""


class ReadAhead:
    """Begins to read at once. `aclose` ends it; made inside the event loop."""

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self._pieces: list[bytes] = []
        self._size = 0
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        # a task of its own, because a generator that yields between two reads can hold no task group open; `aclose`
        # is what a task group would do
        self._task = asyncio.get_running_loop().create_task(self._read())
        self._task.add_done_callback(lambda _task: self._arrived.set())

    async def next(self, call: Interruptible) -> bytes:
        """What has arrived since the last call, at least one byte; `b""` at the end.

        Raises what `Interruptible.wait` and `HttpResponse.read` raise.
        """
        call.check()
        while not self._pieces:
            if self._task.done():
                return self._task.result()
            self._arrived.clear()
            await call.wait(self._arrived.wait)
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._taken.set()
        return data

    async def ended(self, *, seconds: float) -> None:
        """Drop what still comes, and return at the end of the body or when the time is up."""
        with anyio.move_on_after(seconds):
            while not self._task.done():
                self._pieces.clear()
                self._size = 0
                self._taken.set()
                self._arrived.clear()
                await self._arrived.wait()

    async def aclose(self) -> None:
        """Stop reading, and return when the task has ended; what it failed with is nobody's business any more."""
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
