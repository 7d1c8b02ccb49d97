"""One await that an abort signal or a time limit ends (contract llm.md §5: caller abort, watchdog, retry wait).

May not know: what is awaited. Invariant: the cancel scope lives exactly as long as the one await, so an async
generator may call this between its yields.
"""

import math
from collections.abc import Awaitable
from typing import TypeVar

import anyio

from agent_loop.abort import AbortSignal
from agent_loop.errors import LlmError

T = TypeVar("T")


def aborted(signal: AbortSignal) -> LlmError:
    """The error of a call whose `signal` aborted."""
    return LlmError(f"the model call was cancelled ({signal.reason})", "ABORTED")


async def interruptible(awaitable: Awaitable[T], signal: AbortSignal, *, seconds: float = math.inf) -> T:
    """Await `awaitable`; what it was doing is cancelled on abort and after `seconds`.

    Raises `LlmError` (`ABORTED`) on abort, `TimeoutError` when the time is up, and whatever the awaitable raises.
    """
    with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
        remove = signal.on_abort(scope.cancel)
        try:
            return await awaitable
        finally:
            remove()
    if signal.aborted:
        raise aborted(signal)
    raise TimeoutError
