"""A model that says what a test wrote: the double of `LlmAdapter`.

An answer is a list of operations: a chunk (yielded), a `Gate` (tells that it was reached, waits until opened), `HANG`
(waits for ever), an exception (raised). With no answer left, `fallback` answers every further call.
"""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio

from agent_loop.llm.seam import LlmAdapter, LlmRequest
from agent_loop.vocabulary import StreamChunk


class Gate:
    """A place in an answer where the test and the model meet."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self._opened = anyio.Event()

    def open(self) -> None:
        self._opened.set()

    async def wait(self) -> None:
        self.reached.set()
        await self._opened.wait()


class _Hang:
    """The model says nothing more."""


HANG = _Hang()
Operation = dict[str, Any] | Gate | _Hang | Exception
Answer = Sequence[Operation]


def says(text: str, *, finish: str = "stop", usage: dict[str, int] | None = None) -> list[Operation]:
    """A text answer in one delta."""
    chunks: list[Operation] = [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": text},
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": text}},
    ]
    if usage is not None:
        chunks.append({"type": "usage", "usage": usage})
    return [*chunks, {"type": "finish", "reason": {"kind": finish}}]


def calls(*wanted: tuple[str, str, Any], finish: str = "tool-calls") -> list[Operation]:
    """Tool calls `(id, name, arguments)`; arguments are an object, or the raw text."""
    chunks: list[Operation] = []
    for index, (call_id, name, arguments) in enumerate(wanted):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        block = {"type": "tool-call", "id": call_id, "name": name, "arguments": raw}
        chunks += [
            {"type": "block-start", "index": index, "blockType": "tool-call"},
            {"type": "tool-call-delta", "index": index, "id": call_id, "name": name, "argumentsDelta": raw},
            {"type": "block-end", "index": index, "block": block},
        ]
    return [*chunks, {"type": "finish", "reason": {"kind": finish}}]


class ScriptedAdapter(LlmAdapter):
    """`requests` are the calls so far, `open_streams` how many are not closed yet."""

    def __init__(self, *answers: Answer, fallback: Answer | None = None) -> None:
        self.answers = list(answers)
        self.fallback = fallback
        self.requests: list[LlmRequest] = []
        self.open_streams = 0
        self.closed = False

    async def stream(self, request: LlmRequest) -> AsyncIterator[StreamChunk]:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else self.fallback
        assert answer is not None, "the model was called more often than the test wrote answers"
        self.open_streams += 1
        try:
            for operation in answer:
                match operation:
                    case Gate():
                        await operation.wait()
                    case _Hang():
                        await anyio.sleep_forever()
                    case Exception():
                        raise operation
                    case _:
                        yield operation  # type: ignore[misc]
        finally:
            self.open_streams -= 1

    async def aclose(self) -> None:
        self.closed = True
