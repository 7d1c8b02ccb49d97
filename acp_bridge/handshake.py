"""The light path: answer `initialize` before pydantic, structlog and anyio are imported.

May not know: sessions, the peer, anything that takes time to load. Invariant: it answers the plain case only —
one `initialize` with an ordinary id, first on the wire — and hands every byte of anything else to the peer untouched.
"""

import json
import os
import select
from collections.abc import Callable
from typing import Any, NamedTuple, Never, cast

from acp_bridge.methods.v1.initialize import initialize_result, version_problem

_PLAIN_LINE = 64 * 1024
_PLAIN_DEPTH = 100


class Greeting(NamedTuple):
    """What the peer goes on with: bytes read but not consumed, the params answered (None: nothing was)."""

    preread: bytes
    initialize_params: dict[str, Any] | None


def greet(
    read_fd: int,
    write_fd: int,
    key_variable: str | None,
    *,
    parent_alive: Callable[[], bool],
    poll_seconds: float = 2.0,
) -> Greeting:
    """Read until a line is whole (or EOF) and answer it when it is a plain `initialize`.

    Blocking on purpose: nothing else runs yet. `parent_alive` is asked every `poll_seconds` while the client is silent.
    """
    buffer = b""
    while b"\n" not in buffer and len(buffer) < _PLAIN_LINE:
        while not select.select([read_fd], [], [], poll_seconds)[0]:
            if not parent_alive():
                return Greeting(buffer, None)
        chunk = os.read(read_fd, _PLAIN_LINE)
        if not chunk:
            _keep_ended(read_fd)
            return Greeting(buffer, None)
        buffer += chunk
    line, _newline, rest = buffer.partition(b"\n")
    params = _plain_initialize(line)
    if params is None:
        return Greeting(buffer, None)
    request_id, arguments = params
    response = {"jsonrpc": "2.0", "id": request_id, "result": initialize_result(key_variable)}
    frame = json.dumps(response, separators=(",", ":")).encode() + b"\n"
    while frame:
        try:
            frame = frame[os.write(write_fd, frame) :]
        except OSError:
            _keep_ended(read_fd)  # nobody reads any more: that is an end like any other
            break
    return Greeting(rest, arguments)


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON number")


def _keep_ended(read_fd: int) -> None:
    """Let the peer meet the end at once and for good: after Ctrl-D a terminal would wait for more."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, read_fd, inheritable=False)
    os.close(null)


def _plain_initialize(line: bytes) -> tuple[int | str, dict[str, Any]] | None:
    if line.count(b"{") + line.count(b"[") > _PLAIN_DEPTH:
        return None
    try:
        loaded: object = json.loads(line.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    frame = cast("dict[str, Any]", loaded)
    if frame.get("method") != "initialize" or frame.get("jsonrpc", "2.0") != "2.0":
        return None
    request_id, params = frame.get("id"), frame.get("params")
    if isinstance(request_id, bool) or not isinstance(request_id, int | str) or not str(request_id).isascii():
        return None
    if not isinstance(params, dict) or "result" in frame or "error" in frame:
        return None
    arguments = cast("dict[str, Any]", params)
    return None if version_problem(arguments) else (request_id, arguments)
