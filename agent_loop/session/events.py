"""The events of a session log (contract session-log.md §1–§3).

May not know: files, editors, models. Invariant: `KnownType` is a closed union (consumers match it and end in
`assert_never`); everything else is an `UnknownEvent`, kept verbatim and treated as log-only. Data is JSON and is
never changed after the append.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from agent_loop.vocabulary import JsonObject

LOG_VERSION: Final = 1

NestedType = Literal[
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "user/message",
    "context/message",
    "steering/message",
    "assistant/chunk",
    "assistant/message",
    "tool/call",
    "tool/result",
]
LogOnlyType = Literal[
    "request/header",
    "permission/request",
    "permission/decision",
    "command/run",
    "command/done",
    "session/title",
    "session/notice",
    "plan/update",
    "mode/change",
    "config/change",
    "llm/retry",
    "history/compacted",
    "loop/change",
]
KnownType = NestedType | LogOnlyType

# each by its own text: what is found there needs no type guard, which is a call for every event
_KNOWN: Final[dict[str, KnownType]] = {name: name for name in (*get_args(NestedType), *get_args(LogOnlyType))}

NESTED_TYPES: Final[frozenset[str]] = frozenset(get_args(NestedType))
KNOWN_TYPES: Final[frozenset[str]] = frozenset(_KNOWN)


# `Final` fields: a frozen class takes four times as long to make one, and one is made for every delta


@dataclass(slots=True)
class KnownEvent:
    """`seq` counts from 0 without gaps, `time` is epoch milliseconds, `data` as in the contract's table."""

    type: Final[KnownType]
    seq: Final[int]
    time: Final[int]
    data: Final[JsonObject]


@dataclass(slots=True)
class UnknownEvent:
    """An event of a type that this version does not know; kept verbatim, never in history."""

    type: Final[str]
    seq: Final[int]
    time: Final[int]
    data: Final[Any]


SessionEvent = KnownEvent | UnknownEvent


def make_event(event_type: str, seq: int, time: int, data: Any) -> SessionEvent:
    """The one constructor: picks the arm of the union by type."""
    known = _KNOWN.get(event_type)
    return UnknownEvent(event_type, seq, time, data) if known is None else KnownEvent(known, seq, time, data)


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """Line 1 of the file: immutable, not an event. `created_at` epoch ms, `cwd` absolute."""

    id: str
    created_at: int
    cwd: str | None = None
    parent_session: str | None = None
    seed_length: int | None = None
    version: int = LOG_VERSION

    def to_json(self) -> JsonObject:
        """The header line's object in the key order of the contract; absent fields are omitted."""
        line: JsonObject = {
            "type": "session",
            "version": self.version,
            "id": self.id,
            "createdAt": self.created_at,
        }
        optional = {"cwd": self.cwd, "parentSession": self.parent_session, "seedLength": self.seed_length}
        line.update({key: value for key, value in optional.items() if value is not None})
        return line
