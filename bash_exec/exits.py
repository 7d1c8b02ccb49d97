"""The exit of a child, awaited on the loop: a pidfd, or a thread without one (contract tools-and-bash.md §4).

May not know: what the child is for. Invariant: the child is reaped here and nowhere else, so that its number cannot be
another's meanwhile.
"""

import asyncio
import os
import subprocess

import anyio.to_thread


async def has_ended(process: subprocess.Popen[bytes], *, within: float, portable: bool) -> bool:
    """Wait for the exit, at most `within` seconds; True, and the child reaped, when it has come.

    `portable`: without a pidfd, as on a system or a kernel that has none, or when no descriptor is left for one.
    """
    handle = None if portable else _handle_of(process.pid)
    if handle is None:
        return await anyio.to_thread.run_sync(_wait, process, within)
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(handle, over.set)
    timer = loop.call_later(within, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
        loop.remove_reader(handle)
        os.close(handle)
    return process.poll() is not None


def _handle_of(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wait(process: subprocess.Popen[bytes], within: float) -> bool:
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True
