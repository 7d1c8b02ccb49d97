"""Writing to what a parent may hand us as stdout, without blocking and without touching its mode."""

import os
import pty
import resource
import socket
import tty
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from acp_bridge.rpc.sender import Sender, sender_for


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


@contextmanager
def unix_socket() -> Iterator[tuple[int, int]]:
    theirs, ours = socket.socketpair()
    with theirs, ours:
        yield theirs.fileno(), ours.fileno()


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def fill(sender: Sender) -> int:
    """Send until there is no room; the number of bytes taken."""
    data = memoryview(b"x" * 65536)
    taken = 0
    try:
        while True:
            taken += sender.send(data)
    except BlockingIOError:
        return taken


def assert_it_never_blocks(sender: Sender, *, reader: int, writer: int) -> None:
    taken = fill(sender)
    assert os.get_blocking(writer)
    while taken:
        taken -= len(os.read(reader, taken))
    assert sender.send(memoryview(b"again")) == 5
    assert os.read(reader, 100) == b"again"
    sender.close()
    os.fstat(writer)


@pytest.mark.parametrize("ends", [pipe, unix_socket, terminal])
def test_a_full_descriptor_raises_instead_of_blocking_and_keeps_its_mode(ends):
    with ends() as (reader, writer):
        assert_it_never_blocks(sender_for(writer), reader=reader, writer=writer)


def test_a_pipe_that_cannot_be_opened_anew_is_polled():
    with pipe() as (reader, writer):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            sender = sender_for(writer)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert sender.watch_fd == writer
        assert_it_never_blocks(sender, reader=reader, writer=writer)


def test_a_file_takes_everything(tmp_path):
    fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"y")
    sender = sender_for(fd)
    data = memoryview(b"x" * 10_000)
    while data:
        data = data[sender.send(data) :]
    sender.close()
    os.close(fd)
    assert (tmp_path / "out").read_bytes() == b"y" + b"x" * 10_000


def test_a_pipe_that_nobody_reads_any_more_is_a_broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    sender = sender_for(writer)
    with pytest.raises(BrokenPipeError):
        sender.send(memoryview(b"x"))
    sender.close()
    os.close(writer)
