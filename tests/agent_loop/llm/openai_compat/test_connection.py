"""One connection: order, back-pressure, ends, and what is no answer (under the adapter, contract llm.md §5)."""

import asyncio
import socket
import struct
from contextlib import asynccontextmanager

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.openai_compat.connection import HEAD_LIMIT, LIMIT, Connection, HttpError

REQUEST = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n"


class RecordingTransport(asyncio.Transport):
    """The network's double: keeps what is written, and tells the connection when it is closed."""

    def __init__(self, connection):
        super().__init__()
        self.connection = connection
        self.written = b""
        self.reading = True
        self.aborted = False
        self.unwritten = 0
        connection.connection_made(self)

    def write(self, data):
        self.written += data

    def get_write_buffer_size(self):
        return self.unwritten

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def abort(self):
        if not self.aborted:
            self.aborted = True
            self.connection.connection_lost(None)


@asynccontextmanager
async def asked():
    """A connection that has sent a request, and the task that waits for the answer's head."""
    connection = Connection()
    transport = RecordingTransport(connection)
    asking = asyncio.ensure_future(connection.request(REQUEST))
    await anyio.lowlevel.checkpoint()
    with anyio.fail_after(20):
        yield connection, transport, asking
        await connection.aclose()
        await asyncio.wait([asking])


async def everything(connection):
    data = b""
    while piece := await connection.read():
        data += piece
    return data


async def test_an_answer_is_a_status_headers_and_a_body_and_the_next_request_goes_the_same_way():
    async with asked() as (connection, transport, asking):
        assert not connection.reusable
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Type: a\r\ncontent-length: 4\r\n\r\nab")
        await asking
        assert (connection.status, connection.headers) == (200, {"content-type": "a", "content-length": "4"})
        assert await connection.read() == b"ab"
        assert not connection.reusable
        transport.unwritten = 1
        connection.data_received(b"cd")
        assert not connection.reusable
        assert await everything(connection) == b"cd"
        assert not connection.reusable
        transport.unwritten = 0
        assert connection.reusable
        again = asyncio.ensure_future(connection.request(REQUEST))
        await anyio.lowlevel.checkpoint()
        connection.data_received(b"HTTP/1.1 204 No Content\r\n\r\n")
        await again
        assert (connection.status, connection.headers, await everything(connection)) == (204, {}, b"")
        assert connection.reusable
        assert transport.written == REQUEST * 2
    assert not connection.reusable


BODIES = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
FRAMINGS = st.sampled_from(["length", "chunked", "close"])


def answer(pieces, framing):
    """The bytes of an answer, behind one that says to go on waiting."""
    body = b"".join(pieces)
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    if framing == "chunked":
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        return early + b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n" + chunks + b"0\r\nx-late: 1\r\n\r\n"
    if framing == "length":
        return early + b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    return early + b"HTTP/1.1 200 OK\r\n\r\n" + body


@given(BODIES, FRAMINGS, st.data())
async def test_an_answer_is_the_same_however_its_bytes_are_cut(pieces, framing, data):
    sent = answer(pieces, framing)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    async with asked() as (connection, _, asking):
        for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            if start < end:
                connection.data_received(sent[start:end])
        if framing == "close":
            connection.connection_lost(None)
        await asking
        assert connection.status == 200
        assert "x-late" not in connection.headers
        assert "link" not in connection.headers
        assert await everything(connection) == b"".join(pieces)
        assert connection.reusable is (framing != "close")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * (HEAD_LIMIT // 6), "longer than 256 KiB"),
    ],
)
async def test_what_is_no_answer_closes_the_connection_and_says_why(said, why):
    async with asked() as (connection, transport, asking):
        connection.data_received(said)
        with pytest.raises(HttpError, match=why):
            await asking
        assert transport.aborted
        assert not connection.reusable


async def test_an_answer_that_breaks_off_fails_behind_what_has_come_of_it():
    async with asked() as (connection, _, asking):
        connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        connection.connection_lost(None)
        await asking
        assert await connection.read() == b"half"
        with pytest.raises(HttpError, match="the server closed the connection"):
            await connection.read()


@pytest.mark.parametrize("framing", ["length", "close"])
async def test_a_connection_that_is_reset_is_no_end_of_a_body(framing):
    async with asked() as (connection, _, asking):
        connection.data_received(answer([b"ab"], framing)[:-1])
        connection.connection_lost(ConnectionResetError())
        await asking
        assert await connection.read() == b"a"
        with pytest.raises(HttpError, match="ConnectionResetError"):
            await connection.read()


async def test_who_asked_for_nothing_takes_nothing():
    connection = Connection()
    transport = RecordingTransport(connection)
    assert connection.reusable
    connection.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert transport.aborted
    assert not connection.reusable


@pytest.mark.parametrize(
    "more", [b"HTTP/1.1 500 No\r\ncontent-length: 1\r\nx-more: 1\r\n\r\nx", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
async def test_a_second_answer_to_one_request_is_not_taken_for_that_of_the_next(more):
    async with asked() as (connection, _, asking):
        connection.data_received(answer([b"ab"], "length") + more)
        await asking
        assert (connection.status, connection.headers) == (200, {"content-length": "2"})
        assert await everything(connection) == b"ab"
        assert not connection.reusable


@pytest.mark.parametrize("more", [b"", b"rest"])
async def test_a_server_that_wants_to_close_is_not_asked_again(more):
    async with asked() as (connection, _, asking):
        connection.data_received(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok" + more)
        await asking
        assert await everything(connection) == b"ok"
        assert not connection.reusable


async def test_lines_that_end_without_a_carriage_return_are_lines():
    async with asked() as (connection, _, asking):
        connection.data_received(b"HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\ndata: x\n\n")
        await asking
        assert connection.headers == {"content-type": "text/event-stream"}
        assert await connection.read() == b"data: x\n\n"


async def test_a_server_that_nobody_listens_to_is_held_up():
    async with asked() as (connection, transport, asking):
        connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (LIMIT + 1))
        await asking
        connection.data_received(b"x" * (LIMIT - 1))
        assert transport.reading
        connection.data_received(b"x")
        assert not transport.reading
        assert len(await connection.read()) == LIMIT
        assert transport.reading
        connection.data_received(b"x")
        assert await everything(connection) == b"x"


async def test_a_request_that_is_given_up_can_be_closed_behind():
    async with asked() as (connection, transport, asking):
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
        assert not connection.reusable
        await connection.aclose()
        assert transport.aborted


async def test_over_a_real_socket_a_large_answer_arrives_whole_and_a_reset_is_told():
    total = 8 * LIMIT
    reset = asyncio.Event()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (total + 1) + b"x" * total)
        await writer.drain()
        await reset.wait()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        with anyio.fail_after(20):
            loop = asyncio.get_running_loop()
            port = server.sockets[0].getsockname()[1]
            _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
            await connection.request(REQUEST)
            while connection.transport.is_reading():
                await anyio.lowlevel.checkpoint()
            got = 0
            while got < total:
                got += len(await connection.read())
            reset.set()
            with pytest.raises(HttpError, match="reset"):
                await connection.read()
            await connection.aclose()
