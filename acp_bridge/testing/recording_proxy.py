"""A server between an agent and its provider that keeps what the model says (contract snapshots.md §6, mode record).

May not know: agents, scenarios. Invariant: the agent reads the provider's answer byte for byte, and an agent that hangs
up is hung up on the provider at once; what is kept is the events of a body — never a header of a request or a response,
and of a request nothing at all.
"""

import contextlib
import json
import selectors
import socket
import threading
import time
from collections.abc import Generator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from acp_bridge.testing.model_server import Answer

_READ_SIZE = 1 << 16
# what a provider needs to understand the body; everything else is the connection's business
_FORWARDED = ("content-type", "accept", "user-agent")


class _Heard:
    """What has come of one answer. It is whole, or failed, or the agent did not hear its end."""

    def __init__(self) -> None:
        self.status = 0
        self.content_type = ""
        self.pieces: list[tuple[float, bytes]] = []  # with the moment before the agent got it
        self.whole = False
        self.failed = False
        self.left_at: float | None = None  # when the agent hung up

    def answer(self, cancels: Sequence[float]) -> Answer | None:
        """It as an answer of `model_server`, None when the provider did not give one."""
        if self.failed:
            return None
        if self.whole:
            return _answer(self.status, self.content_type, b"".join(piece for _, piece in self.pieces))
        # what was on its way when the turn was cancelled may have been heard, or not: a replay shall not depend on it
        before = [moment for moment in cancels if self.left_at is None or moment <= self.left_at]
        until = max(before, default=float("inf"))
        told = b"".join(piece for moment, piece in self.pieces if moment <= until)
        ops = _ops(told[: told.rfind(b"\n") + 1]) if _is_stream(self.content_type) else []
        return {"stream": ops if {"done": True} in ops else [*ops, {"silence": True}]}


class RecordingProxy:
    """`url` for the agent; `answers()` afterwards."""

    def __init__(self, upstream: str, *, key: str, seconds: float) -> None:
        self.url = ""
        self._upstream = urlsplit(upstream)
        self._key = key
        self._seconds = seconds
        self._lock = threading.Lock()
        self._heard: list[_Heard] = []

    def answers(self, *, cancels: Sequence[float] = ()) -> list[Answer]:
        """The answers in the order of their requests, as a script of `model_server`.

        One that the provider broke off is left out. One whose end the agent did not wait for holds what had come
        before the last of `cancels` (moments of `time.monotonic` when turns were cancelled), and then silence.
        """
        with self._lock:
            answers = [heard.answer(cancels) for heard in self._heard]
        return [answer for answer in answers if answer is not None]

    def begin(self) -> _Heard:
        """A place for the answer to a request that has just come."""
        heard = _Heard()
        with self._lock:
            self._heard.append(heard)
        return heard

    def connect(self) -> HTTPConnection:
        """A connection to the provider. Raises `OSError`."""
        kind = HTTPSConnection if self._upstream.scheme == "https" else HTTPConnection
        connection = kind(self._upstream.netloc, timeout=self._seconds)
        connection.connect()
        return connection

    def ask(self, connection: HTTPConnection, handler: BaseHTTPRequestHandler, body: bytes) -> HTTPResponse:
        """Send the request on. Raises `OSError`, `http.client.HTTPException`."""
        headers = {name: value for name in _FORWARDED if (value := handler.headers.get(name))}
        headers["authorization"] = f"Bearer {self._key}"
        path = self._upstream.path.rstrip("/") + handler.path.removeprefix("/v1")
        connection.request(handler.command, path, body or None, headers)
        return connection.getresponse()


@contextlib.contextmanager
def recording_proxy(upstream: str, *, key: str, seconds: float = 120.0) -> Generator[RecordingProxy]:
    """Stand on 127.0.0.1 before `upstream` (a base URL, such as `https://host/v1`), whose key is `key`."""
    proxy = RecordingProxy(upstream, key=key, seconds=seconds)

    class Handler(_Handler):
        recorder = proxy

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="recording proxy")
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    recorder: RecordingProxy
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        heard = self.recorder.begin() if self.path.endswith("/chat/completions") else _Heard()
        try:
            with (
                contextlib.closing(self.recorder.connect()) as provider,
                _ending_with(self.connection, provider, heard),
            ):
                self._pass_on(self.recorder.ask(provider, self, body), heard)
            if heard.left_at is None:
                # before the end of the body: whoever has read it may ask for what was kept
                heard.whole = True
                self.wfile.write(b"0\r\n\r\n")
                return
        except (OSError, HTTPException):
            # one side broke off, and the other learns it the same way
            heard.failed = heard.left_at is None and not heard.whole
        self.close_connection = True

    do_GET = do_POST = _forward  # noqa: N815 - the names that http.server looks for

    def _pass_on(self, response: HTTPResponse, heard: _Heard) -> None:
        heard.status, heard.content_type = response.status, response.getheader("content-type", "application/json")
        self.send_response(heard.status)
        self.send_header("content-type", heard.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while data := response.read1(_READ_SIZE):
            heard.pieces.append((time.monotonic(), data))
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gave it
        """Says nothing: stderr belongs to the test run."""


@contextlib.contextmanager
def _ending_with(agent: socket.socket, provider: HTTPConnection, heard: _Heard) -> Generator[None]:
    """End the provider's connection when the agent closes its own: a model that is silent would hold us otherwise."""
    # the connection forgets its socket when it has read a head that says close
    upstream = provider.sock
    done, finished = socket.socketpair()

    def watch() -> None:
        with selectors.DefaultSelector() as selector:
            for watched in (agent, finished):
                selector.register(watched, selectors.EVENT_READ)
            if any(key.fileobj is agent for key, _ in selector.select()):
                # a client says nothing while it is answered: what can be read is that it has gone
                heard.left_at = time.monotonic()
                with contextlib.suppress(OSError):
                    # below TLS, whose own shutdown is not for a socket that another thread reads
                    socket.socket.shutdown(upstream, socket.SHUT_RDWR)

    thread = threading.Thread(target=watch, name="recording proxy: watches the agent")
    thread.start()
    try:
        yield
    finally:
        done.close()
        thread.join()
        finished.close()


def _is_stream(content_type: str) -> bool:
    return content_type.startswith("text/event-stream")


def _answer(status: int, content_type: str, payload: bytes) -> Answer:
    if _is_stream(content_type):
        return {"stream": _ops(payload)}
    text = payload.decode("utf-8", errors="replace")
    try:
        return {"status": status, "body": json.loads(text)}
    except ValueError:
        return {"status": status, "body": text}


def _ops(payload: bytes) -> list[Answer]:
    ops: list[Answer] = []
    # only 0x0A ends a line; U+2028 and friends are text
    for line in payload.decode("utf-8", errors="replace").replace("\r\n", "\n").split("\n"):
        if line.startswith("data:"):
            data = line.removeprefix("data:").strip()
            ops.append({"done": True} if data == "[DONE]" else {"event": json.loads(data)})
    return ops
