"""The ordered single writer, on a real pipe."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from acp_bridge.rpc.writer import MAX_FRAME, OrderedWriter
from tests.support.recording_log import RecordingLog


class Out:
    """A writer and the far end of its pipe; `batches` counts the calls of `before_write`."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.batches = 0
        self.gone = 0
        self.log = RecordingLog()
        self.hook: Callable[[], None] = lambda: None
        self.writer = OrderedWriter(
            writer, before_write=self._before_write, on_gone=self._on_gone, log=self.log, high_water=1000
        )

    def _before_write(self) -> None:
        self.batches += 1
        self.hook()

    def _on_gone(self) -> None:
        self.gone += 1

    async def read(self, count: int) -> bytes:
        data = b""
        with anyio.fail_after(20):
            while len(data) < count:
                await anyio.wait_readable(self.reader)
                data += os.read(self.reader, count - len(data))
        return data

    async def flushed(self) -> None:
        with anyio.fail_after(20):
            await self.writer.flushed()


@asynccontextmanager
async def out() -> AsyncIterator[Out]:
    reader, writer = os.pipe()
    harness = Out(reader, writer)
    yield harness
    harness.writer.close()
    os.close(writer)
    os.close(reader)


async def test_frames_of_one_tick_leave_in_one_write():
    async with out() as o:
        for number in range(100):
            o.writer.queue(b"%d\n" % number)
        await o.flushed()
        assert o.batches == 1
        assert os.read(o.reader, 10_000) == b"".join(b"%d\n" % number for number in range(100))
        o.writer.queue(b"next\n")
        await o.flushed()
        assert o.batches == 2


async def test_the_hook_runs_before_the_bytes_leave_and_what_it_queues_leaves_with_them():
    async with out() as o:
        seen = []

        def hook():
            os.set_blocking(o.reader, False)
            try:
                seen.append(os.read(o.reader, 100))
            except BlockingIOError:
                seen.append(b"nothing yet")
            if len(seen) == 1:
                o.writer.queue(b"by the hook\n")

        o.hook = hook
        o.writer.queue(b"first\n")
        await o.flushed()
        await anyio.lowlevel.checkpoint()
        assert seen == [b"nothing yet"]
        assert os.read(o.reader, 100) == b"first\nby the hook\n"


async def test_a_failing_hook_is_logged_and_stops_no_frame():
    async with out() as o:

        def hook():
            raise OSError(28, "disk full")

        o.hook = hook
        o.writer.queue(b"frame\n")
        assert await o.read(6) == b"frame\n"
        assert isinstance(o.log.named("before_write_failed")[0]["exc_info"], OSError)


async def test_a_client_that_does_not_read_stops_the_writer_only_and_loses_nothing():
    async with out() as o:
        big = b"x" * 300_000
        o.writer.queue(big)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert o.writer.congested
        o.writer.queue(b"y" * 2000)
        await anyio.lowlevel.checkpoint()
        assert o.batches == 1
        assert await o.read(302_000) == big + b"y" * 2000
        assert o.batches == 2
        await o.flushed()
        assert not o.writer.congested


async def test_drained_returns_once_the_backlog_is_below_the_mark():
    async with out() as o:
        await o.writer.drained()
        o.writer.queue(b"x" * 200_000)
        async with anyio.create_task_group() as tasks:
            waiting = anyio.Event()

            async def produce():
                await o.writer.drained()
                assert not o.writer.congested
                waiting.set()

            tasks.start_soon(produce)
            await anyio.lowlevel.checkpoint()
            assert not waiting.is_set()
            await o.read(200_000)
            with anyio.fail_after(20):
                await waiting.wait()


async def test_a_waiter_that_finds_the_mark_passed_again_goes_on_waiting():
    async with out() as o:
        o.writer.queue(b"x" * 100_000)

        async with anyio.create_task_group() as tasks:
            order = []

            async def greedy():
                await o.writer.drained()
                order.append("greedy")
                o.writer.queue(b"y" * 200_000)

            async def patient():
                await o.writer.drained()
                order.append("patient")

            tasks.start_soon(greedy)
            tasks.start_soon(patient)
            await o.read(100_000)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            assert order == ["greedy"]
            await o.read(200_000)
        assert order == ["greedy", "patient"]


async def test_lifting_the_mark_releases_who_waits():
    async with out() as o:
        o.writer.queue(b"x" * 200_000)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(o.writer.drained)
            await anyio.lowlevel.checkpoint()
            o.writer.lift_mark()
        assert not o.writer.congested


async def test_a_reader_that_is_gone_ends_it_once_and_quietly():
    reader, writer = os.pipe()
    o = Out(reader, writer)
    o.writer.queue(b"x" * 200_000)
    await anyio.lowlevel.checkpoint()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(o.flushed)
        tasks.start_soon(o.writer.drained)
        await anyio.lowlevel.checkpoint()
        os.close(reader)
    assert o.gone == 1
    o.writer.queue(b"into the void\n")
    await o.flushed()
    assert not o.writer.congested
    o.writer.close()
    os.close(writer)
    assert [level for level, _event, _details in o.log.lines] == ["debug"]


async def test_frames_queued_in_the_tick_of_the_close_are_dropped():
    async with out() as o:
        o.writer.queue(b"late\n")
        o.writer.close()
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert o.batches == 0


async def test_an_outgoing_line_above_the_cap_is_logged_and_sent():
    async with out() as o:
        o.writer.queue(b"x" * (MAX_FRAME + 1))
        assert len(await o.read(MAX_FRAME + 1)) == MAX_FRAME + 1
        assert o.log.named("frame_too_long") == [{"size": MAX_FRAME + 1, "limit": MAX_FRAME}]


async def test_deferred_frames_leave_in_a_later_write_by_themselves():
    async with out() as o:
        o.writer.queue(b"response\n")
        with o.writer.deferring():
            o.writer.queue(b"deferred\n")
        o.writer.queue(b"other\n")
        await o.flushed()
        assert os.read(o.reader, 100) == b"response\nother\n"
        assert await o.read(9) == b"deferred\n"
        assert o.batches == 2


async def test_a_frame_after_the_clients_next_request_takes_the_deferred_ones_along():
    async with out() as o:
        o.writer.queue(b"response\n")
        with o.writer.deferring():
            o.writer.queue(b"deferred\n")
        o.writer.admit()
        o.writer.queue(b"pipelined\n")
        await o.flushed()
        assert os.read(o.reader, 100) == b"response\npipelined\n"
        o.writer.queue(b"of another session\n")
        o.writer.admit()
        o.writer.queue(b"update\n")
        await o.flushed()
        assert os.read(o.reader, 100) == b"of another session\ndeferred\nupdate\n"


async def test_deferred_frames_wait_for_a_response_that_the_client_does_not_read():
    async with out() as o:
        response = b"r" * 200_000
        o.writer.queue(response)
        with o.writer.deferring():
            o.writer.queue(b"deferred\n")
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        o.writer.admit()
        o.writer.queue(b"behind\n")
        assert await o.read(200_016) == response + b"behind\ndeferred\n"


async def test_release_queues_what_is_deferred_and_close_drops_it():
    async with out() as o:
        o.writer.queue(b"response\n")
        with o.writer.deferring():
            o.writer.queue(b"deferred\n")
        o.writer.release()
        await o.flushed()
        assert os.read(o.reader, 100) == b"response\ndeferred\n"
        with o.writer.deferring():
            o.writer.queue(b"never sent\n")
        o.writer.queue(b"nor this\n")
        with o.writer.deferring():
            o.writer.queue(b"nor that\n")
        with o.writer.deferring():
            pass
        o.writer.close()
        assert o.batches == 1
