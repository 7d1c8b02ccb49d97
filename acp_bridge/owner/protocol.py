"""What is said over the socket of a process that owns sessions: one JSON line there, one back.

May not know: sockets, sessions. Invariant: pure. Only lines that `may_run` accepts are commands here: they look at
loops or end them. Nothing that comes this way makes a loop or says anything to a model.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, cast

MAX_REQUEST: Final = 4096
"""Bytes of a request, its line end included."""
MAX_ANSWER: Final = 65_536
"""Bytes of an answer, its line end included."""

_ALLOWED: Final = re.compile(r"/loop (?:list|delete \S{1,200})")
_MAX_TEXT: Final = 5000
"""Characters of an answer; JSON takes up to twelve bytes for one."""


class ProtocolError(Exception):
    """What the other side said cannot be meant; the message says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command line for a session."""

    session_id: str
    line: str


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is Markdown for a person; `ok` False: it was not done, and `text` says why."""

    ok: bool
    text: str


def may_run(line: str) -> bool:
    """Whether a line may come this way."""
    return _ALLOWED.fullmatch(line) is not None


def encode_request(request: Request) -> bytes:
    """One line. Raises `ProtocolError` when it would be refused."""
    line = _line({"sessionId": request.session_id, "line": request.line})
    if len(line) > MAX_REQUEST:
        raise ProtocolError("the request is too long")
    return line


def parse_request(line: bytes) -> Request:
    """Raises `ProtocolError`."""
    table = _object(line)
    session_id, command = table.get("sessionId"), table.get("line")
    if table.keys() != {"sessionId", "line"} or not isinstance(session_id, str) or not isinstance(command, str):
        raise ProtocolError("a request is sessionId and line, two texts")
    if not may_run(command):
        raise ProtocolError("only `/loop list` and `/loop delete <id>` can be sent this way")
    return Request(session_id, command)


def encode_answer(answer: Answer) -> bytes:
    """One line; a text that is too long is cut."""
    return _line({"ok": answer.ok, "text": answer.text[:_MAX_TEXT]})


def parse_answer(line: bytes) -> Answer:
    """Raises `ProtocolError`."""
    table = _object(line)
    ok, text = table.get("ok"), table.get("text")
    if not isinstance(ok, bool) or not isinstance(text, str):
        raise ProtocolError("an answer is ok and text")
    return Answer(ok, text)


def _line(table: dict[str, object]) -> bytes:
    return json.dumps(table).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("that is no JSON") from error
    if not isinstance(value, dict):
        raise ProtocolError("that is no JSON object")
    return cast("dict[str, Any]", value)
