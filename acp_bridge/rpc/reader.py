"""Reads a descriptor in pieces, without blocking the event loop and without changing the descriptor's mode.

May not know: what the bytes mean. Invariant: O_NONBLOCK is never set (the description may be shared with the parent);
the stream ends at EOF and at any error of the descriptor, since both say that the sender is gone.
"""

import os
from collections.abc import AsyncGenerator

import anyio
import anyio.to_thread

_PIECE = 256 * 1024


async def read_chunks(fd: int) -> AsyncGenerator[bytes]:
    """Yield what arrives on `fd`, never empty, until its end. Cancellable while it waits."""
    while piece := await _read(fd):
        yield piece


async def _read(fd: int) -> bytes:
    try:
        await anyio.wait_readable(fd)
    except PermissionError:
        # epoll refuses regular files and /dev/null; their reads are short, but a thread keeps a slow disk off the loop
        return await anyio.to_thread.run_sync(_piece, fd)
    return _piece(fd)


def _piece(fd: int) -> bytes:
    try:
        return os.read(fd, _PIECE)
    except OSError:
        return b""
