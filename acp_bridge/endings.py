"""What ends the agent from outside, besides the end of its input (acp.md §1), and the end of its process.

May not know: what is ended. Invariant: every such end is the same ordered shutdown.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

STOPPING = (signal.SIGTERM, signal.SIGINT)
"""Signals that end it in order: the editor's, and a person's Ctrl-C."""
PARENT_POLL_SECONDS = 2.0


def exit_on_signal() -> None:
    """For as long as nothing is open that would have to be closed."""
    for number in STOPPING:
        signal.signal(number, lambda _number, _frame: sys.exit(0))


def remember_signals() -> list[int]:
    """Those that come before somebody can act upon them, in the list that is returned."""
    remembered: list[int] = []

    def remember(number: int, _frame: Any) -> None:
        remembered.append(number)

    for number in STOPPING:
        signal.signal(number, remember)
    return remembered


def leave(code: int) -> NoReturn:
    """End the process once everything of it is closed: its threads have ended and what was printed is out.

    The interpreter would now take its modules apart, object by object: a sixth of the CPU of a short run.
    """
    import contextlib  # noqa: PLC0415 - the light path does not wait for it
    import threading  # noqa: PLC0415 - the light path does not wait for it

    for thread in threading.enumerate():
        # as the interpreter does it: what still writes a file is waited for
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            # who reads our stderr may have gone
            with contextlib.suppress(OSError):
                stream.flush()
    os._exit(code)


async def stop_on_signal(stop: Callable[[], None], remembered: list[int]) -> None:
    """Call `stop` for each of `STOPPING`, until cancelled; at once when one was `remembered`."""
    import anyio  # noqa: PLC0415 - the light path does not wait for it

    with anyio.open_signal_receiver(*STOPPING) as signals:
        if remembered:
            stop()
        async for _number in signals:
            stop()


async def stop_on_parent_death(parent: int, stop: Callable[[], None]) -> None:
    """Call `stop` when our parent is not `parent` any more."""
    import anyio  # noqa: PLC0415 - the light path does not wait for it

    while os.getppid() == parent:  # noqa: ASYNC110 - the kernel has no event for it that survives exec wrappers
        await anyio.sleep(PARENT_POLL_SECONDS)
    stop()
