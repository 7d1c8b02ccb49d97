"""How a connection ends, and what happens when the client does not read."""

import os

import anyio
import anyio.lowlevel
import pytest

from acp_bridge.rpc.errors import ConnectionClosed
from acp_bridge.rpc.peer import Peer
from acp_bridge.rpc.stdio import Stdio
from tests.support.recording_log import RecordingLog
from tests.support.wire_client import ScriptedDispatcher, wire


async def hold(_params, _call):
    await anyio.sleep_forever()
    return {}


async def test_at_eof_our_requests_end_before_the_hook_runs_and_what_the_hook_says_is_sent():
    order = []

    async def on_eof():
        assert client.peer.closed
        await anyio.lowlevel.checkpoint()
        order.append("hook")
        client.peer.notify("last", {})

    async with wire(on_eof=on_eof) as client:

        async def ask(_params, _call):
            try:
                await client.peer.request("permission", {})
            except ConnectionClosed:
                order.append("closed")
                raise
            return {}

        client.dispatcher.handlers |= {"ask": ask, "hold": hold}
        await client.send({"id": 1, "method": "ask"}, {"id": 2, "method": "hold"})
        assert (await client.frame())["method"] == "permission"
        client.close_input()
        frames = await client.frames(3)
        assert frames[0]["id"] == 1
        assert frames[0]["error"]["code"] == -32603
        assert frames[1] == {"method": "last", "params": {}}
        assert frames[2] == {"id": 2, "error": {"code": -32800, "message": "Request cancelled"}}
        with anyio.fail_after(20):
            await client.served.wait()
        assert order == ["closed", "hook"]


async def test_a_request_in_the_last_unended_line_is_begun_before_the_hook_runs():
    order = []

    async def on_eof():
        order.append("hook")

    async with wire(on_eof=on_eof) as client:
        client.dispatcher.listeners["note"] = lambda _params: order.append("note")

        async def begin(_params, _call):
            order.append("request")
            return {}

        client.dispatcher.handlers["begin"] = begin
        await client.send_raw(b'{"method":"note"}\n{"id":1,"method":"begin"}')
        client.close_input()
        assert await client.frame() == {"id": 1, "result": {}}
        with anyio.fail_after(20):
            await client.served.wait()
    assert order == ["note", "request", "hook"]


async def test_what_is_deferred_at_eof_leaves_still_later_than_its_response():
    async with wire() as client:

        async def new(_params, call):
            call.after_response(lambda: client.peer.notify("commands", {}))
            return {}

        client.dispatcher.handlers["new"] = new
        await client.send({"id": 1, "method": "new"})
        client.close_input()
        assert await client.frame() == {"id": 1, "result": {}}
        assert await client.frame() == {"method": "commands", "params": {}}
        assert client.writes == 2


async def test_a_request_that_needs_no_task_is_answered_at_the_end_too():
    async with wire() as client:
        calls = []
        client.dispatcher.beginners["later"] = lambda _params, call: calls.append(call)
        await client.send({"id": 1, "method": "later"})
        await client.assert_quiet()
        client.close_input()
        assert await client.frame() == {"id": 1, "error": {"code": -32800, "message": "Request cancelled"}}
        calls[0].answer({"too": "late"})
        with anyio.fail_after(20):
            await client.served.wait()
    assert client.writes == 2


async def test_stop_acts_as_eof():
    async with wire() as client:
        client.dispatcher.handlers["hold"] = hold
        await client.send({"id": 1, "method": "hold"})
        await client.assert_quiet()
        client.peer.stop()
        client.peer.stop()
        assert (await client.frame())["error"]["code"] == -32800
        with anyio.fail_after(20):
            await client.served.wait()
        client.peer.notify("after the end", {})


async def test_a_client_that_stopped_reading_for_ever_ends_it_quietly():
    ended = anyio.Event()

    async def on_eof():
        ended.set()

    async with wire(on_eof=on_eof) as client:
        client.close_output()
        await client.send({"id": 1, "method": "echo"})
        with anyio.fail_after(20):
            await client.served.wait()
        assert ended.is_set()
        assert client.peer.closed
        assert [event for level, event, _details in client.log.lines if level == "warning"] == []


async def test_an_exception_of_the_hook_is_the_callers_and_handlers_are_answered_all_the_same():
    reader, writer = os.pipe()
    far, out = os.pipe()
    peer = Peer(Stdio(reader, out), before_write=lambda: None, log=RecordingLog())
    dispatcher = ScriptedDispatcher()
    dispatcher.handlers["hold"] = hold
    os.write(writer, b'{"id":1,"method":"hold"}')
    os.close(writer)

    async def on_eof():
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught, anyio.fail_after(20):
        await peer.serve(dispatcher, on_eof=on_eof)
    assert caught.group_contains(ZeroDivisionError)
    assert b"-32800" in os.read(far, 1000)
    for fd in (reader, far, out):
        os.close(fd)


async def test_input_is_read_and_acted_upon_while_the_output_is_blocked():
    async with wire(high_water=10_000) as client:
        cancelled = anyio.Event()
        client.dispatcher.listeners["cancel"] = lambda _params: cancelled.set()

        async def flood(_params, _call):
            sent = 0
            while not cancelled.is_set():
                if client.peer.congested:
                    blocked.set()
                    async with anyio.create_task_group() as waiting:
                        waiting.start_soon(client.peer.drained)
                        await cancelled.wait()
                        waiting.cancel_scope.cancel()
                    break
                client.peer.notify("chunk", {"text": "x" * 1000})
                sent += 1
                await anyio.lowlevel.checkpoint()
            return {"sent": sent}

        blocked = anyio.Event()
        client.dispatcher.handlers["flood"] = flood
        await client.send({"id": 1, "method": "flood"})
        with anyio.fail_after(20):
            await blocked.wait()
            await client.send({"method": "cancel"})
            await cancelled.wait()
        chunks = 0
        while "method" in (frame := await client.frame()):
            chunks += 1
        assert frame == {"id": 1, "result": {"sent": chunks}}
        assert chunks < 200
        with anyio.fail_after(20):
            await client.peer.drained()
            await client.peer.flush()
        assert not client.peer.congested


async def test_after_eof_nobody_waits_for_a_client_that_does_not_read_and_the_end_comes():
    async with wire(high_water=1000) as client:
        client.peer.notify("chunk", {"text": "x" * 1_000_000})
        assert client.peer.congested
        client.close_input()
        with anyio.fail_after(20):
            await client.peer.drained()
            await client.served.wait()
        assert not client.peer.congested
