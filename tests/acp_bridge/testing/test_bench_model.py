"""The model of the benchmark: what it streams, and that it ends."""

import asyncio
import contextlib
import json
import re
import sys
import time

import pytest

from acp_bridge.testing.bench_client import BenchError
from acp_bridge.testing.bench_model import Shape, answer, shape_of
from acp_bridge.testing.bench_world import served_model
from tests.support.model_client import ask_model

STREAM = {"stream": True}


def user(content):
    return {"role": "user", "content": content}


def request(path, body):
    payload = json.dumps(body).encode() if body is not None else b""
    method = "POST" if payload else "GET"
    length = f"content-length: {len(payload)}\r\n" if payload else ""
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode() + payload


@contextlib.asynccontextmanager
async def connection():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()
            await writer.wait_closed()


async def streamed(text):
    """The choices and the rest of one streamed answer, over a real socket."""
    async with connection() as (reader, writer):
        writer.write(request("/v1/chat/completions", {**STREAM, "messages": [user(text)]}))
        body = (await reader.readuntil(b"\r\n0\r\n\r\n")).partition(b"\r\n\r\n")[2]
    pieces = re.findall(rb"data: (.*?)\n\n", body)
    assert pieces.pop() == b"[DONE]"
    return [json.loads(piece) for piece in pieces]


def texts(events):
    return [choice["delta"].get("content") for event in events for choice in event["choices"]]


@pytest.mark.parametrize(
    ("messages", "shape"),
    [
        ([], Shape()),
        ([user("hello")], Shape(1, 0, 6)),
        ([user("@bench n=5 rate=2 size=40")], Shape(5, 2, 40)),
        ([user("@bench n=5"), user("@bench n=6 later=1 and @bench n=7 colour=3")], Shape(7)),
        ([user([{"type": "text", "text": "@bench n=8"}, {"type": "image"}]), {"role": "assistant"}], Shape(8)),
        ([user("@bench n=5"), user("something else")], Shape()),
    ],
)
def test_the_last_user_message_shapes_the_answer(messages, shape):
    assert shape_of({"messages": messages}) == shape


async def test_a_burst_is_numbered_deltas_of_the_wanted_size_then_usage():
    events = await streamed("@bench n=130 rate=0 size=9")
    assert texts(events) == ["", *(f"{number:05d}xxx~" for number in range(130)), None]
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1] | {"usage": events[-1]["usage"]["completion_tokens"]} == {
        **events[0],
        "choices": [],
        "usage": 130,
    }


async def test_a_paced_delta_says_when_it_was_sent():
    before = time.monotonic_ns()
    said = texts(await streamed("@bench n=3 rate=1000 size=1"))[1:-1]
    moments = [int(re.fullmatch(r"@([0-9a-f]+)\|x*~", text)[1], 16) for text in said]
    assert moments == sorted(moments)
    assert before < moments[0] <= moments[-1] < time.monotonic_ns()
    assert {len(text) for text in said} == {20}


async def test_a_connection_serves_what_agents_ask_for_besides():
    async with connection() as (reader, writer):
        for path, body, status, part in [
            ("/v1/models?x=1", None, b"200 OK", b'"id": "bench"'),
            ("/v1/chat/completions", {"messages": []}, b"200 OK", b'"content": "ok"'),
            ("/v1/embeddings", {}, b"404 Not Found", b"no such path"),
        ]:
            writer.write(request(path, body))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", head)[1])
            assert status in head
            assert part in await reader.readexactly(length)


def test_the_model_is_a_process_that_ends_with_its_block():
    with served_model() as url:
        assert '"content":"00000~"' in ask_model(url, stream=True)[1]
    with pytest.raises(OSError, match="refused"):
        ask_model(url)


def test_a_model_that_does_not_start_is_a_sentence():
    with pytest.raises(BenchError, match="does not start"), served_model((sys.executable, "-c", "")):
        pass
