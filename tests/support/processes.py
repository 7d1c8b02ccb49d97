"""Processes as the kernel tells of them, without polling."""

import os
import re

import anyio


def is_alive(pid: int) -> bool:
    """True while a process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return False
    return stat[stat.rindex(b")") + 2 :].split()[0] not in {b"Z", b"X"}


async def ended(pid: int) -> None:
    """Return once the process has ended; at once when there is none."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


async def all_ended(pids: list[int]) -> None:
    """Return once every one of them has ended."""
    for pid in pids:
        await ended(pid)


def open_descriptors() -> set[str]:
    """What this process has open."""
    return set(os.listdir("/proc/self/fd"))


def numbers(text: str) -> list[int]:
    """The numbers in a command's output, such as the pids it printed."""
    return [int(number) for number in re.findall(r"\d+", text)]
