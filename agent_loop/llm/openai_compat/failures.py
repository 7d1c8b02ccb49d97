"""What a provider says when it refuses, as `LlmError` (contract llm.md §5).

May not know: sockets, streams, keys. Invariant: total: any status and any body give an error with a stable code and a
readable sentence of bounded length.
"""

from typing import Any, cast

from pydantic_core import from_json

from agent_loop.errors import LlmError

_MAX_DETAIL = 1_000

_BY_STATUS = {
    400: "INVALID_REQUEST",
    401: "AUTH",
    402: "QUOTA",
    403: "AUTH",
    429: "RATE_LIMIT",
}
_SENTENCES = {
    "INVALID_REQUEST": "refused the request",
    "CONTEXT_OVERFLOW": "refused the request because the conversation is longer than the model's context",
    "AUTH": "rejected the API key",
    "QUOTA": "refused the request because the account has no balance or quota left",
    "RATE_LIMIT": "limits the rate of requests",
    "SERVER": "failed",
}
# providers have no common code for it; these are the words of DeepSeek, OpenAI, OpenRouter, vLLM and llama.cpp
_OVERFLOW_WORDS = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "too many tokens",
)
_STREAM_CODES = (
    ("rate_limit", "RATE_LIMIT"),
    ("insufficient", "QUOTA"),
    ("quota", "QUOTA"),
    ("authentication", "AUTH"),
    ("permission", "AUTH"),
    ("invalid_request", "INVALID_REQUEST"),
)


def http_failure(provider: str, status: int, body: bytes, *, retry_after: float | None = None) -> LlmError:
    """The error of a response whose status is not a success; `retry_after` in seconds."""
    detail = _body_detail(body)
    code = _status_code(status, detail)
    return LlmError(
        _sentence(provider, code, f" (HTTP {status})", detail), code, status=status, retry_after=retry_after
    )


def stream_failure(provider: str, error: Any) -> LlmError:
    """The error of an `error` object (or text) inside a successful stream.

    Without a code that says otherwise it counts as `SERVER`: retried when nothing was streamed before it.
    """
    detail = _detail(error)
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    symbols = f"{fields.get('code')} {fields.get('type')}"
    status = fields.get("code")
    if isinstance(status, int) and 400 <= status <= 599:
        code = _status_code(status, detail)
    elif _overflows(f"{symbols} {detail}"):
        code = "CONTEXT_OVERFLOW"
    else:
        code = next((code for word, code in _STREAM_CODES if word in symbols), "SERVER")
    return LlmError(_sentence(provider, code, " inside its stream", detail), code)


def plain_answer(provider: str, body: bytes) -> LlmError:
    """The error of a successful response that is JSON instead of a stream: a gateway's error, or a wrong endpoint."""
    try:
        parsed = from_json(body)
    except ValueError:
        parsed = None
    error = cast("dict[str, Any]", parsed).get("error") if isinstance(parsed, dict) else None
    if error:
        return stream_failure(provider, error)
    return LlmError(f"{provider} answered with plain JSON where a stream was asked for", "MALFORMED_RESPONSE")


def _status_code(status: int, detail: str) -> str:
    if status >= 500:
        return "SERVER"
    code = _BY_STATUS.get(status, f"HTTP_{status}")
    return "CONTEXT_OVERFLOW" if code == "INVALID_REQUEST" and _overflows(detail) else code


def _overflows(text: str) -> bool:
    lowered = text.lower()
    return any(words in lowered for words in _OVERFLOW_WORDS)


def _sentence(provider: str, code: str, where: str, detail: str) -> str:
    sentence = f"{provider} {_SENTENCES.get(code, 'answered unexpectedly')}{where}"
    return f"{sentence}: {detail}" if detail else sentence


def _body_detail(body: bytes) -> str:
    try:
        parsed = from_json(body)
    except ValueError:
        return _clip(body.decode("utf-8", "replace"))
    return _detail(cast("dict[str, Any]", parsed).get("error", parsed) if isinstance(parsed, dict) else parsed)


def _detail(error: Any) -> str:
    """The provider's own words: `message` or `detail` of an object, a text itself, else nothing."""
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        error = fields.get("message") or fields.get("detail")
    return _clip(error) if isinstance(error, str) else ""


def _clip(text: str) -> str:
    readable = " ".join(text.split())
    return readable if len(readable) <= _MAX_DETAIL else readable[:_MAX_DETAIL] + "…"
