"""Claims file descriptors 0 and 1 for the protocol.

May not know: frames, the event loop. It imports nothing but `os` and `typing`, because it runs before everything else.
Invariant: after `claim`, whatever prints to fd 1 (a stray print, a warning, a C library, a child) lands on stderr, and
whatever reads fd 0 finds its end; the protocol's own descriptors are private, close-on-exec and above 2
(contract acp.md §1).
"""

import os
from typing import NamedTuple


class Stdio(NamedTuple):
    """The protocol's descriptors: read from one, write to the other. Their blocking mode is as the parent left it."""

    read_fd: int
    write_fd: int


def claim() -> Stdio:
    """Take over fd 0 and fd 1. Call it once, before any other code can print. Raises `OSError` (out of descriptors)."""
    _fill_closed()
    # os.dup gives close-on-exec descriptors; with 0-2 occupied they are above 2
    stdio = Stdio(read_fd=os.dup(0), write_fd=os.dup(1))
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return stdio


def _fill_closed() -> None:
    """Put /dev/null on each of 0-2 that is closed, lest a file or socket of ours become a standard stream."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # the lowest free descriptor is `fd`, since all below it are open by now
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - positional in os
