"""The wire of the broken agent: frames in, frames out, requests to the client.

May not know: what the methods mean. Standard library only. Invariant: frames leave in the order in which they were
queued, by one thread; whoever reads input never waits for output; a request to the client ends with its response or
with the cancellation that it was given.
"""

import contextlib
import json
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any

from acp_bridge.testing.json_values import JsonObject, as_object, encode

INPUT_LIMIT = 64 << 20
"""The longest line that is read, in bytes."""
_OUTPUT_ROOM = 1 << 20
"""With more than this many bytes waiting for a client that does not read, turns wait."""


def table(value: Any) -> JsonObject:
    """`value` if it is an object, else an empty one."""
    return as_object(value) or {}


class RpcError(Exception):
    """A request is answered with this error."""

    def __init__(self, code: int, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Cancelled(Exception):
    """The turn was cancelled."""


class Cancel:
    """Says once that something is over; `on_set` callbacks run when it is said, or at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self.is_set = False

    def set(self) -> None:
        """Say it."""
        with self._lock:
            self.is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], object]) -> None:
        """Call `callback` when it is said."""
        with self._lock:
            if not self.is_set:
                self._callbacks.append(callback)
                return
        callback()

    def check(self) -> None:
        """Raises `Cancelled` when it was said."""
        if self.is_set:
            raise Cancelled

    @classmethod
    def after(cls, seconds: float) -> "Cancel":
        """One that is said after `seconds`."""
        cancel = cls()
        timer = threading.Timer(seconds, cancel.set)
        timer.daemon = True
        timer.start()
        return cancel


class _Pending:
    """A request to the client that has no response yet."""

    def __init__(self, late: Callable[[JsonObject], object]) -> None:
        self.done = threading.Event()
        self.response: JsonObject | None = None
        self.is_late = False
        self.late = late


class Wire:
    """Both directions. `gone` is called, in a thread of its own, when the client reads no more."""

    def __init__(self, faults: frozenset[str], descriptor: int, gone: Callable[[], object]) -> None:
        self._faults = faults
        self._descriptor = descriptor
        self._gone = gone
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._pending: dict[int, _Pending] = {}
        self._asked = 0
        self.newest = ""  # the session that was opened last
        threading.Thread(target=self._write, name="writer", daemon=True).start()
        threading.Thread(target=self._watch, name="watcher", daemon=True).start()

    def send(self, frame: JsonObject) -> None:
        """Queue a frame; `jsonrpc` is added."""
        line = self._encoded({"jsonrpc": "2.0", **frame})
        with self._changed:
            self._lines.append(line)
            self._waiting += len(line)
            self._changed.notify_all()

    def room(self, cancel: Cancel) -> None:
        """Return when the client has read enough, or `cancel` was said."""
        if self._waiting > _OUTPUT_ROOM:
            cancel.on_set(self._wake)
            with self._changed:
                self._changed.wait_for(lambda: self._waiting <= _OUTPUT_ROOM or cancel.is_set)

    def drain(self, seconds: float) -> None:
        """Return when everything was written, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, seconds)

    def answer(self, request_id: Any, result: JsonObject | None) -> None:
        """Answer a request."""
        request_id = self._id(request_id)
        for _ in range(2 if "answers-twice" in self._faults else 1):
            self.send({"id": request_id, "result": result})

    def refuse(self, request_id: Any, error: RpcError) -> None:
        """Answer a request with an error."""
        body: JsonObject = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        if "errors-without-message" in self._faults:
            del body["message"]
        if "null-error-data" in self._faults:
            body.setdefault("data", None)
        self.send({"id": self._id(request_id), "error": body})

    def request(
        self,
        method: str,
        params: JsonObject,
        cancel: Cancel,
        late: Callable[[JsonObject], object] = lambda _frame: None,
    ) -> JsonObject:
        """Ask the client; returns its response frame.

        Raises `Cancelled`; a response that comes after that is given to `late`.
        """
        pending = _Pending(late)
        with self._changed:
            self._asked += 1
            number = self._asked
            self._pending[number] = pending
        self.send({"id": number, "method": method, "params": params})
        cancel.on_set(pending.done.set)
        pending.done.wait()
        with self._changed:
            pending.is_late = pending.response is None
        if pending.response is None:
            if "no-cascade" not in self._faults:
                self.send({"method": "$/cancel_request", "params": {"requestId": number}})
            raise Cancelled
        return pending.response

    def settle(self, frame: JsonObject) -> bool:
        """Take a response of the client; False when nobody asked."""
        number = frame.get("id")
        with self._changed:
            pending = self._pending.pop(number, None) if type(number) is int else None
            if pending is None:
                return False
            pending.response = frame
        pending.done.set()
        if pending.is_late:
            pending.late(frame)
        return True

    def _id(self, request_id: Any) -> Any:
        is_zero = type(request_id) is int and not request_id
        return "0" if is_zero and "zero-as-string" in self._faults else request_id

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _encoded(self, frame: JsonObject) -> bytes:
        if "no-jsonrpc" in self._faults:
            del frame["jsonrpc"]
        if "root-keys" in self._faults and "method" in frame:
            frame["params"] = {**frame["params"], "extra": True}
        # a lone surrogate, which JSON can spell and UTF-8 cannot, becomes a question mark
        line = encode(frame).encode("utf-8", "replace")
        if "raw-newlines" in self._faults:
            line = line.replace(b"\\u2028", b"\n")
        return line + b"\n"

    def _write(self) -> None:
        # a client that has gone is noticed by the watcher
        with contextlib.suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._lines)
                    data = memoryview(b"".join(self._lines))
                    self._lines.clear()
                size = len(data)
                while data:
                    data = data[os.write(self._descriptor, data) :]
                with self._changed:
                    self._waiting -= size
                    self._changed.notify_all()

    def _watch(self) -> None:
        """Wait until the client has closed its end, also while there is nothing to write."""
        poll = select.poll()
        poll.register(self._descriptor, 0)
        poll.poll()
        self._gone()


def frames(stream: IO[bytes], limit: int) -> Iterator[JsonObject | RpcError]:
    """The objects of the lines of `stream`, and an error for each line that is none; ends with the input."""
    while line := stream.readline(limit):
        if len(line) == limit and not line.endswith(b"\n"):
            while (rest := stream.readline(limit)) and not rest.endswith(b"\n"):
                pass
            yield RpcError(-32600, "the line is too long")
        elif line.strip():
            yield _parsed(line)


def _parsed(line: bytes) -> JsonObject | RpcError:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return RpcError(-32700, "Parse error")
    frame = as_object(value)
    if frame is None or not ("method" in frame or "result" in frame or "error" in frame):
        return RpcError(-32600, "Invalid Request")
    return frame
