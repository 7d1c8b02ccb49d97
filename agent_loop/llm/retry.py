"""When a failed model call is tried again, and how long to wait before (contract llm.md §5).

May not know: HTTP, any provider. Invariant: nothing is retried once a chunk has left, jitter only lengthens a wait,
and a wait that the provider asked for is kept or refused, never shortened.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import cast

from agent_loop.errors import LlmError
from agent_loop.llm.interruptible import Interruptible
from agent_loop.llm.seam import LlmRequest, RetryNotice
from agent_loop.runtime import Runtime
from agent_loop.vocabulary import StreamChunk

RETRYABLE = frozenset({"RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT", "EMPTY_RESPONSE"})

_JITTER_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `max_retries`; the wait doubles from `first_ms` and never exceeds `cap_ms`."""

    max_retries: int = 2
    first_ms: int = 500
    cap_ms: int = 10_000

    def delay_ms(self, error: LlmError, *, attempt: int, jitter: float) -> int:
        """Milliseconds to wait after failure number `attempt` (1-based); `jitter` in [0, 1).

        Raises the failure itself when it is final, and one that says so when the provider asks for more than the cap.
        """
        if error.code not in RETRYABLE or attempt > self.max_retries:
            raise error
        asked_ms = math.ceil((error.retry_after or 0) * 1000)
        if asked_ms > self.cap_ms:
            raise LlmError(
                f"{error.message} (the provider asks to wait {asked_ms / 1000:g} s, longer than the "
                f"{self.cap_ms / 1000:g} s that are waited for; send the prompt again later)",
                error.code,
                status=error.status,
                retry_after=error.retry_after,
            ) from error
        backoff = self.first_ms * 2 ** (attempt - 1) * (1 + _JITTER_SHARE * jitter)
        return min(max(math.ceil(backoff), asked_ms), self.cap_ms)


DEFAULT_POLICY = RetryPolicy()


def parse_retry_after(value: str, *, now_ms: int) -> float | None:
    """Seconds from a `Retry-After` header: a number of seconds or an HTTP date (a past one is 0); else None."""
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a megabyte that few answers need

        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        # RFC 9110 §5.6.7: a date is GMT, also where it does not say so
        moment = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(moment.timestamp() - now_ms / 1000, 0.0)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


async def with_retry(
    open_stream: Callable[[LlmRequest], AsyncIterator[StreamChunk]],
    request: LlmRequest,
    runtime: Runtime,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> AsyncGenerator[StreamChunk]:
    """Stream from `open_stream(request)`, opening it again when it fails before its first chunk.

    `request.on_retry` is called before each wait. Raises `LlmError`: the last failure, or `ABORTED` at once when
    `request.signal` aborts during a wait.
    """
    attempt = 0
    while True:
        attempt += 1
        started = False
        try:
            # the seam types an iterator and promises a generator, which is what can be closed
            stream = cast("AsyncGenerator[StreamChunk]", open_stream(request))
            async with aclosing(stream):
                async for chunk in stream:
                    started = True
                    yield chunk
        except LlmError as error:
            if started:
                raise
            delay_ms = policy.delay_ms(error, attempt=attempt, jitter=runtime.jitter())
            request.on_retry(RetryNotice(attempt, error.code, delay_ms))
        else:
            return
        with Interruptible(request.signal) as call:
            await call.wait(partial(runtime.sleep, delay_ms / 1000))
