"""Chat-completion stream payloads in, stream chunks out, sans I/O (contract llm.md §5).

May not know: HTTP, server-sent-event syntax, the conversation. Invariant: what it yields is a valid answer of
contract §2 whatever the provider leaves out or repeats: no empty delta, usage before finish, nothing after finish.
"""

import json
from typing import Any, cast

from pydantic_core import from_json

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.failures import stream_failure
from agent_loop.vocabulary import Block, FinishReason, JsonObject, StreamChunk, Usage

_MAX_COUNT = 2**53 - 1  # counts beyond what JSON carries exactly are nonsense and would not enter the log

_FINISH: dict[str, FinishReason] = {
    "stop": {"kind": "stop"},
    "tool_calls": {"kind": "tool-calls"},
    "length": {"kind": "max-tokens"},
    "content_filter": {"kind": "refusal"},
}


class _Call:
    """A tool call under assembly. `own_id`: the provider named it (else the id is ours)."""

    __slots__ = ("arguments", "call_id", "index", "name", "own_id")

    def __init__(self, index: int, call_id: str | None) -> None:
        self.index = index
        self.own_id = call_id is not None
        self.call_id = call_id or f"call-{index}"
        self.name = ""
        self.arguments: list[str] = []


class StreamTranslator:
    """One answer. Feed it every event; `done` is true once `[DONE]` gave the last chunks."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self.done = False
        self._blocks: list[_Call | tuple[str, list[str]]] = []
        self._text: list[str] | None = None
        self._reasoning: list[str] | None = None
        self._text_index = 0
        self._reasoning_index = 0
        self._calls_by_id: dict[str, _Call] = {}
        self._calls_by_position: dict[int, _Call] = {}
        self._call: _Call | None = None
        self._usage: Usage | None = None
        self._finish: str | None = None

    def feed(self, event: bytes, data: bytes) -> list[StreamChunk]:
        """The chunks of one event. Raises `LlmError`: the provider's error, `MALFORMED_RESPONSE`, `EMPTY_RESPONSE`."""
        if len(data) < 16 and data.strip() == b"[DONE]":
            return self._end()
        payload = self._parse(data)
        if not isinstance(payload, dict):
            if event == b"error":
                raise stream_failure(self._provider, payload)
            raise self._malformed("a value that is not an object")
        fields = cast("JsonObject", payload)
        error = fields.get("error")
        if error or event == b"error":
            raise stream_failure(self._provider, error or payload)
        usage = fields.get("usage")
        if isinstance(usage, dict):
            self._usage = _usage(cast("JsonObject", usage))
        choice = _first(fields.get("choices"))
        if choice is None:
            return []
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self._finish = finish
        delta = choice.get("delta")
        chunks: list[StreamChunk] = []
        if isinstance(delta, dict):
            self._delta(cast("JsonObject", delta), chunks)
        return chunks

    def _parse(self, data: bytes) -> Any:
        try:
            return from_json(data)
        except ValueError:
            pass
        # half a surrogate pair and broken UTF-8 are repaired to U+FFFD; the strict parser refuses both
        try:
            payload = json.loads(data.decode("utf-8", "replace"))
            text = json.dumps(payload, ensure_ascii=False)
            return from_json(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
        except (ValueError, RecursionError):
            raise self._malformed("invalid JSON") from None

    def _malformed(self, what: str) -> LlmError:
        return LlmError(f"{self._provider} sent {what} in its stream", "MALFORMED_RESPONSE")

    def _delta(self, delta: JsonObject, chunks: list[StreamChunk]) -> None:
        # `reasoning` is the name that OpenRouter, Ollama and newer vLLM use
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and isinstance(reasoning, str):
            if self._reasoning is None:
                self._reasoning = []
                self._reasoning_index = self._open("reasoning", self._reasoning, chunks)
            self._reasoning.append(reasoning)
            chunks.append({"type": "reasoning-delta", "index": self._reasoning_index, "text": reasoning})
        text = delta.get("content")
        if text and isinstance(text, str):
            if self._text is None:
                self._text = []
                self._text_index = self._open("text", self._text, chunks)
            self._text.append(text)
            chunks.append({"type": "text-delta", "index": self._text_index, "text": text})
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            rows = cast("list[Any]", calls)
            for place, row in enumerate(rows):
                if isinstance(row, dict):
                    # several rows without an index are several calls; a single one continues the current call
                    self._call_delta(cast("JsonObject", row), place if len(rows) > 1 else None, chunks)

    def _open(self, block_type: str, parts: list[str], chunks: list[StreamChunk]) -> int:
        index = len(self._blocks)
        self._blocks.append((block_type, parts))
        chunks.append({"type": "block-start", "index": index, "blockType": block_type})
        return index

    def _call_delta(self, row: JsonObject, place: int | None, chunks: list[StreamChunk]) -> None:
        call_id = row.get("id")
        call_id = call_id if isinstance(call_id, str) and call_id else None
        position = row.get("index")
        position = position if isinstance(position, int) else place
        function = row.get("function")
        fields = cast("JsonObject", function) if isinstance(function, dict) else {}
        name = fields.get("name")
        name = name if isinstance(name, str) else ""
        arguments = fields.get("arguments")
        arguments = arguments if isinstance(arguments, str) else ""

        call = self._known_call(call_id, position)
        is_news = call is None
        if call is None:
            call = _Call(len(self._blocks), call_id)
            self._blocks.append(call)
            chunks.append({"type": "block-start", "index": call.index, "blockType": "tool-call"})
        elif call_id is not None and not call.own_id:
            # the provider names a call late: the id that was made up for it gives way
            call.call_id, call.own_id, is_news = call_id, True, True
        self._calls_by_id[call.call_id] = call
        if position is not None:
            self._calls_by_position[position] = call
        self._call = call

        call.name = name or call.name
        call.arguments.append(arguments)
        if name:
            chunks.append(
                {
                    "type": "tool-call-delta",
                    "index": call.index,
                    "id": call.call_id,
                    "name": name,
                    "argumentsDelta": arguments,
                }
            )
        elif arguments or is_news:
            chunks.append(
                {"type": "tool-call-delta", "index": call.index, "id": call.call_id, "argumentsDelta": arguments}
            )

    def _known_call(self, call_id: str | None, position: int | None) -> _Call | None:
        """By id, else by position, else the current one; None opens a new block."""
        if call_id is not None and call_id in self._calls_by_id:
            return self._calls_by_id[call_id]
        call = self._call if position is None else self._calls_by_position.get(position)
        # a new id on a used position is another call
        return None if call is None or (call_id is not None and call.own_id) else call

    def _end(self) -> list[StreamChunk]:
        finish = self._finish or ("tool_calls" if self._calls_by_id else "stop")
        if not self._blocks and finish in ("stop", "tool_calls"):
            raise LlmError(f"{self._provider} sent an empty answer", "EMPTY_RESPONSE")
        self.done = True
        chunks: list[StreamChunk] = [
            {"type": "block-end", "index": index, "block": _block(block)} for index, block in enumerate(self._blocks)
        ]
        if self._usage is not None:
            chunks.append({"type": "usage", "usage": self._usage})
        reason = _FINISH.get(finish)
        if reason is None:
            message = f"{self._provider} ended the answer with the reason {finish!r}"
            reason = {"kind": "error", "message": message, "code": finish.upper()}
        chunks.append({"type": "finish", "reason": reason})
        return chunks


def _first(choices: Any) -> JsonObject | None:
    """The first choice; None for `[]`, null and what is no object."""
    first = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    return cast("JsonObject", first) if isinstance(first, dict) else None


def _block(block: _Call | tuple[str, list[str]]) -> Block:
    if isinstance(block, _Call):
        arguments = "".join(block.arguments)
        return {"type": "tool-call", "id": block.call_id, "name": block.name, "arguments": arguments}
    block_type, parts = block
    return {"type": block_type, "text": "".join(parts)}


def _usage(usage: JsonObject) -> Usage:
    """Disjoint counts: what was read from the cache is not input again."""
    cached = _count(_nested(usage, "prompt_tokens_details", "cached_tokens"))
    if cached is None:
        cached = _count(usage.get("prompt_cache_hit_tokens"))
    result: Usage = {
        "inputTokens": max((_count(usage.get("prompt_tokens")) or 0) - (cached or 0), 0),
        "outputTokens": _count(usage.get("completion_tokens")) or 0,
    }
    if cached is not None:
        result["cacheReadTokens"] = cached
    reasoning = _count(_nested(usage, "completion_tokens_details", "reasoning_tokens"))
    if reasoning is not None:
        result["reasoningTokens"] = reasoning
    return result


def _nested(usage: JsonObject, group: str, key: str) -> Any:
    details = usage.get(group)
    return cast("JsonObject", details).get(key) if isinstance(details, dict) else None


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
    return value if is_count else None
