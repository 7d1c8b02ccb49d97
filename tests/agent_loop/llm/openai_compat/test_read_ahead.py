"""Reading ahead: nothing lost, nothing left running, and no more held than allowed."""

import asyncio

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
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


def reading(*pieces):
    return ReadAhead(ScriptedResponse(*pieces), AbortController().signal)


async def test_what_has_arrived_comes_in_one_piece_and_then_the_end():
    body = reading(b"a", b"b", b"c")
    assert await body.next() == b"abc"
    assert await body.next() == b""
    assert await body.next() == b""
    await body.aclose()


async def test_a_failure_comes_behind_the_bytes_before_it():
    body = reading(b"a", LlmError("broke", "TRANSPORT"))
    assert await body.next() == b"a"
    with pytest.raises(LlmError, match="broke"):
        await body.next()
    await body.aclose()


async def test_an_abort_ends_the_wait_and_closing_ends_the_task():
    controller = AbortController()
    response = ScriptedResponse(...)
    body = ReadAhead(response, controller.signal)
    asyncio.get_running_loop().call_soon(controller.abort, "session/cancel")
    with pytest.raises(LlmError, match="cancelled"):
        await body.next()
    with pytest.raises(LlmError, match="cancelled"):
        await body.next()
    await body.aclose()
    assert response.cancelled


async def test_silence_is_counted_while_somebody_waits_and_not_before():
    body = ReadAhead(ScriptedResponse(b"a", ...), AbortController().signal, seconds=0.02)
    assert await body.next() == b"a"
    with anyio.fail_after(10):
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(TimeoutError):
            await body.next()
    await body.aclose()


async def test_a_look_at_the_time_between_two_waits_changes_nothing():
    body = ReadAhead(ScriptedResponse(b"a"), AbortController().signal, seconds=60)
    body._look_at_the_time()
    assert await body.next() == b"a"
    await body.aclose()


async def test_a_body_in_time_is_not_silent():
    body = ReadAhead(ScriptedResponse(b"a"), AbortController().signal, seconds=60)
    assert await body.next() == b"a"
    assert await body.next() == b""
    await body.aclose()


async def test_bytes_that_nobody_takes_make_the_reading_wait():
    response = ScriptedResponse(*[b"x" * (LIMIT // 2)] * 4)
    body = ReadAhead(response, AbortController().signal)
    await anyio.wait_all_tasks_blocked()
    assert len(response.pieces) == 2
    assert len(await body.next()) == LIMIT
    assert len(await body.next()) == LIMIT
    assert await body.next() == b""
    await body.aclose()


async def test_the_rest_of_a_body_is_dropped_however_it_ends():
    for rest in ([b"x" * LIMIT, b"y"], [b"x", LlmError("broke", "TRANSPORT")]):
        response = ScriptedResponse(*rest)
        body = ReadAhead(response, AbortController().signal)
        with anyio.fail_after(10):
            await body.ended(seconds=5)
        assert response.pieces == []
        await body.aclose()


async def test_a_body_that_does_not_end_is_left_when_the_time_is_up():
    response = ScriptedResponse(b"x", ...)
    body = ReadAhead(response, AbortController().signal)
    with anyio.fail_after(10):
        await body.ended(seconds=0.01)
    await body.aclose()
    assert response.cancelled
