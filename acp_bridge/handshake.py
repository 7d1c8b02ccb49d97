"""The light path: answer `initialize`, and a `session/new` right behind it, before anything heavy is imported.

May not know: agents, the peer, anything that takes time to load. Invariant: it answers the plain cases only —
one `initialize` with an ordinary id, first on the wire, then one ordinary `session/new` — and hands every byte of
anything else to the peer untouched.
"""

import json
import os
import select
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Never, cast

from acp_bridge.catalogue import Offer
from acp_bridge.first_session import OpenedSession, open_plainly
from acp_bridge.methods.v1.initialize import SignIn, initialize_result, version_problem

_PLAIN_LINE = 64 * 1024
_PLAIN_DEPTH = 100
FOLLOW_UP_SECONDS = 0.030
"""How long a `session/new` is waited for: a client that wants a session at once has asked by then."""


class Greeting(NamedTuple):
    """What the peer goes on with: bytes read but not consumed, the params and the session answered (None: nothing)."""

    preread: bytes
    initialize_params: dict[str, Any] | None
    opened: OpenedSession | None = None


def greet(
    read_fd: int,
    write_fd: int,
    sign_in: SignIn,
    *,
    fork: bool,
    offer: Offer | None,
    parent_alive: Callable[[], bool],
    poll_seconds: float = 2.0,
    images: bool = False,
) -> Greeting:
    """Read until a line is whole (or EOF) and answer it when it is a plain `initialize`.

    Blocking on purpose: nothing else runs yet. `parent_alive` is asked every `poll_seconds` while the client is silent.
    `offer` is that of a session; None: no `session/new` is answered here.
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
    asked = _plain_request(line, "initialize")
    if asked is None or version_problem(asked[1]):
        return Greeting(buffer, None)
    request_id, arguments = asked
    opened = None
    result = initialize_result(sign_in, arguments, fork=fork, images=images)
    if _answer(write_fd, request_id, result, read_fd) and offer is not None:
        rest = _next_line(read_fd, rest)
        opened = _open_session(read_fd, write_fd, rest, offer)
        if opened is not None:
            rest = rest.partition(b"\n")[2]
    return Greeting(rest, arguments, opened)


def _next_line(read_fd: int, buffer: bytes) -> bytes:
    """`buffer` and what follows it, up to a whole line if one comes in time."""
    give_up = time.monotonic() + FOLLOW_UP_SECONDS
    while b"\n" not in buffer and len(buffer) < _PLAIN_LINE:
        if not select.select([read_fd], [], [], max(give_up - time.monotonic(), 0))[0]:
            break
        chunk = os.read(read_fd, _PLAIN_LINE)
        if not chunk:
            _keep_ended(read_fd)
            break
        buffer += chunk
    return buffer


def _open_session(read_fd: int, write_fd: int, buffer: bytes, offer: Offer) -> OpenedSession | None:
    line, newline, _rest = buffer.partition(b"\n")
    asked = _plain_request(line, "session/new") if newline else None
    answer = open_plainly(asked[1], offer) if asked else None
    if asked is None or answer is None:
        return None
    opened, result = answer
    _answer(write_fd, asked[0], result, read_fd)
    return opened


def _answer(write_fd: int, request_id: int | str, result: dict[str, Any], read_fd: int) -> bool:
    """Whether the client was there to read it."""
    response = {"jsonrpc": "2.0", "id": request_id, "result": result}
    frame = json.dumps(response, separators=(",", ":")).encode() + b"\n"
    while frame:
        try:
            frame = frame[os.write(write_fd, frame) :]
        except OSError:
            _keep_ended(read_fd)  # nobody reads any more: that is an end like any other
            return False
    return True


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON number")


def _keep_ended(read_fd: int) -> None:
    """Let the peer meet the end at once and for good: after Ctrl-D a terminal would wait for more."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, read_fd, inheritable=False)
    os.close(null)


def _plain_request(line: bytes, method: str) -> tuple[int | str, dict[str, Any]] | None:
    """Id and params of a request that holds nothing unusual; None for everything else."""
    # an escape may be half a surrogate pair, which the peer repairs
    if b"\\u" in line or line.count(b"{") + line.count(b"[") > _PLAIN_DEPTH:
        return None
    try:
        loaded: object = json.loads(line.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    frame = cast("dict[str, Any]", loaded)
    if frame.get("method") != method or frame.get("jsonrpc", "2.0") != "2.0":
        return None
    request_id, params = frame.get("id"), frame.get("params")
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    if not isinstance(params, dict) or "result" in frame or "error" in frame:
        return None
    return request_id, cast("dict[str, Any]", params)
