"""Reading pieces from what a parent may hand us as stdin."""

import os
import socket

import anyio
import pytest

from acp_bridge.rpc.reader import read_pieces


async def read_all(fd: int) -> bytes:
    pieces = []
    with anyio.fail_after(20):
        await read_pieces(fd, pieces.append)
    return b"".join(pieces)


async def test_a_pipe_is_read_to_its_end_in_the_mode_it_has():
    reader, writer = os.pipe()
    os.write(writer, b"abc")
    os.close(writer)
    assert await read_all(reader) == b"abc"
    assert os.get_blocking(reader)
    os.close(reader)


async def test_a_regular_file_which_no_selector_takes_is_read_too(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"x" * 1_000_000)
    fd = os.open(path, os.O_RDONLY)
    assert await read_all(fd) == b"x" * 1_000_000
    os.close(fd)


@pytest.mark.parametrize("path", [os.devnull, os.sep])
async def test_the_null_device_and_a_directory_are_at_their_end(path):
    fd = os.open(path, os.O_RDONLY)
    assert await read_all(fd) == b""
    os.close(fd)


async def test_a_connection_reset_is_the_end():
    ours, theirs = socket.socketpair()
    ours.send(b"never read")
    theirs.close()
    assert await read_all(ours.fileno()) == b""
    ours.close()


async def test_waiting_for_input_is_cancellable():
    reader, writer = os.pipe()
    with anyio.move_on_after(0) as scope:
        await read_all(reader)
    assert scope.cancelled_caught
    os.close(reader)
    os.close(writer)
