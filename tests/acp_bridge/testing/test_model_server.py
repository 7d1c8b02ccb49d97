"""The scripted model server, spoken to over plain sockets."""

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager

import pytest

from acp_bridge.testing.model_server import model_server


@asynccontextmanager
async def client(server):
    host, port = server.base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(writer, body=None, path="/chat/completions", headers=""):
    payload = json.dumps(body or {"model": "m"}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(payload)}\r\n\r\n"
    writer.write(head.encode() + payload)
    await writer.drain()


async def read_head(reader):
    return (await reader.readuntil(b"\r\n\r\n")).decode()


async def read_pieces(reader):
    """The HTTP chunks of a streamed body."""
    pieces = []
    while size := int((await reader.readline()).strip(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return pieces


async def events(reader):
    data = [piece.removeprefix(b"data: ").strip() for piece in await read_pieces(reader)]
    return [json.loads(item) if item != b"[DONE]" else "[DONE]" for item in data]


def choices(payloads):
    return [
        (payload["choices"][0]["delta"], payload["choices"][0]["finish_reason"])
        for payload in payloads
        if payload != "[DONE]"
    ]


async def test_a_flat_answer_is_streamed_with_its_usage_on_the_finish():
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    call = {"id": "c", "name": "bash", "arguments": ["{", "}"]}
    answer = {"reasoning": ["r"], "text": ["t", "\u2028"], "tool_calls": [call], "usage": usage}
    async with model_server([answer]) as server, client(server) as (reader, writer):
        await ask(writer)
        assert "text/event-stream" in await read_head(reader)
        payloads = await events(reader)
    assert choices(payloads) == [
        ({"content": None, "reasoning_content": "r"}, None),
        ({"content": "t"}, None),
        ({"content": "\u2028"}, None),
        (
            {
                "tool_calls": [
                    {"index": 0, "id": "c", "type": "function", "function": {"name": "bash", "arguments": ""}}
                ]
            },
            None,
        ),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, None),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}, None),
        ({}, "tool_calls"),
    ]
    assert payloads[-2]["usage"] == usage
    assert payloads[-1] == "[DONE]"
    assert payloads[0]["model"] == "m"


async def test_the_finish_of_a_flat_answer_without_calls_is_stop_unless_it_says_otherwise():
    script = [{"text": ["t"]}, {"text": ["t"], "finish": "length"}]
    async with model_server(script) as server, client(server) as (reader, writer):
        for reason in ("stop", "length"):
            await ask(writer)
            await read_head(reader)
            assert choices(await events(reader))[-1] == ({}, reason)


async def test_ops_are_sent_as_they_are_and_nothing_is_added():
    ops = [{"raw": ": hi\n\n"}, {"raw": b"\xff"}, {"event": {"error": "x"}}, {"usage": {"prompt_tokens": 1}}]
    async with model_server([{"stream": ops, "pace_ms": 0}]) as server, client(server) as (reader, writer):
        await ask(writer)
        await read_head(reader)
        pieces = await read_pieces(reader)
    assert pieces[:3] == [b": hi\n\n", b"\xff", b'data: {"error":"x"}\n\n']
    trailing = json.loads(pieces[3].removeprefix(b"data: "))
    assert (trailing["choices"], trailing["usage"]) == ([], {"prompt_tokens": 1})
    assert len(pieces) == 4


async def test_every_byte_goes_alone_when_asked():
    async with (
        model_server([{"stream": [{"raw": "abc"}], "one_byte": True}]) as server,
        client(server) as (reader, writer),
    ):
        await ask(writer)
        await read_head(reader)
        assert await read_pieces(reader) == [b"a", b"b", b"c"]


async def test_requests_are_kept_without_their_key():
    async with model_server([{"body": "ok"}]) as server, client(server) as (reader, writer):
        await ask(writer, {"model": "m", "n": 1}, headers="Authorization: Bearer sk-planted\r\n")
        request = await server.request(0)
        await read_head(reader)
    assert (request.method, request.path, request.body) == ("POST", "/chat/completions", {"model": "m", "n": 1})
    assert request.headers["authorization"] == "present"
    assert "sk-planted" not in repr(request)


async def test_a_plain_answer_has_its_status_headers_and_body():
    script = [{"status": 429, "headers": {"retry-after": "3"}, "body": {"error": "x"}}, {"status": 204}]
    async with model_server(script) as server, client(server) as (reader, writer):
        await ask(writer)
        head = await read_head(reader)
        assert head.startswith("HTTP/1.1 429 ")
        assert "retry-after: 3" in head
        assert await reader.readexactly(14) == b'{"error": "x"}'
        await ask(writer)
        assert (await read_head(reader)).startswith("HTTP/1.1 204 ")


async def test_a_cut_behind_a_body_ends_the_connection():
    answer = {"body": "half", "headers": {"content-length": "100"}, "cut": True}
    async with model_server([answer]) as server, client(server) as (reader, writer):
        await ask(writer)
        await read_head(reader)
        assert await reader.read() == b"half"


async def test_a_cut_in_a_stream_ends_the_connection_without_the_last_chunk():
    async with (
        model_server([{"stream": [{"raw": "abc"}, {"cut": True}]}]) as server,
        client(server) as (reader, writer),
    ):
        await ask(writer)
        await read_head(reader)
        assert await reader.read() == b"3\r\nabc\r\n"


async def test_a_script_may_answer_by_what_was_asked():
    def script(body):
        return {"text": [body["model"]]}

    async with model_server(script) as server, client(server) as (reader, writer):
        await ask(writer, {"model": "echo"})
        await read_head(reader)
        assert choices(await events(reader))[0] == ({"content": "echo"}, None)


async def test_a_script_at_its_end_and_an_unknown_path_are_refused():
    async with model_server([]) as server, client(server) as (reader, writer):
        await ask(writer)
        assert (await read_head(reader)).startswith("HTTP/1.1 400 ")
        await reader.readuntil(b"}}")
        await ask(writer, path="/v1/models")
        assert (await read_head(reader)).startswith("HTTP/1.1 404 ")


async def test_a_gate_holds_the_answer_until_it_is_released():
    answer = {"gate": "head", "stream": [{"text": ["a"]}, {"gate": "middle"}, {"text": ["b"]}]}
    async with model_server([answer]) as server, client(server) as (reader, writer):
        await ask(writer)
        await server.reached("head")
        server.release("head")
        await read_head(reader)
        await server.reached("middle")
        server.release("middle")
        assert [delta for delta, _ in choices(await events(reader))] == [{"content": "a"}, {"content": "b"}]


@pytest.mark.parametrize("wait", [{"gate": "never"}, {"silence": True}])
async def test_a_client_that_leaves_during_a_wait_is_noticed(wait):
    async with model_server([{"stream": [{"text": ["a"]}, wait]}]) as server:
        async with client(server) as (reader, writer):
            await ask(writer)
            await read_head(reader)
        async with asyncio.timeout(10):
            await server.requests[0].disconnected.wait()


async def test_a_client_that_leaves_during_the_stream_is_noticed():
    answer = {"stream": [{"gate": "go"}, {"text": ["a"] * 100_000}]}
    async with model_server([answer]) as server:
        async with client(server) as (reader, writer):
            await ask(writer)
            await read_head(reader)
            server.release("go")
        async with asyncio.timeout(10):
            await server.requests[0].disconnected.wait()


async def test_a_wrong_op_fails_the_test_that_wrote_it():
    async def provoke():
        async with model_server([{"stream": [{"txet": ["a"]}]}]) as server, client(server) as (reader, writer):
            await ask(writer)
            await reader.read()

    with pytest.raises(ValueError, match=r"unknown op .*\['txet'\]"):
        await provoke()


async def test_leaving_drops_connections_that_are_in_use():
    async with model_server([{"stream": [{"silence": True}]}]) as server, client(server) as (reader, writer):
        await ask(writer)
        await read_head(reader)
    assert server.requests[0].disconnected.is_set()


async def test_on_its_own_it_prints_its_address_and_ends_on_sigterm(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": ["hi"]}]))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "acp_bridge.testing.model_server", "--script", str(script), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        base_url = json.loads(await process.stdout.readline())["base_url"]
        reader, writer = await asyncio.open_connection("127.0.0.1", int(base_url.rpartition(":")[2]))
        await ask(writer)
        await read_head(reader)
        assert choices(await events(reader))[0] == ({"content": "hi"}, None)
        writer.close()
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
