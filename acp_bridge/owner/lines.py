"""One line over a socket that does not block.

May not know: what is in it. Invariant: no more is kept than was allowed; whoever calls sets the time limit.
"""

import socket

import anyio


class NoLineError(Exception):
    """The other side sent too much, or ended before its line did."""


async def read_line(connection: socket.socket, *, limit: int) -> bytes:
    """The first line, its end included. Raises `NoLineError`, `OSError`."""
    kept = bytearray()
    while b"\n" not in kept:
        if len(kept) >= limit:
            raise NoLineError(f"more than {limit} bytes")
        await anyio.wait_readable(connection)
        piece = connection.recv(limit - len(kept))
        if not piece:
            raise NoLineError("the connection ended early")
        kept += piece
    return bytes(kept[: kept.index(b"\n") + 1])


async def write_all(connection: socket.socket, data: bytes) -> None:
    """Send all of it. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        await anyio.wait_writable(connection)
        rest = rest[connection.send(rest) :]
