"""`session/load` of what months of work leave behind, as a client that only counts sees it."""

import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.support.agent_process import agent_home
from tests.support.official import agent_command
from tests.support.stored_log import SESSION, speech, work, write_log

MIB = 1 << 20
PEAK_MIB = 90


class Counter:
    """One agent and the numbers of what it sends; nothing of it is kept."""

    def __init__(self, popen: subprocess.Popen[bytes], cwd: str, piece: int) -> None:
        self._popen = popen
        self._cwd = cwd
        self._piece = piece
        self._pieces: list[bytes] = []

    def load(self) -> tuple[int, int]:
        """Bytes of all frames up to the response, and characters of all messages."""
        params = {"sessionId": SESSION, "cwd": self._cwd, "mcpServers": []}
        self._send({"id": 2, "method": "session/load", "params": params})
        count, said = 0, 0
        for line in self._lines():
            count += len(line)
            frame = json.loads(line)
            if "result" in frame:
                return count, said
            update = frame["params"]["update"]
            if update["sessionUpdate"] == "agent_message_chunk":
                said += len(update["content"]["text"])
        raise AssertionError("no response")

    def initialize(self) -> None:
        self._send({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        next(self._lines())

    def peak_mib(self) -> float:
        status = Path(f"/proc/{self._popen.pid}/status").read_text(encoding="ascii")
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024

    def _send(self, frame: dict[str, Any]) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
        self._popen.stdin.flush()

    def _lines(self) -> Iterator[bytes]:
        assert self._popen.stdout is not None
        while True:
            piece = os.read(self._popen.stdout.fileno(), self._piece)
            *lines, rest = piece.split(b"\n")
            for line in lines:
                yield b"".join((*self._pieces, line, b"\n"))
                self._pieces.clear()
            self._pieces.append(rest)


@contextmanager
def counting(root: Path, *, piece: int = MIB) -> Iterator[Counter]:
    """`piece`: bytes that the client reads at once, which is also all that the pipe holds."""
    home = agent_home(root)
    command = agent_command()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home.cwd, env=home.env, bufsize=0
    ) as popen:
        assert popen.stdout is not None
        fcntl.fcntl(popen.stdout, fcntl.F_SETPIPE_SZ, max(piece, 4096))
        counter = Counter(popen, home.cwd, piece)
        counter.initialize()
        yield counter
        assert popen.stdin is not None
        popen.stdin.close()
        assert popen.wait() == 0


@pytest.mark.parametrize("share", [20, pytest.param(1, marks=pytest.mark.long)])
async def test_a_session_of_45_000_deltas_and_1_000_long_outputs_is_shown_in_8_mib_of_frames(tmp_path, share):
    home = agent_home(tmp_path)
    write_log(home.sessions, home.cwd, work(deltas=45_000 // share, calls=1_000 // share, output=150_000))
    with counting(tmp_path) as client:
        with anyio.fail_after(30):
            size, said = await anyio.to_thread.run_sync(client.load)
        assert size <= 8 * MIB / share
        _size, again = await anyio.to_thread.run_sync(client.load)
        assert again == said
        assert said == sum(len(f" word {number}") for number in range(45)) * 1_000 // share
        assert client.peak_mib() <= PEAK_MIB


async def test_a_client_that_reads_slowly_makes_a_load_wait_and_not_grow(tmp_path):
    home = agent_home(tmp_path)
    write_log(home.sessions, home.cwd, speech(deltas=150, size=200_000))
    with counting(tmp_path, piece=4096) as client:
        _size, said = await anyio.to_thread.run_sync(client.load)
        assert said == 30_000_000
        assert client.peak_mib() <= PEAK_MIB
