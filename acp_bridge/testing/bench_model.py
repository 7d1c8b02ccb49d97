"""`python -m acp_bridge.testing.bench_model`: a model that streams as fast, or as evenly, as its prompt asks for.

May not know: agents. Standard library only. Invariant: one write per event, from a template that is built before the
first; it runs until its stdin ends, so that it never outlives the benchmark.

The last user message shapes the answer: `@bench n=20000 rate=0 size=6` asks for `n` deltas of `size` characters, `rate`
of them a second (0: as fast as the socket takes them). Every delta ends with `~`; one of a paced stream begins with
`@<CLOCK_MONOTONIC, ns, hexadecimal>|`, the moment it was sent. Without a directive the answer is one delta.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, NamedTuple

from acp_bridge.testing.json_values import JsonObject, as_list, as_object

_DIRECTIVE: Final = re.compile(r"@bench((?: \w+=\d+)+)")
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_DRAINED_EVERY: Final = 64  # events
_SHORTEST: Final = {False: 6, True: 20}  # characters of a delta: its number, or its moment, and the mark
_NUMBERS: Final = 100_000
_BODY_BYTES: Final = 1 << 26


class Shape(NamedTuple):
    """How an answer streams: deltas, deltas a second (0: all at once), characters a delta."""

    n: int = 1
    rate: int = 0
    size: int = 6


def shape_of(body: JsonObject) -> Shape:
    """What the last user message of a request asks for."""
    texts = [_text(message.get("content")) for message in body.get("messages", ()) if message.get("role") == "user"]
    asked = _DIRECTIVE.findall(texts[-1]) if texts else []
    fields = dict(pair.split("=") for pair in asked[-1].split()) if asked else {}
    return Shape(**{name: int(value) for name, value in fields.items() if name in Shape._fields})


def _text(content: Any) -> str:
    if (blocks := as_list(content)) is not None:
        return " ".join(str((as_object(block) or {}).get("text", "")) for block in blocks)
    return str(content)


def _event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def _chunked(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _frame(delta: JsonObject, finish: str | None = None) -> JsonObject:
    choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "bench", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}


async def events(shape: Shape) -> AsyncIterator[bytes]:
    """The deltas of an answer, each as the bytes of one HTTP chunk, each when it is due."""
    size = max(shape.size, _SHORTEST[shape.rate > 0])
    whole = _chunked(_event(_frame({"content": "?" * size})))
    head, _, tail = whole.partition(b"?" * size)
    if not shape.rate:
        pad = b"x" * (size - 6)
        for number in range(shape.n):
            yield b"%b%05d%b~%b" % (head, number % _NUMBERS, pad, tail)
        return
    begin = time.monotonic()
    for number in range(shape.n):
        await asyncio.sleep(max(0, begin + number / shape.rate - time.monotonic()))
        yield b"%b%b~%b" % (head, (b"@%x|" % time.monotonic_ns()).ljust(size - 1, b"x"), tail)


def _ending(n: int) -> Iterator[bytes]:
    usage = {"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}
    yield _chunked(_event(_frame({}, "stop")))
    yield _chunked(_event({**_frame({}), "choices": [], "usage": usage}))
    yield _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"


async def _stream(shape: Shape, writer: asyncio.StreamWriter) -> None:
    writer.write(_HEAD + _chunked(_event(_frame({"role": "assistant", "content": ""}))))
    number = 0
    async for event in events(shape):
        writer.write(event)
        number += 1
        if number % _DRAINED_EVERY == 0:
            await writer.drain()
    for event in _ending(shape.n):
        writer.write(event)


def _whole(status: str, value: JsonObject) -> bytes:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection until the client leaves it."""
    try:
        while True:
            line, *rows = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            headers = dict(row.split(": ", 1) for row in rows if row)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = line.split(" ")[1].partition("?")[0]
            if path.endswith("/chat/completions"):
                request: JsonObject = json.loads(body)
                if request.get("stream"):
                    await _stream(shape_of(request), writer)
                else:
                    message = {"role": "assistant", "content": "ok"}
                    choice = {"index": 0, "message": message, "finish_reason": "stop"}
                    writer.write(_whole("200 OK", {"id": "bench", "choices": [choice]}))
            elif path.endswith("/models"):
                writer.write(_whole("200 OK", {"object": "list", "data": [{"id": "bench", "object": "model"}]}))
            else:
                writer.write(_whole("404 Not Found", {"error": {"message": "no such path"}}))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=_BODY_BYTES)
    async with server:
        sys.stdout.write(json.dumps({"base_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(_serve())
