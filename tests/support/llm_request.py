"""A model request with everything filled in, for tests of adapters and what stands around them."""

from typing import Any

from agent_loop.abort import AbortController, AbortSignal
from agent_loop.llm.seam import LlmRequest
from agent_loop.vocabulary import Message, text_block


def user(text: str) -> Message:
    """A user message of one text."""
    return {"role": "user", "content": [text_block(text)]}


def llm_request(*, model: str = "deepseek-v4-flash", signal: AbortSignal | None = None, **fields: Any) -> LlmRequest:
    """`hi` to `model`; any field of `LlmRequest` may be given."""
    values: dict[str, Any] = {"messages": [user("hi")], "session_id": "session-1", "turn": 1, "step": 1, **fields}
    return LlmRequest(model=model, signal=signal or AbortController(), **values)
