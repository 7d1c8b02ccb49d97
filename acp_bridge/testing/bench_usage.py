"""What a process and all that it started use, as the kernel tells of it (Linux).

May not know: agents. Invariant: a process that ends while it is looked at counts nothing; one that was not there at all
is a `BenchError`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acp_bridge.testing.bench_client import BenchError

PROC: Final = Path("/proc")
_KIB_PER_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB of the whole tree: resident now, and the sum of each process's own peak."""

    resident: float
    peak: float


def memory(pid: int, *, proc: Path = PROC) -> Memory:
    """What the tree below `pid` holds in memory. Raises `BenchError`."""
    resident = peak = 0
    for status in _each(pid, "status", proc):
        rows = dict(line.split(":", 1) for line in status.splitlines())
        # a zombie has no memory
        resident += int(rows.get("VmRSS", "0").split()[0])
        peak += int(rows.get("VmHWM", "0").split()[0])
    return Memory(resident / _KIB_PER_MIB, peak / _KIB_PER_MIB)


def cpu_seconds(pid: int, *, proc: Path = PROC) -> float:
    """CPU time of the tree below `pid`, with what has already ended in it. Raises `BenchError`."""
    ticks = 0
    for stat in _each(pid, "stat", proc):
        # utime, stime, and those of the children that were waited for; the name before them may hold anything
        ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _each(pid: int, name: str, proc: Path) -> Iterator[str]:
    found = False
    for each in _tree(pid, proc):
        try:
            text = (proc / str(each) / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = True
        yield text
    if not found:
        raise BenchError("the agent has ended, or this system has no /proc (the benchmark needs Linux)")


def _tree(pid: int, proc: Path) -> Iterator[int]:
    yield pid
    for task in (proc / str(pid) / "task").glob("*/children"):
        try:
            children = task.read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in children:
            yield from _tree(int(child), proc)
