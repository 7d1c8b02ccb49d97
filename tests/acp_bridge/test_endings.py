"""A signal that comes before the loop runs is not lost."""

import signal

import anyio

from acp_bridge.endings import STOPPING, remember_signals, stop_on_signal


async def test_a_signal_that_came_early_stops_at_once():
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        remembered = remember_signals()
        signal.raise_signal(STOPPING[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert remembered == [STOPPING[0]]
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            await stop_on_signal_once(tasks, remembered)


async def stop_on_signal_once(tasks, remembered):
    stopped = anyio.Event()
    tasks.start_soon(stop_on_signal, stopped.set, remembered)
    await stopped.wait()
    tasks.cancel_scope.cancel()
