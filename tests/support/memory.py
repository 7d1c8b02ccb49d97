"""How much memory this process takes at most while something happens (Linux)."""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager


def _kib(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.findall(rf"{field}:\s+(\d+) kB", file.read())[0])


def resident_kib() -> int:
    """The resident memory now."""
    gc.collect()
    return _kib("VmRSS")


@contextmanager
def growth_at_peak() -> Iterator[list[int]]:
    """Yields a list that afterwards holds one number: the KiB by which the peak was above the beginning."""
    growth: list[int] = []
    before = resident_kib()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak starts at what is resident now
    yield growth
    growth.append(_kib("VmHWM") - before)
