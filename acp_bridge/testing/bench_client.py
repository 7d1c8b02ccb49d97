"""The client side of the benchmark: one agent process, frames counted as bytes.

May not know: metrics, models, which agent it is. Invariant: a frame of a stream costs a search and no parsing; whatever
the agent does — end, hang, write no newline — is a `BenchError` within the given time, and `close` leaves no process.
"""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, cast

from acp_bridge.testing.json_values import JsonObject, as_object

CHUNK: Final = b"agent_message_chunk"
MARK: Final = b"~"
"""Stands once in every delta of the benchmark's model: deltas are counted even where an agent joins them."""

_STAMP: Final = re.compile(rb"@([0-9a-f]{6,16})\|")
_READ_BYTES: Final = 1 << 18
_LINE_BYTES: Final = 1 << 26
_SHOWN: Final = 1500  # characters of stderr


class BenchError(Exception):
    """A figure that could not be had: a sentence without paths, and what the agent said last."""

    def __init__(self, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail


class NotOfferedError(BenchError):
    """The agent does not claim to be able to do what would be measured: no failure of it."""


class Client:
    """A started agent. `frames`, `deltas` and `latencies` (ns) count since the last `reset`; times are monotonic ns."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, stderr: Path, seconds: float
    ) -> None:
        self.seconds = seconds
        self.frames = 0
        self.deltas = 0
        self.others = 0
        self.last_frame = 0
        self.latencies: list[int] = []
        self.capabilities: JsonObject = {}
        self._stderr = stderr
        self._rest = bytearray()
        self._answers: dict[Any, JsonObject] = {}
        self._ids = 0
        try:
            with stderr.open("wb") as sink:
                self.started = time.monotonic_ns()
                self._process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=sink,
                    bufsize=0,
                    start_new_session=True,
                )
        except OSError as error:
            raise BenchError(f"the agent does not start: {error.strerror}") from error
        # both were asked for above
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._poll = select.poll()
        self._poll.register(self._stdout.fileno(), select.POLLIN)

    @property
    def pid(self) -> int:
        """Of the agent; also its process group."""
        return self._process.pid

    def reset(self) -> None:
        """Count from here."""
        self.frames = self.deltas = self.others = 0
        self.latencies.clear()

    def initialize(self) -> None:
        """The handshake of a client that can do nothing; `capabilities` are known afterwards."""
        capabilities: JsonObject = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params: JsonObject = {"protocolVersion": 1, "clientCapabilities": capabilities}
        result = self.call("initialize", {**params, "clientInfo": {"name": "bench", "version": "1"}})
        self.capabilities = as_object(result.get("agentCapabilities")) or {}

    def new_session(self, cwd: Path) -> str:
        """The id of a new session."""
        return str(self.call("session/new", {"cwd": str(cwd), "mcpServers": []}).get("sessionId"))

    def prompt(self, session: str, text: str) -> None:
        """Send a prompt; returns when it is answered."""
        self.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def call(self, method: str, params: JsonObject) -> JsonObject:
        """The result of a request. Raises `BenchError`: an error, the end of the agent, no answer in `seconds`."""
        self._ids += 1
        number, deadline = self._ids, time.monotonic() + self.seconds
        self._send({"id": number, "method": method, "params": params})
        while number not in self._answers:
            if not self._poll.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise BenchError(f"no answer to {method} within {self.seconds:g} s", self._last_words())
            data = os.read(self._stdout.fileno(), _READ_BYTES)
            if not data:
                code = self._process.wait()
                raise BenchError(f"the agent ended with {code} before it answered {method}", self._last_words())
            self._take(data, time.monotonic_ns())
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BenchError(f"{method} was answered with an error", json.dumps(answer["error"])[:_SHOWN])
        return as_object(answer.get("result")) or {}

    def close(self, grace: float) -> None:
        """Close its stdin and give it `grace` seconds to end by itself; then its process group is ended."""
        self._stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._process.wait(grace)
                break
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, number)
        self._process.wait()
        # what it started and left behind
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._stdout.close()

    def _send(self, frame: JsonObject) -> None:
        # reading will tell how it ended; a line fits into the pipe: never more than one request is open
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    def _take(self, data: bytes, now: int) -> None:
        end = data.rfind(b"\n") + 1
        if end == 0:
            self._rest += data
            if len(self._rest) > _LINE_BYTES:
                raise BenchError(f"a line of more than {_LINE_BYTES >> 20} MiB", self._last_words())
            return
        block = bytes(self._rest) + data[:end]
        self._rest = bytearray(data[end:])
        chunks = block.count(CHUNK)
        if chunks:
            self.last_frame = now
            self.deltas += block.count(MARK)
            self.latencies += [now - int(stamp, 16) for stamp in _STAMP.findall(block)]
        if chunks == block.count(b"\n") and b'"result"' not in block and b'"error"' not in block:
            self.frames += chunks
            return
        for line in block.splitlines():
            if CHUNK in line and b'"method"' in line:
                self.frames += 1
            else:
                self._dispatch(line)

    def _dispatch(self, line: bytes) -> None:
        try:
            frame = as_object(json.loads(line))
        except ValueError:
            frame = None
        if frame is None or "id" not in frame:
            self.others += 1
        elif "method" not in frame:
            self._answers[frame["id"]] = frame
        elif frame["method"] == "session/request_permission":
            option = frame["params"]["options"][0]["optionId"]
            self._send({"id": frame["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}})
        else:
            self._send({"id": frame["id"], "error": {"code": -32601, "message": "a client of a benchmark"}})

    def _last_words(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")[-_SHOWN:]
