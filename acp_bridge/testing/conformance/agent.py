"""One process of the agent under test, with a client on its wire that may say anything.

May not know: rules. Invariant: every frame of both sides is recorded, also what was written as raw bytes; a line of
stdout that is no JSON object is kept as `noise` and disturbs no wait; every wait ends.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from acp_bridge.testing.conformance.policy import Policy, PolicyAnswers
from acp_bridge.testing.conformance.processes import descendants, inhabitants, parents
from acp_bridge.testing.conformance.verdicts import Broken, NotProvoked
from acp_bridge.testing.editor import Editor, EditorError, Entry
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode
from acp_bridge.testing.normalise import update_of

_READ_SIZE = 1 << 16
_AUTH_REQUIRED = -32000


class LabAgent(Editor):
    """A started agent. Its waits raise `EditorError`, which the engine reports as a broken rule.

    `initialized` is the result of initialize, `{}` when it was not sent. `noise` holds the lines of stdout that are no
    JSON objects. `others` are the pids of the agents that run beside it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stderr: Path,
        policy: Policy,
        seconds: float,
        root: Path,
        others: Callable[[], set[int]] = set,
    ) -> None:
        super().__init__(command, cwd=cwd, env=env, stderr=stderr, answers=PolicyAnswers(policy), seconds=seconds)
        self.initialized: JsonObject = {}
        self.noise: list[bytes] = []
        self._root = root
        self._others = others
        self._reading = threading.Event()
        self._reading.set()
        self._stdout_is_closed = False
        self._ends_by_itself = True
        self._unfinished = bytearray()  # of what was written as raw bytes
        self._seen_children: set[int] = set()

    # what the client writes

    def request(self, method: str, params: JsonObject | None = None) -> int:
        """Send a request; returns its id."""
        return super().request(method, params or {})

    def send(self, frame: Any) -> None:
        """Send any JSON value as a line."""
        self.write((encode(frame) + "\n").encode())

    def write(self, data: bytes) -> None:
        """Write bytes as they are. What of them makes a line with an object is recorded as a frame."""
        with self._writing:
            self._unfinished += data
            if b"\n" in data:
                *lines, rest = bytes(self._unfinished).split(b"\n")
                self._unfinished = bytearray(rest)
                with self._changed:
                    self.entries += [Entry("client", frame) for frame in map(_object, lines) if frame is not None]
            left = memoryview(data)
            with contextlib.suppress(OSError):
                # it has gone: whoever waits for an answer is told so
                while left:
                    left = left[os.write(self._stdin, left) :]

    def close_stdin(self) -> None:
        """The end of the client's output."""
        self._close_stdin()

    # what the agent wrote

    @property
    def frames(self) -> list[JsonObject]:
        """The agent's frames so far."""
        return self.frames_since(0)

    def frames_since(self, since: int) -> list[JsonObject]:
        """Those from entry `since` on."""
        return [entry.frame for entry in tuple(self.entries)[since:] if entry.sender == "agent"]

    def longest_line(self) -> int:
        """Bytes of the longest line of stdout."""
        return max(map(len, bytes(self.raw).split(b"\n")))

    def updates(self, session: str | None = None, kind: str | None = None, *, since: int = 0) -> list[JsonObject]:
        """The updates (their `update` objects) from entry `since` on."""
        return [update_of(frame) for frame in self.frames_since(since) if _is_update(frame, session, kind)]

    def wait_update(
        self,
        session: str | None = None,
        kind: str | None = None,
        *,
        matches: Callable[[JsonObject], bool] | None = None,
        since: int = 0,
        seconds: float | None = None,
    ) -> JsonObject:
        """The first such update from entry `since` on."""

        def fits(frame: JsonObject) -> bool:
            return _is_update(frame, session, kind) and (matches is None or matches(update_of(frame)))

        return update_of(self.wait(fits, since=since, what=f"update {kind or ''}", seconds=seconds)[1])

    def wait_request(self, method: str, *, since: int = 0, seconds: float | None = None) -> JsonObject:
        """The first request of this method that the agent sent from entry `since` on, as a frame."""

        def fits(frame: JsonObject) -> bool:
            return "id" in frame and frame.get("method") == method

        return self.wait(fits, since=since, what=f"request {method}", seconds=seconds)[1]

    def response(self, request_id: Any, *, seconds: float | None = None, since: int = 0) -> JsonObject:
        """The response frame to a request of ours, whose id may be any JSON value."""
        wanted = encode(request_id)

        def fits(frame: JsonObject) -> bool:
            return "method" not in frame and "id" in frame and encode(frame["id"]) == wanted

        what = f"response to {self._methods.get(request_id, 'request')} (id {wanted})"
        return self.wait(fits, since=since, what=what, seconds=seconds)[1]

    def quiet(self, seconds: float) -> list[JsonObject]:
        """Wait, whatever comes; returns the frames that the agent wrote meanwhile."""
        before = len(self.entries)
        time.sleep(seconds)  # what does not come has no event
        return self.frames_since(before)

    # conversations

    def call(self, method: str, params: JsonObject | None = None, *, seconds: float | None = None) -> JsonObject:
        """A request and its result. Raises `Broken` when it is answered with an error, or with no object."""
        frame = self.response(self.request(method, params), seconds=seconds)
        result = as_object(frame.get("result"))
        if result is None:
            raise Broken(f"{method} {_short(params)}: expected a result, got {_short(_body(frame))}")
        return result

    def error(self, method: str, params: JsonObject | None = None, *, seconds: float | None = None) -> JsonObject:
        """A request and its error. Raises `Broken` when it succeeds."""
        frame = self.response(self.request(method, params), seconds=seconds)
        error = as_object(frame.get("error"))
        if error is None:
            raise Broken(f"{method} {_short(params)}: expected an error, got {_short(_body(frame))}")
        return error

    def open_session(self, **params: Any) -> JsonObject:
        """session/new in the agent's own directory unless `cwd` is given; the whole result.

        Raises `NotProvoked` for an agent that wants to be authenticated first and cannot be.
        """
        wanted: JsonObject = {"cwd": str(self._cwd), "mcpServers": [], **params}
        frame = self.response(self.request("session/new", wanted))
        if (as_object(frame.get("error")) or {}).get("code") == _AUTH_REQUIRED:
            rows = [as_object(row) or {} for row in as_list(self.initialized.get("authMethods")) or []]
            methods = [row.get("id") for row in rows if row.get("type") != "terminal"]
            if not methods or "error" in self.response(self.request("authenticate", {"methodId": methods[0]})):
                raise NotProvoked("session/new wants an authentication that this suite has no credential for")
            return self.call("session/new", wanted)
        result = as_object(frame.get("result"))
        if result is None or not isinstance(result.get("sessionId"), str):
            raise Broken(f"session/new {_short(wanted)}: expected a session id, got {_short(_body(frame))}")
        return result

    def new_session(self, **params: Any) -> str:
        """The id of a new session."""
        return self.open_session(**params)["sessionId"]

    def send_prompt(self, session: str, prompt: str | list[JsonObject] = "hello") -> int:
        """Send a prompt, text or blocks; returns the request's id."""
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt
        return self.request("session/prompt", {"sessionId": session, "prompt": blocks})

    def prompt(
        self, session: str, prompt: str | list[JsonObject] = "hello", *, seconds: float | None = None
    ) -> JsonObject:
        """A prompt and its response frame."""
        return self.response(self.send_prompt(session, prompt), seconds=seconds)

    def cancel(self, session: str) -> None:
        """session/cancel."""
        self.notify("session/cancel", {"sessionId": session})

    def advertises(self, name: str) -> bool:
        """Whether `agentCapabilities` holds this dotted name."""
        return advertised(self.initialized, name)

    def is_idle(self) -> bool:
        """Whether every prompt that was sent has been answered, or never will be."""
        if self._ended:
            return True
        entries = tuple(self.entries)
        prompts = {
            encode(entry.frame.get("id"))
            for entry in entries
            if entry.sender == "client" and entry.frame.get("method") == "session/prompt"
        }
        answered = {
            encode(entry.frame.get("id"))
            for entry in entries
            if entry.sender == "agent" and "method" not in entry.frame
        }
        return prompts <= answered

    # the process

    @property
    def directory(self) -> Path:
        """Its own directory, and that of its sessions."""
        return self._cwd

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not been killed."""
        return self._running is not None

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        return self._process().pid

    @property
    def stderr(self) -> str:
        """What it wrote there."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def children(self) -> set[int]:
        """Living processes that it started, also those whose parent has gone."""
        living = parents()
        self._seen_children |= descendants(self.pid, among=living)
        # who lives in the lab without a parent there may be anybody's; an agent beside this one is its own
        strangers = {self.pid}
        for pid in self._others():
            strangers |= {pid, *descendants(pid, among=living)}
        return (self._seen_children & living.keys()) | (inhabitants(self._root) - strangers)

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        self._ends_by_itself = False
        self._process().send_signal(number)

    def exit(self, seconds: float) -> int:
        """Its exit code. Raises `Broken` when it is alive after `seconds`."""
        try:
            return self._process().wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"the process is still alive after {seconds:g} s") from None

    def pause_reading(self) -> None:
        """Leave the agent's output in the pipe (up to one read of it is taken still)."""
        self._reading.clear()
        # who cannot write on must be allowed to end where it stands
        self._ends_by_itself = False

    def resume_reading(self) -> None:
        """Read on."""
        self._reading.set()

    def close_stdout(self) -> None:
        """Close our end of its stdout: at once when it writes next, at the latest."""
        self._stdout_is_closed = True
        self._ends_by_itself = False

    def end_now(self) -> None:
        """SIGKILL for the process, from whatever thread: what waits for its frames is told that it has ended."""
        running = self._running
        self._ends_by_itself = False
        if running is not None:
            running[0].kill()

    def leave(self, seconds: float) -> None:
        """End its input, and give it `seconds` to end by itself."""
        self.resume_reading()
        self.close_stdin()
        if self._running is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._running[0].wait(seconds)

    def kill(self) -> None:
        """End it and everything that it started. Idempotent."""
        if self._running is None:
            return
        self._reading.set()
        self._ends_by_itself = False
        victims = self.children()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in victims:
            # one that holds stdout would hold up the reader
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().kill()

    def _process(self) -> "subprocess.Popen[bytes]":
        if self._running is None:
            raise EditorError("the agent is not running")
        return self._running[0]

    def _read(self, descriptor: int) -> None:
        rest = bytearray()
        while not self._stdout_is_closed and (chunk := os.read(descriptor, _READ_SIZE)):
            self._reading.wait()
            self.raw.extend(chunk)
            first, *others = chunk.split(b"\n")
            rest += first
            # a long line comes in many pieces: it is looked at once, when it ends
            lines = [bytes(rest), *others[:-1]] if others else []
            rest = bytearray(others[-1]) if others else rest
            for line in lines:
                if _object(line) is None:
                    self.noise.append(line)
                else:
                    self._receive(line)
        os.close(descriptor)
        with self._changed:
            self.noise += [bytes(rest)] if rest and self._ends_by_itself else []
            self._ended = True
            self._changed.notify_all()


def advertised(initialized: JsonObject, name: str) -> bool:
    """Whether the result of initialize advertises `name`, a dotted path below `agentCapabilities`."""
    value: object = initialized.get("agentCapabilities")
    for key in name.split("."):
        value = (as_object(value) or {}).get(key)
    # an empty object advertises, too
    return value is not None and value is not False


def _is_update(frame: JsonObject, session: str | None, kind: str | None) -> bool:
    update = update_of(frame)
    if not update or (session is not None and frame["params"].get("sessionId") != session):
        return False
    return kind is None or update.get("sessionUpdate") == kind


def _object(line: bytes) -> JsonObject | None:
    try:
        return as_object(json.loads(line.decode("utf-8"), parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _body(frame: JsonObject) -> JsonObject:
    return {key: value for key, value in frame.items() if key not in {"jsonrpc", "id"}}


def _short(value: Any) -> str:
    text = encode(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
