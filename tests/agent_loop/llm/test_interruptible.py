"""Awaits under an abort signal and a time limit."""

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.llm.interruptible import Interruptible


async def answer():
    await anyio.lowlevel.checkpoint()
    return 42


async def test_results_pass_through_and_the_signal_is_let_go():
    signal = AbortController()
    with Interruptible(signal, seconds=60) as call:
        assert await call.wait(answer) == 42
        assert await call.wait(answer) == 42
    assert signal._callbacks == {}


async def test_an_abort_cancels_what_is_awaited():
    signal = AbortController()
    started = anyio.Event()

    async def forever():
        started.set()
        await anyio.sleep_forever()

    async def abort():
        await started.wait()
        signal.abort("session/cancel")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(abort)
            with Interruptible(signal) as call:
                assert await call.wait(answer) == 42
                with pytest.raises(LlmError, match="session/cancel") as caught:
                    await call.wait(forever)
    assert caught.value.code == "ABORTED"


async def test_an_abort_between_two_awaits_ends_the_next_before_it_starts():
    signal = AbortController()
    with Interruptible(signal) as call:
        await call.wait(answer)
        signal.abort("gone")
        with pytest.raises(LlmError, match="gone"):
            await call.wait(lambda: pytest.fail("started"))


async def test_a_signal_that_has_aborted_starts_nothing():
    signal = AbortController()
    signal.abort("gone")
    with Interruptible(signal) as call, pytest.raises(LlmError, match="gone"):
        await call.wait(lambda: pytest.fail("started"))


async def test_the_time_limit_is_that_of_each_single_await():
    with anyio.fail_after(5), Interruptible(AbortController(), seconds=0.01) as call:
        assert await call.wait(answer) == 42
        with pytest.raises(TimeoutError):
            await call.wait(anyio.sleep_forever)
        assert await call.wait(answer) == 42


async def test_the_time_between_two_awaits_does_not_count():
    with anyio.fail_after(5), Interruptible(AbortController(), seconds=0.01) as call:
        first_timer = call._timer
        while call._timer is first_timer:
            await anyio.lowlevel.checkpoint()
        assert await call.wait(answer) == 42
        with pytest.raises(TimeoutError):
            await call.wait(anyio.sleep_forever)


async def test_a_cancellation_from_outside_is_not_taken_for_its_own():
    with anyio.CancelScope() as outer, Interruptible(AbortController()) as call:
        outer.cancel()
        await call.wait(anyio.sleep_forever)
    assert outer.cancelled_caught


class Line:
    """Something that is waited for, and that fails when it is interrupted."""

    def __init__(self):
        self.broken = anyio.Event()
        self.waited_for = anyio.Event()

    async def read(self):
        self.waited_for.set()
        await self.broken.wait()
        raise LlmError("the line broke", "TRANSPORT")


async def test_what_can_be_interrupted_fails_as_aborted_when_it_was():
    signal, line = AbortController(), Line()

    async def abort():
        await line.waited_for.wait()
        signal.abort("session/cancel")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(abort)
            with Interruptible(signal) as call, pytest.raises(LlmError, match="session/cancel") as caught:
                await call.wait_for(line.read, line.broken.set)
    assert caught.value.code == "ABORTED"


async def test_what_can_be_interrupted_has_the_same_time_limit_and_later_failures_are_its_own():
    with anyio.fail_after(5), Interruptible(AbortController(), seconds=0.01) as call:
        line = Line()
        with pytest.raises(TimeoutError):
            await call.wait_for(line.read, line.broken.set)
        assert await call.wait_for(answer, line.broken.set) == 42
        with pytest.raises(LlmError, match="the line broke"):
            await call.wait_for(line.read, lambda: pytest.fail("interrupted"))
