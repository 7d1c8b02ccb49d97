"""A server between an agent and its provider that keeps what the model says (contract snapshots.md §6, mode record).

May not know: agents, scenarios. Invariant: the agent reads the provider's answer byte for byte; what is kept is the
events of its body — never a header of a request or a response, and of a request nothing at all.
"""

import contextlib
import json
import threading
from collections.abc import Generator, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from acp_bridge.testing.model_server import Answer

_READ_SIZE = 1 << 16
# what a provider needs to understand the body; everything else is the connection's business
_FORWARDED = ("content-type", "accept", "user-agent")


class RecordingProxy:
    """`url` for the agent; `answers()` afterwards."""

    def __init__(self, upstream: str, *, key: str, seconds: float) -> None:
        self.url = ""
        self._upstream = urlsplit(upstream)
        self._key = key
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: list[Answer | None] = []

    def answers(self) -> list[Answer]:
        """The answers in the order of their requests, as a script of `model_server`; a broken one is left out."""
        with self._lock:
            return [answer for answer in self._kept if answer is not None]

    def place(self) -> int:
        """A place for the answer to a request that has just come."""
        with self._lock:
            self._kept.append(None)
            return len(self._kept) - 1

    def keep(self, place: int, answer: Answer) -> None:
        """Keep `answer` there."""
        with self._lock:
            self._kept[place] = answer

    def ask(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[HTTPConnection, HTTPResponse]:
        """Send the request on. Raises `OSError`, `http.client.HTTPException`."""
        upstream = self._upstream
        secure = upstream.scheme == "https"
        connection = (HTTPSConnection if secure else HTTPConnection)(upstream.netloc, timeout=self._seconds)
        headers = {name: value for name in _FORWARDED if (value := handler.headers.get(name))}
        headers["authorization"] = f"Bearer {self._key}"
        path = upstream.path.rstrip("/") + handler.path.removeprefix("/v1")
        connection.request(handler.command, path, body or None, headers)
        return connection, connection.getresponse()


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
        is_call = self.path.endswith("/chat/completions")
        place = self.recorder.place() if is_call else -1
        try:
            connection, response = self.recorder.ask(self, body)
            with contextlib.closing(connection):
                content_type = response.getheader("content-type", "application/json")
                self.send_response(response.status)
                self.send_header("content-type", content_type)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                payload = b"".join(self._pass_on(response))
            if is_call:
                # before the end of the body: whoever has read it may ask for what was kept
                self.recorder.keep(place, _answer(response.status, content_type, payload))
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, HTTPException):
            # the provider or the agent broke off, and the other learns it the same way: that is no answer to keep
            self.close_connection = True

    do_GET = do_POST = _forward  # noqa: N815 - the names that http.server looks for

    def _pass_on(self, response: HTTPResponse) -> Iterator[bytes]:
        while data := response.read1(_READ_SIZE):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            yield data

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gave it
        """Says nothing: stderr belongs to the test run."""


def _answer(status: int, content_type: str, payload: bytes) -> Answer:
    text = payload.decode("utf-8", errors="replace")
    if not content_type.startswith("text/event-stream"):
        try:
            return {"status": status, "body": json.loads(text)}
        except ValueError:
            return {"status": status, "body": text}
    ops: list[Answer] = []
    # only 0x0A ends a line; U+2028 and friends are text
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("data:"):
            data = line.removeprefix("data:").strip()
            ops.append({"done": True} if data == "[DONE]" else {"event": json.loads(data)})
    return {"stream": ops}
