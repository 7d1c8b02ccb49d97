"""The one door to a model: which adapter serves it, and what stands around the call (contract llm.md §4).

May not know: any provider. Invariant: a model has at most one adapter; replay and other layers of `llm/stream` stand
outside the retry, so that they are never retried and may answer for models that nobody serves.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks, Remover
from agent_loop.llm.retry import with_retry
from agent_loop.llm.seam import LlmAdapter, LlmRequest
from agent_loop.runtime import Runtime
from agent_loop.vocabulary import StreamChunk


class LlmService:
    """Adapters by provider and model id."""

    def __init__(self, hooks: Hooks, runtime: Runtime) -> None:
        self._hooks = hooks
        self._runtime = runtime
        self._adapters: dict[tuple[str | None, str], LlmAdapter] = {}

    def register_adapter(self, models: Sequence[str], adapter: LlmAdapter, *, provider: str | None = None) -> Remover:
        """Serve `models` of `provider` (None: whoever is asked for) with `adapter`; returns an idempotent remover.

        All or nothing: raises `LlmError` (`DUPLICATE_ADAPTER`) when one of them is served already or named twice.
        """
        wanted: set[tuple[str | None, str]] = set()
        for model in models:
            if (provider, model) in self._adapters or (provider, model) in wanted:
                raise LlmError(f"model {model!r} has an adapter already", "DUPLICATE_ADAPTER")
            wanted.add((provider, model))
        self._adapters.update((key, adapter) for key in wanted)

        def remove() -> None:
            while wanted:
                del self._adapters[wanted.pop()]

        return remove

    def stream(self, request: LlmRequest) -> AsyncIterator[StreamChunk]:
        """The chunks of one call: the around-chain `llm/stream`, innermost the adapter inside its retries.

        Raises `LlmError` while it is iterated (`NO_ADAPTER` when nobody serves `request.model`). The consumer closes
        the returned generator. Exactly one call per (turn, step).
        """
        return self._hooks.around("llm/stream", self._innermost, agent=request.session_id)(request)

    async def aclose(self) -> None:
        """Close every registered adapter, each once, also when another one fails."""
        async with AsyncExitStack() as stack:
            for adapter in set(self._adapters.values()):
                stack.push_async_callback(adapter.aclose)

    def _innermost(self, request: LlmRequest) -> AsyncIterator[StreamChunk]:
        return with_retry(self._open, request, self._runtime)

    def _open(self, request: LlmRequest) -> AsyncIterator[StreamChunk]:
        adapters = self._adapters
        adapter = adapters.get((request.provider, request.model)) or adapters.get((None, request.model))
        if adapter is None:
            raise LlmError(
                f"no provider serves the model {request.model!r}; name it in the config or choose another model",
                "NO_ADAPTER",
            )
        return adapter.stream(request)
