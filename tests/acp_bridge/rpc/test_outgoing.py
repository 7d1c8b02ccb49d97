"""The table of our requests, in the one tick that the connection's tests cannot aim at."""

import json

import anyio
import anyio.lowlevel
import pytest

from acp_bridge.rpc.errors import ConnectionClosed
from acp_bridge.rpc.messages import ResponseMessage
from acp_bridge.rpc.outgoing import OutgoingRequests


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
