"""A virtual editor: the agent as a real child process, and the client side of the wire (contract snapshots.md §2, §3).

May not know: scenarios, goldens, what the agent is. Invariant: stdout is kept byte for byte; every frame of both sides
is recorded in the order in which it was written or read; every wait ends — with the frame, with the agent's exit, or
after `seconds` — and what is alive can always be killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.json_values import JsonObject, as_object, encode
from acp_bridge.testing.pacing import STEADY, Pacing

_READ_SIZE = 1 << 16


class EditorError(Exception):
    """The run left its script: a wait that ended without its frame, an answer that could not be given."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One frame of the wire. `at` counts seconds from the editor's making; two equal frames are equal at any time."""

    sender: Literal["client", "agent"]
    frame: JsonObject
    at: float = field(default=0.0, compare=False)


class Editor:
    """Starts the agent (several times, for restarts) and talks to it. Not for several threads.

    `began` is the moment (`time.monotonic`) from which its entries count.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stderr: Path,
        answers: Answers | None = None,
        seconds: float = 30.0,
        pacing: Pacing = STEADY,
    ) -> None:
        self.entries: list[Entry] = []
        self.raw = bytearray()
        self.exits: list[int] = []
        self.failures: list[str] = []
        self._command = list(command)
        self._cwd = cwd
        self._env = dict(env)
        self._stderr = stderr
        self._answers = answers or Answers({})
        self._seconds = seconds
        self._pacing = pacing
        self._pauses: list[threading.Timer] = []
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._methods: dict[int, str] = {}
        self._running: tuple[subprocess.Popen[bytes], threading.Thread] | None = None
        self._stdin = -1
        self._ended = True
        self.began = time.monotonic()

    def start(self) -> None:
        """Start a process. Raises `EditorError` when the command cannot be run."""
        child_stdin, self._stdin = os.pipe()
        stdout, child_stdout = os.pipe()
        try:
            with self._stderr.open("ab") as stderr:
                process = subprocess.Popen(
                    self._command,
                    cwd=self._cwd,
                    env=self._env,
                    stdin=child_stdin,
                    stdout=child_stdout,
                    stderr=stderr,
                    start_new_session=True,  # one signal reaches it and what it left in its group
                )
        except OSError as error:
            os.close(stdout)
            self._close_stdin()
            raise EditorError(f"{self._command[0]}: {error}") from error
        finally:
            os.close(child_stdin)
            os.close(child_stdout)
        self._ended = False
        reader = threading.Thread(target=self._read, args=(stdout,), name="agent stdout", daemon=True)
        self._running = (process, reader)
        reader.start()

    def stop(self) -> int:
        """Close stdin, await the exit, return its code. Raises `EditorError` when it does not come."""
        self._close_stdin()
        if self._running is None:
            raise EditorError("the agent is not running")
        process, _reader = self._running
        try:
            process.wait(self._seconds)
        except subprocess.TimeoutExpired as error:
            raise EditorError(f"the agent did not exit within {self._seconds:g} s of the end of its input") from error
        self.kill()
        return process.returncode

    def kill(self) -> None:
        """End what is alive of the agent and its process group, and await it. Idempotent."""
        if self._running is None:
            return
        process, reader = self._running
        self._running = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self._close_stdin()
        self.exits.append(process.wait())
        # a child in a session of its own may still hold stdout; its bytes would come too late to count
        reader.join(self._seconds)
        for timer in self._pauses:
            timer.cancel()
            timer.join()
        self._pauses.clear()

    def request(self, method: str, params: JsonObject) -> int:
        """Send a request; returns its id: 1, 2, … over all processes."""
        request_id = len(self._methods) + 1
        self._methods[request_id] = method
        self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return request_id

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def wait(
        self, matches: Callable[[JsonObject], bool], *, since: int, what: str, seconds: float | None = None
    ) -> tuple[int, JsonObject]:
        """The first agent frame from entry `since` on that `matches`, and its index. Raises `EditorError`."""
        limit = self._seconds if seconds is None else seconds
        scanned = since
        found: tuple[int, JsonObject] | None = None

        def scan() -> bool:
            nonlocal scanned, found
            for index in range(scanned, len(self.entries)):
                entry = self.entries[index]
                if entry.sender == "agent" and matches(entry.frame):
                    found = (index, entry.frame)
                    return True
            scanned = len(self.entries)
            return self._ended or bool(self.failures)

        with self._changed:
            in_time = self._changed.wait_for(scan, limit)
        if found is not None:
            return found
        if self.failures:
            raise EditorError(self.failures[0])
        raise EditorError(f"no {what} within {limit:g} s" if not in_time else f"the agent ended before its {what}")

    def response(self, request_id: int, *, seconds: float | None = None) -> JsonObject:
        """The response frame to `request_id`. Raises `EditorError`."""
        what = f"response to {self._methods[request_id]}"
        return self.wait(lambda frame: is_response(frame, request_id), since=0, what=what, seconds=seconds)[1]

    def expect_quiet(self, seconds: float) -> None:
        """Raises `EditorError` when a frame arrives within `seconds`."""
        before = len(self.entries)
        with self._changed:
            self._changed.wait_for(lambda: len(self.entries) > before, seconds)
            if len(self.entries) > before:
                raise EditorError(f"expected quiet, got {encode(self.entries[before].frame)[:300]}")

    def _now(self) -> float:
        return time.monotonic() - self.began

    def _close_stdin(self) -> None:
        descriptor, self._stdin = self._stdin, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _send(self, frame: JsonObject) -> None:
        data = (encode(frame) + "\n").encode()
        with self._writing:
            with self._changed:
                self.entries.append(Entry("client", frame, self._now()))
            try:
                for piece in self._pacing.pieces(data):
                    rest = memoryview(piece)
                    while rest:
                        rest = rest[os.write(self._stdin, rest) :]
            except OSError:
                # it has gone: whoever waits for an answer is told so
                return

    def _read(self, descriptor: int) -> None:
        rest = b""
        while chunk := os.read(descriptor, _READ_SIZE):
            self.raw += chunk
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._receive(line)
        os.close(descriptor)
        with self._changed:
            if rest:
                self.failures.append(f"stdout ends in the middle of a line: {rest[:200]!r}")
            self._ended = True
            self._changed.notify_all()

    def _receive(self, line: bytes) -> None:
        try:
            frame = as_object(json.loads(line.decode("utf-8"), parse_constant=_no_constant))
        except ValueError:
            frame = None
        with self._changed:
            if frame is None:
                self.failures.append(f"stdout holds a line that is no JSON object: {line[:200]!r}")
            else:
                self.entries.append(Entry("agent", frame, self._now()))
            self._changed.notify_all()
        for answer in self._answers_to(frame or {}):
            self._answer({"jsonrpc": "2.0", **answer})

    def _answer(self, frame: JsonObject) -> None:
        pause = self._pacing.pause()
        if not pause:
            self._send(frame)
            return
        timer = threading.Timer(pause, self._send, [frame])
        self._pauses.append(timer)
        timer.start()

    def _answers_to(self, frame: JsonObject) -> list[JsonObject]:
        if "method" in frame:
            try:
                answer = self._answers.answer(frame) if "id" in frame else None
            except ValueError as error:
                with self._changed:
                    self.failures.append(str(error))
                    self._changed.notify_all()
                return []
            return [answer] if answer else []
        # an id may be anything that a broken agent writes
        asked = self._methods.get(frame["id"]) if type(frame.get("id")) is int else None
        return self._answers.late() if asked == "session/prompt" else []


def is_response(frame: JsonObject, request_id: int) -> bool:
    """Whether this frame answers the editor's request of that id."""
    return "method" not in frame and type(frame.get("id")) is int and frame["id"] == request_id


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
