"""The model of a check: the scripted server, in a thread of its own, spoken to from another.

May not know: the agent. Invariant: every wait ends; a model call beyond the script is answered with a short text, so
that an agent which asks once more (for a title, say) goes on.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from acp_bridge.testing.conformance.stimulus import NO_TOOL, MakeAnswer
from acp_bridge.testing.conformance.verdicts import NotProvoked
from acp_bridge.testing.json_values import JsonObject
from acp_bridge.testing.model_server import Answer, ModelServer, RecordedRequest

_FIRST_LOOK_SECONDS = 0.25


class LabModel:
    """The server at `url` (without `/v1`). `unprovoked` says why an answer of the script could not be made."""

    def __init__(self, *, is_idle: Callable[[], bool], seconds: float) -> None:
        self.url = ""
        self.unprovoked: list[str] = []
        self._is_idle = is_idle
        self._seconds = seconds
        self._script: deque[Answer | MakeAnswer] = deque()
        self._server = ModelServer(self._answer)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model", daemon=True)

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        self._listener = self._run(self._server.start(0)).result(self._seconds)
        self.url = self._server.base_url

    def stop(self) -> None:
        """Drop every connection, end the thread. Raises `ValueError` when the script held a wrong answer."""
        try:
            self._run(self._close()).result(self._seconds)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _close(self) -> None:
        self._listener.close()
        await self._server.stop()
        await self._listener.wait_closed()

    def script(self, *answers: Answer | MakeAnswer) -> None:
        """Answer the next calls with these (see `model_server`), after what is still left of an earlier script."""
        self._script.extend(answers)

    @property
    def requests(self) -> list[RecordedRequest]:
        """The model calls so far."""
        return [request for request in self._server.requests if request.path.endswith("/chat/completions")]

    def release(self, gate: str) -> None:
        """Open `gate`."""
        self._loop.call_soon_threadsafe(self._server.release, gate)

    def reached(self, gate: str, *, seconds: float | None = None) -> None:
        """Return when an answer stands at `gate`. Raises `NotProvoked` when none comes there."""
        self._await(self._server.reached(gate), what=f"the model's answer never came to {gate!r}", seconds=seconds)

    def called(self, count: int = 1, *, seconds: float | None = None) -> RecordedRequest:
        """Model call number `count` (from 1), as soon as it was made. Raises `NotProvoked`."""
        self._await(self._arrived(count), what=f"the model was called {{}} times, not {count}", seconds=seconds)
        return self.requests[count - 1]

    def left(self, request: RecordedRequest, *, seconds: float) -> bool:
        """Whether the agent dropped this call's connection within `seconds`."""
        waiting = self._run(asyncio.wait_for(request.disconnected.wait(), seconds))
        try:
            return waiting.result()
        except TimeoutError:
            return False

    async def _arrived(self, count: int) -> None:
        number = 0
        while len(self.requests) < count:
            await self._server.request(number)
            number += 1

    def _run(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _await(self, work: Coroutine[Any, Any, Any], *, what: str, seconds: float | None) -> None:
        waiting = self._run(work)
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        while True:
            try:
                waiting.result(_FIRST_LOOK_SECONDS)
            except TimeoutError:
                # nobody is going to ask the model when no prompt is open
                if self._is_idle() or time.monotonic() > deadline:
                    waiting.cancel()
                    raise NotProvoked(what.format(len(self.requests))) from None
            else:
                return

    def _answer(self, body: JsonObject) -> Answer:
        answer: Answer | MakeAnswer = self._script.popleft() if self._script else {"text": ["done"]}
        if callable(answer):
            try:
                answer = answer(body)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                self.unprovoked.append(f"the offered tools are of another shape: {error!r}")
                answer = {"text": ["nothing to run"]}
        if answer.get("text") == [NO_TOOL]:
            self.unprovoked.append(NO_TOOL)
        return answer if body.get("stream") or "body" in answer or "status" in answer else _in_one_piece(answer, body)


def optional(answer: MakeAnswer) -> MakeAnswer:
    """`answer`, and plain text where no tool was offered for it: the check means something without it, too."""

    def made(body: JsonObject) -> Answer:
        given = answer(body)
        return {"text": ["nothing to run"]} if given.get("text") == [NO_TOOL] else given

    return made


def _in_one_piece(answer: Answer, body: JsonObject) -> Answer:
    """A scripted stream for a caller that did not ask for one."""
    ops: list[Answer] = answer.get("stream", [answer])
    text = "".join(piece for op in ops for piece in op.get("text", ()))
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": "".join(call["arguments"])},
        }
        for op in ops
        for call in op.get("tool_calls", ())
    ]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = next((op["usage"] for op in ops if "usage" in op), {"prompt_tokens": 1, "completion_tokens": 1})
    frame = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body.get("model")}
    gate = {"gate": answer["gate"]} if "gate" in answer else {}
    return {**gate, "body": {**frame, "choices": [choice], "usage": usage}}
