"""A scripted OpenAI-compatible model on 127.0.0.1, for tests, recordings and demonstrations.

May not know: anything of any agent. Standard library only. Invariant: the n-th request gets the n-th answer of the
script, and every request is kept for inspection (its `Authorization` value is not).

    async with model_server([{"text": ["Hel", "lo"]}]) as server:
        ...                                   # let the agent talk to server.base_url
        assert server.requests[0].body["messages"][-1]["content"] == "hi"

A script is a list of answers, or a callable that makes one from the body of a request. An answer is an object:

* flat: any of `"reasoning": [str…]`, `"text": [str…]`,
  `"tool_calls": [{"id", "name", "arguments": [str…]}]`, `"usage": {…}`, `"finish": "stop"`.
  Each string becomes one event; usage rides on the event of the finish reason; `[DONE]` follows. Without `finish` it is
  `tool_calls` when there are any, else `stop`.
* in steps: `"stream": [op…]`, where an op is a flat object as above (only what it names is sent: usage without `finish`
  becomes a trailing event with `choices: []`), or one of
  `{"raw": str}` (verbatim, bytes in Python), `{"event": {…}}` (any JSON as one event), `{"done": true}` (`[DONE]`),
  `{"gate": name}` (wait for `server.release(name)`), `{"silence": true}` (wait until the client leaves),
  `{"cut": true}` (drop the connection).
  The stream ends where the ops end: without `done` there is no `[DONE]`.
* not a stream: `"status": int`, `"headers": {…}`, `"body": JSON or str`.

Options: `"gate": name` of the answer itself holds back its head; `"one_byte": true` sends every byte of a stream alone,
`"pace_ms": n` waits after each of its events; `"cut": true` drops the connection behind a body.

On its own: `python -m acp_bridge.testing.model_server --script FILE.json [--port N]` prints `{"base_url": …}` as one
line and serves until SIGTERM or SIGINT.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

Answer = dict[str, Any]
Script = list[Answer] | Callable[[dict[str, Any]], Answer]

_SPEC_KEYS = frozenset({"reasoning", "text", "tool_calls", "usage", "finish"})
_STREAM_HEAD = {"content-type": "text/event-stream", "cache-control": "no-cache"}


@dataclass(slots=True)
class RecordedRequest:
    """One request. `headers` lower-case, `authorization` only as `"present"`; `connection` counts from 0.

    `disconnected` is set when the client left before its answer was complete.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)


class _ClientLeftError(Exception):
    """The client closed its connection in mid-answer."""


class ModelServer:
    """The running server: `base_url` for the agent, `requests` for the test."""

    def __init__(self, script: Script) -> None:
        self.base_url = ""
        self.requests: list[RecordedRequest] = []
        self._answers = script if callable(script) else iter(script)
        self._gates: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}
        self._arrival = asyncio.Condition()
        self._connections = 0
        # kept to the end: a handler that failed on a wrong script fails `stop`
        self._handlers: list[asyncio.Task[Any]] = []
        self._writers: set[asyncio.StreamWriter] = set()

    def release(self, gate: str) -> None:
        """Let the answer that waits (or will wait) at `gate` go on."""
        self._gates.setdefault(gate, asyncio.Event()).set()

    async def reached(self, gate: str) -> None:
        """Return when an answer has come to `gate`: everything before it has been written."""
        await self._reached.setdefault(gate, asyncio.Event()).wait()

    async def request(self, number: int) -> RecordedRequest:
        """Return request `number` (from 0) as soon as it has arrived."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) > number)
        return self.requests[number]

    async def start(self, port: int) -> asyncio.Server:
        """Listen on 127.0.0.1 (`port` 0: any free one) and set `base_url`."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", port)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def stop(self) -> None:
        """Drop every connection and wait for its handler; raises `ValueError` when the script had a wrong op."""
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._handlers)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self._connections
        self._connections += 1
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._handlers.append(task)
        self._writers.add(writer)
        try:
            while (request := await _read_request(reader, number)) is not None:
                async with self._arrival:
                    self.requests.append(request)
                    self._arrival.notify_all()
                try:
                    await self._respond(request, reader, writer)
                except (_ClientLeftError, ConnectionError):
                    request.disconnected.set()
                    break
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(
        self, request: RecordedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answer = self._next_answer(request)
        if "gate" in answer:
            await self._at_gate(answer["gate"], reader)
        if "body" in answer or "status" in answer:
            await _send_body(writer, answer)
            return
        writer.write(_head(200, {**_STREAM_HEAD, **answer.get("headers", {}), "transfer-encoding": "chunked"}))
        number = len(self.requests)
        ops: list[Answer] = answer["stream"] if "stream" in answer else [_finished(answer), {"done": True}]
        for op in ops:
            if "gate" in op:
                await self._at_gate(op["gate"], reader)
            elif "silence" in op:
                await reader.read()
                raise _ClientLeftError
            elif "cut" in op:
                writer.close()
                return
            else:
                for event in _events(op, number, request.body.get("model")):
                    await self._send_event(event, answer, reader, writer)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _next_answer(self, request: RecordedRequest) -> Answer:
        if not request.path.endswith("/chat/completions"):
            return {"status": 404, "body": {"error": {"message": f"no such path: {request.path}"}}}
        if callable(self._answers):
            return self._answers(request.body)
        exhausted = {"status": 400, "body": {"error": {"message": "the script of the model server has no answer left"}}}
        return next(self._answers, exhausted)

    async def _at_gate(self, name: str, reader: asyncio.StreamReader) -> None:
        self._reached.setdefault(name, asyncio.Event()).set()
        gate = asyncio.create_task(self._gates.setdefault(name, asyncio.Event()).wait())
        # a client says nothing while it is answered: what ends this read is its leaving
        left = asyncio.create_task(reader.read(1))
        await asyncio.wait([gate, left], return_when=asyncio.FIRST_COMPLETED)
        is_open = gate.done()
        for task in (gate, left):
            task.cancel()
        await asyncio.wait([gate, left])
        if not is_open:
            raise _ClientLeftError

    @staticmethod
    async def _send_event(
        event: bytes, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for piece in (event[i : i + 1] for i in range(len(event))) if answer.get("one_byte") else (event,):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        if "pace_ms" in answer:
            await asyncio.sleep(answer["pace_ms"] / 1000)
        if reader.at_eof():
            raise _ClientLeftError


async def _read_request(reader: asyncio.StreamReader, connection: int) -> RecordedRequest | None:
    """The next request of a connection; None when the client is done."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rows = head.rstrip("\r\n").split("\r\n")
        method, path, _ = line.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows)}
        if "authorization" in headers:
            headers["authorization"] = "present"
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return RecordedRequest(method, path, headers, json.loads(body or b"{}"), connection)


def _head(status: int, headers: dict[str, str]) -> bytes:
    rows = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Scripted\r\n{rows}\r\n".encode("latin-1")


async def _send_body(writer: asyncio.StreamWriter, answer: Answer) -> None:
    body = answer.get("body", "")
    payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(payload)), **answer.get("headers", {})}
    writer.write(_head(answer.get("status", 200), headers) + payload)
    await writer.drain()
    if "cut" in answer:
        writer.close()


def _finished(answer: Answer) -> Answer:
    """A flat answer as one op: with the finish reason that it left out, without the gate of its head."""
    op = {"finish": "tool_calls" if answer.get("tool_calls") else "stop", **answer}
    op.pop("gate", None)
    return op


def _sse(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _events(op: Answer, number: int, model: Any) -> Iterator[bytes]:
    """The events of one op."""
    if "raw" in op:
        raw = op["raw"]
        yield raw if isinstance(raw, bytes) else raw.encode()
    elif "event" in op:
        yield _sse(op["event"])
    elif "done" in op:
        yield b"data: [DONE]\n\n"
    elif _SPEC_KEYS.isdisjoint(op):
        raise ValueError(f"unknown op in the script of the model server: {sorted(op)}")
    else:
        frame = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": model}
        for delta in _deltas(op):
            yield _sse({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        usage = {"usage": op["usage"]} if "usage" in op else {}
        if "finish" in op:
            yield _sse({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": op["finish"]}], **usage})
        elif usage:
            yield _sse({**frame, "choices": [], **usage})


def _deltas(op: Answer) -> Iterator[dict[str, Any]]:
    for text in op.get("reasoning", []):
        yield {"content": None, "reasoning_content": text}
    for text in op.get("text", []):
        yield {"content": text}
    for index, call in enumerate(op.get("tool_calls", [])):
        first = {"index": index, "id": call["id"], "type": "function"}
        yield {"tool_calls": [{**first, "function": {"name": call["name"], "arguments": ""}}]}
        for piece in call.get("arguments", []):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


@contextlib.asynccontextmanager
async def model_server(script: Script, *, port: int = 0) -> AsyncGenerator[ModelServer]:
    """Serve `script` while the block runs; on leaving, every connection is dropped."""
    server = ModelServer(script)
    listener = await server.start(port)
    try:
        yield server
    finally:
        listener.close()
        await server.stop()
        await listener.wait_closed()


async def _serve(script: Script, port: int) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with model_server(script, port=port) as server:
        sys.stdout.write(json.dumps({"base_url": server.base_url}) + "\n")
        sys.stdout.flush()
        await ended.wait()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible model on 127.0.0.1.")
    parser.add_argument("--script", required=True, type=Path, help="a JSON file: the list of answers")
    parser.add_argument("--port", default=0, type=int, help="the port (default: any free one)")
    arguments = parser.parse_args()
    asyncio.run(_serve(json.loads(arguments.script.read_text(encoding="utf-8")), arguments.port))


if __name__ == "__main__":
    main()
