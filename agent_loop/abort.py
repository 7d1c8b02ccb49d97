"""The abort signal: an explicit object with a reason (contract agent-loop.md §4).

May not know: what is aborted. Invariant: the first abort wins, its reason never changes, every callback runs once.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio


class AbortSignal:
    """Read side: poll `aborted`, register `on_abort`, or await `wait()`."""

    __slots__ = ("_callbacks", "_event", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._event: anyio.Event | None = None

    @property
    def aborted(self) -> bool:
        """True from the first `AbortController.abort` on."""
        return self.reason is not None

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once on abort (at once when it has happened); returns a remover."""
        if self.aborted:
            callback()
            return lambda: None
        key = object()
        self._callbacks[key] = callback

        def remove() -> None:
            self._callbacks.pop(key, None)

        return remove

    async def wait(self) -> str:
        """Return the reason once aborted."""
        if self.reason is None:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        return self.reason or ""


class AbortController(AbortSignal):
    """Write side: a signal that its owner can fire."""

    __slots__ = ()

    @property
    def signal(self) -> AbortSignal:
        """The read side, for handing on."""
        return self

    def abort(self, reason: str) -> None:
        """Abort with `reason`; later calls change nothing."""
        if self.reason is not None:
            return
        self.reason = reason
        if self._event is not None:
            self._event.set()
        callbacks = list(self._callbacks.values())
        self._callbacks.clear()
        for callback in callbacks:
            callback()


@contextmanager
def cancel_on_abort(signal: AbortSignal) -> Generator[None]:
    """Cancel the block when `signal` aborts; it is then left quietly, and `signal.aborted` says so.

    Not for the body of an async generator: a cancel scope must not be open across a `yield` of one.
    """
    with anyio.CancelScope() as scope:
        remove = signal.on_abort(scope.cancel)
        try:
            yield
        finally:
            remove()
