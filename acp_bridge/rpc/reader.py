"""Reads a descriptor in pieces, without blocking the event loop and without changing the descriptor's mode.

May not know: what the bytes mean. Invariants: O_NONBLOCK is never set (the description may be shared with the parent),
so a piece is read only in the very callback that the selector has made for it; the stream ends at EOF and at any error
of the descriptor, since both say that the sender is gone.
"""

import asyncio
import os
from collections.abc import Callable

import anyio
import anyio.to_thread

_PIECE = 256 * 1024


async def read_pieces(fd: int, take: Callable[[bytes], None]) -> None:
    """Give `take` what arrives on `fd`, never empty, until its end. Cancellable while it waits.

    `take` is called in the callback that has read the piece: handed to a task, each would wait for another turn of the
    loop.
    """
    loop = asyncio.get_running_loop()
    ended = anyio.Event()

    def read() -> None:
        if piece := _piece(fd):
            take(piece)
        else:
            loop.remove_reader(fd)
            ended.set()

    try:
        # watched for as long as it is read: to begin anew with each piece costs each request two kernel calls
        loop.add_reader(fd, read)
    except PermissionError:
        # epoll refuses regular files and /dev/null; their reads are short, but a thread keeps a slow disk off the loop
        while piece := await anyio.to_thread.run_sync(_piece, fd):
            take(piece)
        return
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)


def _piece(fd: int) -> bytes:
    try:
        return os.read(fd, _PIECE)
    except OSError:
        return b""
