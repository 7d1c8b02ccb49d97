"""The model seam: what an adapter is given and what it yields (contract llm.md §1, §2, §4).

May not know: any provider. Invariant: exactly one `LlmService.stream` per (turn, step); a failure is either an
exception from the stream (`LlmError`) or a terminal `finish` chunk of kind error/aborted, and consumers handle both.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from agent_loop.abort import AbortSignal
from agent_loop.vocabulary import JsonObject, Message, StreamChunk


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """What `LlmRequest.on_retry` is told before the wait: attempt is 1-based, delay in milliseconds."""

    attempt: int
    code: str
    delay_ms: int


def _ignore_retry(_notice: RetryNotice) -> None:
    return


async def _nothing_kept(_ref: str) -> bytes | None:
    return None


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """One model call. `tools` rows are `{name,description,parameters,strict?}`.

    `session_id`, `turn`, `step` say which call of which session this is: replay is keyed by them, providers never see
    them. `messages` are normalised already and hold no system message. `provider` tells models of one name apart;
    `effort` is one of the model's thinking levels (None: its own). `attachment` gives the bytes that a block names by
    its `ref`, None when they are not kept any more.
    """

    model: str
    messages: list[Message]
    signal: AbortSignal
    session_id: str
    turn: int
    step: int
    system: str | None = None
    tools: list[JsonObject] = field(default_factory=list[JsonObject])
    temperature: float | None = None
    max_tokens: int | None = None
    stop: list[str] | None = None
    provider: str | None = None
    effort: str | None = None
    on_retry: Callable[[RetryNotice], None] = _ignore_retry
    attachment: Callable[[str], Awaitable[bytes | None]] = _nothing_kept


class LlmAdapter(ABC):
    """A provider. Stateless towards the conversation; owns its connections."""

    @abstractmethod
    def stream(self, request: LlmRequest) -> AsyncIterator[StreamChunk]:
        """Yield the chunks of one answer; usage before finish, nothing after finish.

        Raises `LlmError`; ends at once (code `ABORTED`) when `request.signal` aborts. An async generator: the
        consumer closes it.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections; idempotent."""
