"""What the threads of a store promise: each call has one to itself, and none stays without work."""

import asyncio
import threading

import anyio
import pytest

from agent_loop.session.disk_threads import DiskThreads


def nothing():
    return None


async def run(threads, call=nothing):
    await threads.run(call, meanwhile=nothing)


def refuse(error):
    def call():
        raise error

    return call


async def test_a_call_runs_outside_the_loop_and_the_next_one_in_the_same_thread():
    threads, ran = DiskThreads(), []
    for _ in range(2):
        await run(threads, lambda: ran.append(threading.current_thread()))
    assert ran[0] is ran[1] is not threading.current_thread()


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("a closed descriptor")])
async def test_what_a_call_raises_its_caller_hears_and_the_thread_goes_on(error):
    threads = DiskThreads()
    with pytest.raises(type(error)) as caught:
        await run(threads, refuse(error))
    assert caught.value is error
    await run(threads)


async def test_what_is_done_meanwhile_is_done_here_and_neither_failure_hides_the_wait():
    threads, ran = DiskThreads(), []
    assert await threads.run(nothing, meanwhile=threading.current_thread) is threading.current_thread()
    with pytest.raises(OSError, match="here"):
        await threads.run(lambda: ran.append(True), meanwhile=refuse(OSError("here")))
    assert ran == [True]
    with pytest.raises(OSError, match="there"):
        await threads.run(refuse(OSError("there")), meanwhile=refuse(OSError("here")))


async def test_a_call_that_hangs_holds_up_no_other_one():
    threads, hanging, begun = DiskThreads(), threading.Event(), threading.Event()

    def hang():
        begun.set()
        hanging.wait(60)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, threads, hang)
            await anyio.to_thread.run_sync(begun.wait)
            await run(threads)
            hanging.set()


def test_of_a_call_whose_caller_was_cancelled_nobody_hears():
    threads, hanging, begun, ran = DiskThreads(idle_seconds=0), threading.Event(), threading.Event(), []

    def hang():
        ran.append(threading.current_thread())
        begun.set()
        hanging.wait(60)
        raise OSError

    async def give_up():
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, threads, hang)
                await anyio.to_thread.run_sync(begun.wait)
                tasks.cancel_scope.cancel()

    async def give_up_and_stay():
        await give_up()
        hanging.set()
        await anyio.to_thread.run_sync(ran[0].join)
        await anyio.lowlevel.checkpoint()

    asyncio.run(give_up_and_stay())
    hanging.clear()
    begun.clear()
    # nor when the loop itself is gone by then
    asyncio.run(give_up())
    hanging.set()
    ran[1].join(20)
    assert not any(thread.is_alive() for thread in ran)


def test_a_thread_without_work_ends():
    threads, ran = DiskThreads(idle_seconds=0), []
    asyncio.run(run(threads, lambda: ran.append(threading.current_thread())))
    ran[0].join(20)
    assert not ran[0].is_alive()
