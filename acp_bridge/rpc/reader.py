"""Reads a descriptor in pieces, without blocking the event loop and without changing the descriptor's mode.

May not know: what the bytes mean. Invariants: O_NONBLOCK is never set (the description may be shared with the parent),
so a piece is read only in the very callback that the selector has made for it; the stream ends at EOF and at any error
of the descriptor, since both say that the sender is gone.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator

import anyio.to_thread

_PIECE = 256 * 1024


async def read_chunks(fd: int) -> AsyncGenerator[bytes]:
    """Yield what arrives on `fd`, never empty, until its end. Cancellable while it waits."""
    loop = asyncio.get_running_loop()
    pieces: deque[bytes] = deque()
    arrived = asyncio.Event()

    def read() -> None:
        pieces.append(_piece(fd))
        if not pieces[-1]:
            loop.remove_reader(fd)
        arrived.set()

    try:
        # watched for as long as it is read: to begin anew with each piece costs each request two kernel calls
        loop.add_reader(fd, read)
    except PermissionError:
        # epoll refuses regular files and /dev/null; their reads are short, but a thread keeps a slow disk off the loop
        while piece := await anyio.to_thread.run_sync(_piece, fd):
            yield piece
        return
    try:
        while True:
            await arrived.wait()
            arrived.clear()
            while pieces:
                piece = pieces.popleft()
                if not piece:
                    return
                yield piece
    finally:
        loop.remove_reader(fd)


def _piece(fd: int) -> bytes:
    try:
        return os.read(fd, _PIECE)
    except OSError:
        return b""
