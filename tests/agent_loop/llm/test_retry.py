"""Retries: the policy and the driver (contract llm.md §5)."""

from email.utils import formatdate

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.llm.retry import RETRYABLE, RetryPolicy, parse_retry_after, with_retry
from agent_loop.llm.seam import RetryNotice
from agent_loop.runtime import VirtualRuntime
from tests.support.immediate_runtime import ImmediateRuntime
from tests.support.llm_request import llm_request

TEXT = {"type": "text-delta", "index": 0, "text": "x"}
NOW_MS = 1_700_000_000_000


class Attempts:
    """Opens one prepared stream after the other: a list of chunks, an error at its end or not."""

    def __init__(self, *attempts):
        self.attempts = list(attempts)
        self.closed = 0

    async def open(self, _request):
        try:
            for item in self.attempts.pop(0):
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed += 1


def failure(code, retry_after=None):
    return LlmError(f"it failed with {code}", code, retry_after=retry_after)


async def collect(attempts, runtime=None, request=None):
    return [chunk async for chunk in with_retry(attempts.open, request or llm_request(), runtime or ImmediateRuntime())]


@pytest.mark.parametrize("code", sorted(RETRYABLE))
async def test_a_failure_before_the_first_chunk_is_tried_again(code):
    attempts = Attempts([failure(code)], [TEXT])
    assert await collect(attempts) == [TEXT]
    assert attempts.closed == 2


@pytest.mark.parametrize("code", ["AUTH", "QUOTA", "INVALID_REQUEST", "ABORTED", "STREAM_CLOSED", "MALFORMED_RESPONSE"])
async def test_other_failures_are_final(code):
    attempts = Attempts([failure(code)], [TEXT])
    with pytest.raises(LlmError, match=code):
        await collect(attempts)
    assert len(attempts.attempts) == 1


async def test_a_failure_after_a_chunk_is_final():
    attempts = Attempts([TEXT, failure("SERVER")], [TEXT])
    with pytest.raises(LlmError, match="SERVER"):
        await collect(attempts)
    assert len(attempts.attempts) == 1


async def test_there_are_at_most_two_retries_with_doubled_waits_each_announced_before_it():
    seen = []
    runtime = ImmediateRuntime()
    request = llm_request(on_retry=lambda notice: seen.append((notice, list(runtime.slept))))
    with pytest.raises(LlmError, match="TIMEOUT"):
        await collect(Attempts([failure("SERVER")], [failure("TRANSPORT")], [failure("TIMEOUT")]), runtime, request)
    assert seen == [(RetryNotice(1, "SERVER", 500), []), (RetryNotice(2, "TRANSPORT", 1000), [0.5])]
    assert runtime.slept == [0.5, 1.0]


async def test_an_abort_ends_the_wait_at_once():
    signal, runtime = AbortController(), VirtualRuntime()
    attempts = Attempts([failure("RATE_LIMIT", retry_after=9.0)], [TEXT])
    caught = []

    async def consume():
        try:
            await collect(attempts, runtime, llm_request(signal=signal))
        except LlmError as error:
            caught.append(error.code)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            while not runtime.sleeping:
                await anyio.lowlevel.checkpoint()
            signal.abort("session/cancel")
    assert caught == ["ABORTED"]
    assert runtime.sleeping == 0
    assert len(attempts.attempts) == 1


async def test_a_consumer_that_leaves_closes_the_stream_beneath():
    attempts = Attempts([TEXT, TEXT])
    stream = with_retry(attempts.open, llm_request(), ImmediateRuntime())
    assert await anext(stream) == TEXT
    await stream.aclose()
    assert attempts.closed == 1


def delay(*, attempt=1, jitter=0.0, retry_after=None):
    return RetryPolicy().delay_ms(failure("RATE_LIMIT", retry_after), attempt=attempt, jitter=jitter)


def test_jitter_only_lengthens_a_wait():
    assert [delay(jitter=jitter) for jitter in (0.0, 0.5, 0.99)] == [500, 563, 624]


def test_no_wait_exceeds_the_cap():
    policy = RetryPolicy(max_retries=9)
    assert policy.delay_ms(failure("SERVER"), attempt=6, jitter=0.9) == 10_000


def test_a_wait_that_is_asked_for_is_kept():
    assert delay(retry_after=3.0) == 3000
    assert delay(retry_after=0.1) == 500
    assert delay(retry_after=10.0, jitter=0.9) == 10_000


def test_a_wait_above_the_cap_fails_and_says_so():
    with pytest.raises(LlmError, match=r"asks to wait 3600 s, longer than the 10 s") as caught:
        delay(retry_after=3600.0)
    assert caught.value.code == "RATE_LIMIT"
    assert caught.value.retry_after == 3600.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("3600", 3600.0),
        (formatdate(NOW_MS / 1000 + 7, usegmt=True), 7.0),
        (formatdate(NOW_MS / 1000 + 7).replace("-0000", ""), 7.0),
        (formatdate(NOW_MS / 1000 - 7, usegmt=True), 0.0),
        ("abc", None),
        ("", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_an_http_date(value, seconds):
    assert parse_retry_after(value, now_ms=NOW_MS) == seconds
