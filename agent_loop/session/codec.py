"""Events and the header as lines of bytes, and back (contract session-log.md §1, §2, §9).

May not know: files. Invariant: a line holds no byte 0x0A but its last, and no character that any reader takes for a
line end; what was encoded decodes to an equal event.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

import pydantic_core

from agent_loop.session.events import LOG_VERSION, SessionEvent, SessionHeader
from agent_loop.session.migrations import MIGRATIONS, Migration, steps_from
from agent_loop.vocabulary import JsonObject

# to_json escapes everything below U+0020 itself; these it writes as they are, and they occur inside strings alone
_SEPARATORS: Final = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


class LineError(Exception):
    """A line that is no header or no event; the text says why."""


class NotJsonError(LineError):
    """A line that no JSON parser takes."""

    def __init__(self) -> None:
        super().__init__("it is no JSON")


class UnknownVersionError(Exception):
    """A header of a later log format."""

    def __init__(self, version: int) -> None:
        super().__init__(f"log format {version}")
        self.version = version


class Envelope(NamedTuple):
    """The four fields of an event line; `data` is any JSON."""

    type: str
    seq: int
    time: int
    data: Any


def encode_event(event: SessionEvent) -> bytes:
    """The event's line, with its line end."""
    return encode_events((event,))


def encode_events(events: Iterable[SessionEvent]) -> bytes:
    """The lines of the events, each with its line end."""
    to_json = pydantic_core.to_json
    return _escaped(
        b"".join(
            [
                to_json({"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}) + b"\n"
                for event in events
            ]
        )
    )


def encode_header(header: SessionHeader) -> bytes:
    """Line 1 of a log, with its line end."""
    return _escaped(pydantic_core.to_json(header.to_json()) + b"\n")


def decode_event(line: bytes, steps: tuple[Migration, ...] = ()) -> Envelope:
    """Read one line (with or without its line end) of a log whose format `steps` lead from.

    Raises `LineError`; fields beyond the four are ignored.
    """
    value = _object(line)
    for step in steps:
        value = step.event(value)
    event_type, seq, time = value.get("type"), value.get("seq"), value.get("time")
    if type(event_type) is not str or type(seq) is not int or type(time) is not int or "data" not in value:
        raise LineError("it is no event")
    return Envelope(event_type, seq, time, value["data"])


def decode_header(line: bytes, migrations: Mapping[int, Migration] = MIGRATIONS) -> SessionHeader:
    """Read line 1; its `version` stays that of the log. Raises `LineError` or `UnknownVersionError`.

    Unknown fields are ignored.
    """
    value = _object(line)
    version = value.get("version")
    if value.get("type") != "session" or type(version) is not int:
        raise LineError("it is no session header")
    if version > LOG_VERSION:
        raise UnknownVersionError(version)
    steps = steps_from(version, migrations)
    if steps is None:
        raise LineError(f"there is no log format {version}")
    for step in steps:
        value = step.header(value)
    session_id, created_at = value.get("id"), value.get("createdAt")
    cwd, parent, seed_length = value.get("cwd"), value.get("parentSession"), value.get("seedLength")
    if (
        type(session_id) is not str
        or type(created_at) is not int
        or type(cwd) not in (str, type(None))
        or type(parent) not in (str, type(None))
        or type(seed_length) not in (int, type(None))
    ):
        raise LineError("it is no session header of this version")
    return SessionHeader(
        session_id, created_at, cwd=cwd, parent_session=parent, seed_length=seed_length, version=version
    )


def _escaped(lines: bytes) -> bytes:
    if not lines.isascii():
        for separator, escape in _SEPARATORS:
            lines = lines.replace(separator, escape)
    return lines


def _object(line: bytes) -> JsonObject:
    try:
        value = pydantic_core.from_json(line, allow_inf_nan=False)
    except ValueError:
        value = _patient_parse(line)
    if type(value) is not dict:
        raise LineError("it is no JSON object")
    return cast("JsonObject", value)


def _patient_parse(line: bytes) -> Any:
    """Read what the fast parser refuses and other writers wrote: lone surrogates, and the deepest data we allow."""
    try:
        return _repair_text(json.loads(line, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        raise NotJsonError from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _repair_text(value: Any) -> Any:
    """Lone surrogates become U+FFFD."""
    if type(value) is str:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if type(value) is dict:
        return {_repair_text(key): _repair_text(item) for key, item in cast("JsonObject", value).items()}
    if type(value) is list:
        return [_repair_text(item) for item in cast("list[Any]", value)]
    return value
