"""A signal that comes before the loop runs is not lost, and the process leaves nothing unsaid."""

import signal
import subprocess
import sys

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


def test_it_leaves_when_its_threads_have_ended_and_what_was_printed_is_out():
    story = """
import atexit, threading
from acp_bridge.endings import leave

class Late(threading.Thread):
    asked = threading.Event()

    def run(self):
        self.asked.wait()
        print("last words")

    def join(self, timeout=None):
        self.asked.set()
        super().join(timeout)

atexit.register(print, "taken apart")
print("first words")
Late().start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
leave(7)
"""
    ended = subprocess.run([sys.executable, "-E", "-c", story], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "first words\nlast words\n", "")


def test_it_leaves_though_nobody_can_hear_it():
    story = "import sys; from acp_bridge.endings import leave; sys.stderr = None; print('lost'); leave(7)"
    with open("/dev/full", "w") as full:
        assert subprocess.run([sys.executable, "-E", "-c", story], stdout=full, check=False).returncode == 7
