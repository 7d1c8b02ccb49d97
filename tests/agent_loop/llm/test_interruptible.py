"""One await under an abort signal and a time limit."""

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.llm.interruptible import interruptible


async def test_the_result_passes_through_and_the_signal_is_let_go():
    signal = AbortController()

    async def answer():
        await anyio.lowlevel.checkpoint()
        return 42

    assert await interruptible(answer(), signal, seconds=60) == 42
    assert signal._callbacks == {}


async def test_an_abort_cancels_what_was_awaited():
    signal = AbortController()
    with pytest.raises(LlmError, match="session/cancel") as caught:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_abort_when_waiting, signal)
            try:
                await interruptible(anyio.sleep_forever(), signal)
            except LlmError as error:
                failure = error
        raise failure
    assert caught.value.code == "ABORTED"


async def _abort_when_waiting(signal):
    while not signal._callbacks:
        await anyio.lowlevel.checkpoint()
    signal.abort("session/cancel")


async def test_a_signal_that_has_aborted_ends_it_at_once():
    signal = AbortController()
    signal.abort("gone")
    with pytest.raises(LlmError, match="gone"):
        await interruptible(anyio.sleep_forever(), signal)


async def test_the_time_limit_raises_a_timeout_error():
    with anyio.fail_after(5), pytest.raises(TimeoutError):
        await interruptible(anyio.sleep_forever(), AbortController(), seconds=0.001)


async def test_a_cancellation_from_outside_is_not_taken_for_its_own():
    with anyio.CancelScope() as outer:
        outer.cancel()
        await interruptible(anyio.sleep_forever(), AbortController())
    assert outer.cancelled_caught
