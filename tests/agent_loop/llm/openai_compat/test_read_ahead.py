"""Reading ahead: nothing lost, nothing left running, and no more held than allowed."""

import asyncio

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.llm.interruptible import Interruptible
from agent_loop.llm.openai_compat.read_ahead import LIMIT, ReadAhead
from agent_loop.llm.openai_compat.seam import HttpResponse


class ScriptedResponse(HttpResponse):
    """Gives its pieces without waiting; an exception among them is raised, `...` never comes."""

    def __init__(self, *pieces):
        self.status, self.headers = 200, {}
        self.pieces = list(pieces)
        self.cancelled = False

    async def read(self):
        piece = self.pieces.pop(0) if self.pieces else b""
        if isinstance(piece, Exception):
            raise piece
        if piece is ...:
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        return piece

    async def aclose(self):
        raise AssertionError("whoever opened it closes it")


def listening():
    return Interruptible(AbortController().signal)


async def test_what_has_arrived_comes_in_one_piece_and_then_the_end():
    with listening() as call:
        body = ReadAhead(ScriptedResponse(b"a", b"b", b"c"))
        assert await body.next(call) == b"abc"
        assert await body.next(call) == b""
        assert await body.next(call) == b""
        await body.aclose()


async def test_a_failure_comes_behind_the_bytes_before_it():
    with listening() as call:
        body = ReadAhead(ScriptedResponse(b"a", LlmError("broke", "TRANSPORT")))
        assert await body.next(call) == b"a"
        with pytest.raises(LlmError, match="broke"):
            await body.next(call)
        await body.aclose()


async def test_an_abort_ends_the_wait_and_closing_ends_the_task():
    controller = AbortController()
    response = ScriptedResponse(...)
    with Interruptible(controller.signal) as call:
        body = ReadAhead(response)
        await anyio.wait_all_tasks_blocked()
        controller.abort("session/cancel")
        with pytest.raises(LlmError, match="cancelled"):
            await body.next(call)
        await body.aclose()
    assert response.cancelled


async def test_bytes_that_nobody_takes_make_the_reading_wait():
    response = ScriptedResponse(*[b"x" * (LIMIT // 2)] * 4)
    with listening() as call:
        body = ReadAhead(response)
        await anyio.wait_all_tasks_blocked()
        assert len(response.pieces) == 2
        assert len(await body.next(call)) == LIMIT
        assert len(await body.next(call)) == LIMIT
        assert await body.next(call) == b""
        await body.aclose()


async def test_the_rest_of_a_body_is_dropped_however_it_ends():
    for rest in ([b"x" * LIMIT, b"y"], [b"x", LlmError("broke", "TRANSPORT")]):
        response = ScriptedResponse(*rest)
        body = ReadAhead(response)
        with anyio.fail_after(10):
            await body.ended(seconds=5)
        assert response.pieces == []
        await body.aclose()


async def test_a_body_that_does_not_end_is_left_when_the_time_is_up():
    response = ScriptedResponse(b"x", ...)
    body = ReadAhead(response)
    with anyio.fail_after(10):
        await body.ended(seconds=0.01)
    await body.aclose()
    assert response.cancelled
