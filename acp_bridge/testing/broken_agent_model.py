"""The model of the broken agent: one streamed chat completion of an OpenAI-compatible endpoint.

May not know: sessions, tools, the wire. Standard library only. Invariant: a stream without a finish reason is an
error; a cancellation closes the connection; the key stands in no error.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from acp_bridge.testing.broken_agent_wire import Cancel, table
from acp_bridge.testing.json_values import JsonObject

_RETRIED = {429, 503}
_ATTEMPTS = 3


class ModelError(Exception):
    """The model gave no complete answer."""


@dataclass(slots=True)
class Call:
    """A tool call of the model; `arguments` is the raw text."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Completion:
    """What the model said. `usage` counts the tokens of this request and its answer, 0 when it did not say."""

    text: str = ""
    finish: str = ""
    usage: int = 0
    calls: list[Call] = field(default_factory=list[Call])

    def message(self) -> JsonObject:
        """As the assistant's message of the next request."""
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in self.calls
        ]
        return {"role": "assistant", "content": self.text, **({"tool_calls": calls} if calls else {})}


def key() -> str:
    """The credential, empty when there is none."""
    return os.environ.get("OPENAI_API_KEY") or os.environ.get("DEEPSEEK_API_KEY") or ""


def complete(body: JsonObject, cancel: Cancel, show: Callable[[str, str], None], faults: frozenset[str]) -> Completion:
    """Stream one completion; `show(kind, text)` gets each `text` and `reasoning` piece.

    A 429 or 503 is tried again after what its Retry-After says. Raises `ModelError`, or `Cancelled` from `cancel`.
    """
    left = _ATTEMPTS
    while True:
        left -= 1
        completion = Completion()
        try:
            pause = _attempt(body, cancel, show, completion, is_last=not left)
        except (OSError, ValueError, HTTPException, ModelError) as error:
            cancel.check()
            text = str(error) or type(error).__name__
            raise ModelError(f"{text} (key {key()})" if "leaks-key" in faults else text.replace(key(), "…")) from error
        cancel.check()
        if pause is None:
            return completion
        over = threading.Event()
        cancel.on_set(over.set)
        over.wait(pause)
        cancel.check()


def _attempt(
    body: JsonObject, cancel: Cancel, show: Callable[[str, str], None], completion: Completion, *, is_last: bool
) -> float | None:
    """One request into `completion`; the seconds to wait when it is worth another."""
    base = urlsplit(
        os.environ.get("OPENAI_BASE_URL") or os.environ.get("DEEPSEEK_BASE_URL") or "https://api.openai.com/v1"
    )
    kind = HTTPSConnection if base.scheme == "https" else HTTPConnection
    connection = kind(base.netloc)
    with contextlib.closing(connection):
        connection.connect()
        peer: socket.socket = connection.sock

        def leave() -> None:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)

        cancel.on_set(leave)
        head = {"content-type": "application/json", "authorization": f"Bearer {key()}"}
        connection.request("POST", f"{base.path}/chat/completions", json.dumps(body).encode(), head)
        response = connection.getresponse()
        if response.status in _RETRIED and not is_last:
            return float(response.headers.get("retry-after", "1"))
        if response.status != 200:
            raise ModelError(f"HTTP {response.status}: {response.read().decode(errors='replace')[:500]}")
        for line in response:
            if line.startswith(b"data: {"):
                _take(json.loads(line[6:]), show, completion)
        if not completion.finish:
            raise ModelError("the stream ended before its end")
    return None


def _take(event: JsonObject, show: Callable[[str, str], None], completion: Completion) -> None:
    completion.usage = table(event.get("usage")).get("total_tokens", completion.usage)
    for choice in event.get("choices", []):
        delta: JsonObject = choice["delta"]
        completion.finish = choice.get("finish_reason") or completion.finish
        if delta.get("reasoning_content"):
            show("reasoning", delta["reasoning_content"])
        if delta.get("content"):
            completion.text += delta["content"]
            show("text", delta["content"])
        for part in delta.get("tool_calls", []):
            _join(part, completion.calls)


def _join(part: JsonObject, calls: list[Call]) -> None:
    index: int = part["index"]
    function: JsonObject = part["function"]
    if index == len(calls):
        calls.append(Call(part["id"], function["name"]))
    calls[index].arguments += function.get("arguments", "")
