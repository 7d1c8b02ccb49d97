"""Connections on asyncio's transports: order, back-pressure, ends, TLS (the seam of the HTTP library)."""

import asyncio
import socket
import struct
from contextlib import asynccontextmanager

import anyio
import pytest

from agent_loop.llm.openai_compat.network import LIMIT, Network, httpcore2
from tests.support.loopback_tls import client_context, server_context


@asynccontextmanager
async def connected(serve, **tls):
    """A connection to a server that runs `serve(reader, writer)` for it."""
    handlers = []

    async def handle(reader, writer):
        handlers.append(done := asyncio.Event())
        await serve(reader, writer)
        done.set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, **tls)
    async with server:
        with anyio.fail_after(20):
            connection = await Network().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1], timeout=10)
            try:
                yield connection
            finally:
                await connection.aclose()
            for done in handlers:
                await done.wait()


async def everything(connection):
    pieces = []
    while piece := await connection.read(1):
        pieces.append(piece)
    return pieces


async def test_what_has_arrived_comes_in_one_read_and_then_the_end():
    go_on = asyncio.Event()

    async def serve(_reader, writer):
        writer.write(b"a")
        await go_on.wait()
        writer.write(b"bc")
        writer.close()

    async with connected(serve) as connection:
        assert await connection.read(1) == b"a"
        assert not connection.get_extra_info("is_readable")
        go_on.set()
        while not connection._ended:
            await anyio.lowlevel.checkpoint()
        assert connection.get_extra_info("is_readable")
        assert await everything(connection) == [b"bc"]
        assert connection.get_extra_info("is_readable")
        assert connection.get_extra_info("ssl_object") is None


async def test_pieces_are_joined_in_their_order():
    async def serve(reader, writer):
        await reader.read(1)
        writer.close()

    async with connected(serve) as connection:
        connection.data_received(b"one ")
        connection.data_received(b"two")
        assert await connection.read(1) == b"one two"
        await connection.write(b"x")


async def test_a_server_that_nobody_listens_to_is_held_up_and_nothing_is_lost():
    total = 8 * LIMIT

    async def serve(_reader, writer):
        writer.write(b"x" * total)
        writer.close()

    async with connected(serve) as connection:
        while connection._transport.is_reading():
            await anyio.lowlevel.checkpoint()
        assert connection._size < total // 2
        assert sum(map(len, await everything(connection))) == total


async def test_a_large_write_waits_until_it_has_left():
    got = 0

    async def serve(reader, writer):
        nonlocal got
        while piece := await reader.read(1 << 20):
            got += len(piece)
            if got == 16 * LIMIT:
                break
        writer.close()

    async with connected(serve) as connection:
        await connection.write(b"y" * 16 * LIMIT)
        assert connection._transport.get_write_buffer_size() < LIMIT
        assert await everything(connection) == []
    assert got == 16 * LIMIT


async def test_a_broken_connection_is_an_error_of_the_library_in_both_directions():
    async def serve(reader, writer):
        await reader.read(1)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with connected(serve) as connection:
        await connection.write(b"x")
        with pytest.raises(httpcore2.ReadError, match="reset"):
            await everything(connection)
        with pytest.raises(httpcore2.WriteError, match="closed"):
            await connection.write(b"x")


async def test_a_port_where_nobody_listens_and_a_time_that_is_up_are_told_apart():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(httpcore2.ConnectError):
            await Network().connect_tcp("127.0.0.1", port)
        with pytest.raises(httpcore2.ConnectTimeout):
            await Network().connect_tcp("127.0.0.1", port, timeout=0)


async def test_what_is_encrypted_is_read_and_written_like_everything_else():
    async def serve(reader, writer):
        writer.write(await reader.readexactly(5))
        writer.close()

    async with connected(serve, ssl=server_context()) as plain:
        connection = await plain.start_tls(client_context(), server_hostname="localhost", timeout=10)
        assert connection.get_extra_info("ssl_object") is not None
        await connection.write(b"hello")
        assert b"".join(await everything(connection)) == b"hello"


async def test_a_certificate_that_is_not_trusted_and_a_silent_server_are_told_apart():
    async def serve(reader, writer):
        await reader.read()
        writer.close()

    async with connected(serve, ssl=server_context()) as connection:
        with pytest.raises(httpcore2.ConnectError, match=r"(?i)certificate|hostname"):
            await connection.start_tls(client_context(), server_hostname="elsewhere.invalid")
    async with connected(serve) as connection:
        with pytest.raises(httpcore2.ConnectTimeout):
            await connection.start_tls(client_context(), server_hostname="localhost", timeout=0.01)
