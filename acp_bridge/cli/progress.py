"""A bar for what takes a while.

May not know: what is done. Invariant: there is one only where a person looks, and only for long work; it is gone
afterwards.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TextIO

LONG: Final = 4_000_000
"""Bytes; what concerns fewer is done before anybody could read a bar."""

Advance = Callable[[int], None]
"""Takes how much is done by now."""


@contextmanager
def progress(stream: TextIO, what: str, *, total: int, size: int) -> Generator[Advance]:
    """Call what it yields as the work goes on, which ends at `total`; `size` is how many bytes it concerns."""
    if size < LONG or not stream.isatty():
        yield _nothing
        return
    from rich.progress import Progress  # noqa: PLC0415 - short work need not wait for it

    from acp_bridge.cli.screen import console_on  # noqa: PLC0415 - it imports rich

    # drawn by our own calls: no thread draws it, and a step that shows nothing costs nothing
    with Progress(console=console_on(stream), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=total)
        shown = 0

        def advance(done: int) -> None:
            nonlocal shown
            if (done - shown) * 100 >= total:
                shown = done
                bar.update(task, completed=done, refresh=True)

        yield advance


def _nothing(_done: int) -> None:
    return
