"""How bytes get into a descriptor without ever blocking the event loop.

May not know: frames, who waits. Invariant: O_NONBLOCK is never set on a description that somebody else holds — our
stdout may be the parent's terminal, or be shared with stderr (contract acp.md §1).
"""

import os
import select
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

# a pipe that polls writable takes this much without blocking
_SAFE_PIECE = min(4096, select.PIPE_BUF)


@dataclass(frozen=True, slots=True)
class Sender:
    """The writing end of one descriptor.

    `send` gives the number of bytes taken (≥ 1); it raises `BlockingIOError` when there is no room now and `OSError`
    when the reader is gone. `watch_fd` is what the event loop watches for room. `close` closes what was opened here;
    the descriptor itself stays its owner's.
    """

    send: Callable[[memoryview], int]
    watch_fd: int
    close: Callable[[], None]


def sender_for(fd: int) -> Sender:
    """The way that suits what `fd` is: pipe, terminal, socket or file. Raises `OSError` when `fd` is not open."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return _socket_sender(fd)
    if stat.S_ISREG(mode):
        # a file opened anew would be written from its beginning
        return _polled_sender(fd)
    try:
        # opening it anew makes a description of our own, which may be non-blocking
        private = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        # no /proc, or no reader any more (the first write will tell)
        return _polled_sender(fd)
    return Sender(send=partial(os.write, private), watch_fd=private, close=partial(os.close, private))


def _socket_sender(fd: int) -> Sender:
    # editors on Node hand out socket pairs; there, not blocking is a property of the call
    duplicate = socket.socket(fileno=os.dup(fd))

    def send(data: memoryview) -> int:
        return duplicate.send(data, socket.MSG_DONTWAIT)

    return Sender(send=send, watch_fd=fd, close=duplicate.close)


def _polled_sender(fd: int) -> Sender:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)

    def send(data: memoryview) -> int:
        if not poll.poll(0):
            raise BlockingIOError
        return os.write(fd, data[:_SAFE_PIECE])

    return Sender(send=send, watch_fd=fd, close=partial(poll.unregister, fd))
