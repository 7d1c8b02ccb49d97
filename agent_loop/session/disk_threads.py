"""Threads for calls that wait for the disk (contract session-log.md §9: fsync in a worker thread).

May not know: what is called. Invariant: a call never waits behind another one: a disk that hangs holds up nobody else.
`anyio.to_thread` does the same in four times the time: it limits, counts and lets other tasks run first.
"""

import asyncio
import contextlib
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, TypeVar

IDLE_SECONDS: Final = 10.0

_T = TypeVar("_T")
_Job = tuple[Callable[[], None], asyncio.Future[None]]


class DiskThreads:
    """Those of one store, made when all are busy; one that has had no call for `idle_seconds` ends."""

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._idle: list[SimpleQueue[_Job]] = []

    async def run(self, call: Callable[[], None], *, meanwhile: Callable[[], _T]) -> _T:
        """Return what `meanwhile` does, which is called here while `call` runs, when both are done.

        Raises what either raises; of `call` that is `OSError`, or `ValueError` for a closed descriptor. When the wait
        is cancelled, the call goes on, and nobody hears how it ended.
        """
        done = asyncio.get_running_loop().create_future()
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = SimpleQueue[_Job]()
            # a daemon: the exit does not wait for a disk that hangs, and what it has not finished nobody was promised
            Thread(target=self._work, args=(jobs,), name="session disk", daemon=True).start()
        jobs.put((call, done))
        try:
            return meanwhile()
        finally:
            await done

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            try:
                call, done = jobs.get(timeout=self._idle_seconds)
            except Empty:
                try:
                    self._idle.remove(jobs)
                except ValueError:
                    continue  # somebody has just taken it for a call
                return
            error: OSError | ValueError | None = None
            try:
                call()
            except (OSError, ValueError) as failure:
                error = failure
            self._idle.append(jobs)
            # a loop that has ended takes no news
            with contextlib.suppress(RuntimeError):
                done.get_loop().call_soon_threadsafe(_settle, done, error)
            del call, done, error


def _settle(done: asyncio.Future[None], error: OSError | ValueError | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
