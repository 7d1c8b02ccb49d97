"""The table of our requests, in the one tick that the connection's tests cannot aim at."""

import asyncio
import json

import anyio
import anyio.lowlevel
import pytest

from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from acp_bridge.rpc.messages import ResponseMessage
from acp_bridge.rpc.outgoing import OutgoingRequests
from agent_loop.abort import AbortController


async def test_an_answer_in_the_tick_of_the_cancellation_finds_nobody_and_nothing_more_is_sent():
    sent = []
    outgoing = OutgoingRequests(sent.append)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: outgoing.request("ask", params={}, signal=None))
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
        assert outgoing.settle(ResponseMessage(1, {}, None)) is False
    assert [json.loads(frame)["method"] for frame in sent] == ["ask"]


async def test_the_end_in_the_tick_of_the_cancellation_sends_nothing_more():
    sent = []
    outgoing = OutgoingRequests(sent.append)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: outgoing.request("ask", params={}, signal=None))
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
        outgoing.close()
    assert len(sent) == 1
    with pytest.raises(ConnectionClosed):
        await outgoing.request("ask", params={}, signal=None)


class Late:
    """One request whose result somebody wants even when it is late."""

    def __init__(self):
        self.sent = []
        self.late = []
        self.outcomes = []
        self.abort = AbortController()
        self.outgoing = OutgoingRequests(self.sent.append)

    async def ask(self):
        try:
            self.outcomes.append(
                await self.outgoing.request("make", params={}, signal=self.abort, on_late=self.late.append)
            )
        except RpcError as error:
            self.outcomes.append(error.code)

    def settle(self, result, error=None):
        return self.outgoing.settle(ResponseMessage(1, result, error))


async def test_a_result_that_is_taken_is_not_late():
    request = Late()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request.ask)
        await anyio.lowlevel.checkpoint()
        assert request.settle({"id": "x"})
    assert (request.outcomes, request.late) == ([{"id": "x"}], [])
    assert not request.settle({"id": "x"})


async def test_a_result_after_the_abort_is_given_to_who_cleans_up_once():
    request = Late()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request.ask)
        await anyio.lowlevel.checkpoint()
        request.abort.abort("enough")
    assert request.settle({"id": "x"})
    assert not request.settle({"id": "x"})
    assert (request.outcomes, request.late) == ([-32800], [{"id": "x"}])
    assert [json.loads(frame)["method"] for frame in request.sent] == ["make", "$/cancel_request"]


async def test_a_result_in_the_tick_of_the_abort_is_late():
    request = Late()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request.ask)
        await anyio.lowlevel.checkpoint()
        request.settle({"id": "x"})
        request.abort.abort("enough")
    assert (request.outcomes, request.late) == ([-32800], [{"id": "x"}])


async def test_a_result_in_the_tick_of_the_cancellation_is_late():
    request = Late()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request.ask)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
        assert request.settle({"id": "x"})
    assert (request.outcomes, request.late) == ([], [{"id": "x"}])


async def test_a_result_that_a_cancelled_task_finds_when_it_runs_again_is_late():
    request = Late()
    task = asyncio.create_task(request.ask())
    await anyio.lowlevel.checkpoint()
    request.settle({"id": "x"})
    # anyio leaves a task alone whose result is there; the loop's own cancellation does not
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), request.outcomes, request.late) == (True, [], [{"id": "x"}])


@pytest.mark.parametrize(("result", "error"), [(None, {"code": 1, "message": "no"}), (None, None), ([1], None)])
async def test_nothing_is_made_by_an_error_or_a_result_that_is_no_object(result, error):
    request = Late()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request.ask)
        await anyio.lowlevel.checkpoint()
        request.abort.abort("enough")
    assert request.settle(result, error)
    assert request.late == []


async def test_the_end_of_the_connection_ends_the_waiting_for_what_is_late():
    request = Late()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request.ask)
        await anyio.lowlevel.checkpoint()
        request.abort.abort("enough")
    request.outgoing.close()
    assert not request.settle({"id": "x"})
    request.outgoing.post("let go", {"id": "x"})
    assert json.loads(request.sent[-1]) == {"jsonrpc": "2.0", "id": 2, "method": "let go", "params": {"id": "x"}}
