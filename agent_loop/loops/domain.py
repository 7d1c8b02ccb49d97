"""What a loop is: its record, its events, when it fires and what it says (contract loops.md §1, §3).

May not know: clocks, agents, logs. Invariant: pure. A fold accepts exactly the changes that may follow; an accepted
record can be logged as it is, and its times are whole milliseconds that JSON numbers hold exactly.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn, assert_never, cast

from agent_loop.errors import HarnessError
from agent_loop.vocabulary import JsonObject

LOOP_CHANGE: Final = "loop/change"
VERSION: Final = 1
MAX_MS: Final = 2**53 - 1
DELIVERY_MODE: Final = "session-local"

# the library that does this brings half a web client with it
_XML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_RECORD_KEYS: Final = {"id", "prompt", "time_in_seconds", "next_at"}
_KEYS: Final = {
    "create": {"version", "operation", "loop"},
    "delete": {"version", "operation", "id"},
    "dispatch": {"version", "operation", "id", "next_at"},
}


class LoopLogError(HarnessError):
    """A `loop/change` that cannot follow what was logged before it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the loops of this session cannot be read: {what}", "LOOP_LOG")


class LoopInputError(HarnessError):
    """No loop can be made, or deleted, with what was given; nothing was logged."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "LOOP_INPUT")


@dataclass(frozen=True, slots=True)
class LoopRecord:
    """`id` is `loop_<uuid>`, `time_in_seconds` the interval, `next_at` epoch milliseconds of the next occurrence."""

    id: str
    prompt: str
    time_in_seconds: int
    next_at: int

    def to_json(self) -> JsonObject:
        """As it is logged."""
        return {
            "id": self.id,
            "prompt": self.prompt,
            "time_in_seconds": self.time_in_seconds,
            "next_at": self.next_at,
        }

    def view(self, now_ms: int) -> JsonObject:
        """LoopView: the record, how it stands now, and how it is delivered."""
        state = "overdue" if self.next_at <= now_ms else "scheduled"
        return {**self.to_json(), "state": state, "delivery_mode": DELIVERY_MODE}


@dataclass(frozen=True, slots=True)
class Created:
    loop: LoopRecord


@dataclass(frozen=True, slots=True)
class Deleted:
    id: str


@dataclass(frozen=True, slots=True)
class Dispatched:
    id: str
    next_at: int


LoopChange = Created | Deleted | Dispatched


def new_record(loop_id: str, prompt: str, seconds: float, *, now_ms: int) -> LoopRecord:
    """The record of a loop that begins now. Raises `LoopInputError`."""
    text = prompt.strip()
    if not text:
        raise LoopInputError("the prompt of a loop is blank: say what is to be done each time")
    # JSON has one kind of number: 60.0 is 60
    if (isinstance(seconds, float) and not seconds.is_integer()) or seconds < 1:
        raise LoopInputError(f"a loop's interval is a whole number of seconds, at least 1, not {seconds}")
    interval = int(seconds)
    next_at = now_ms + interval * 1000
    if next_at > MAX_MS:
        raise LoopInputError("that interval is too long")
    return LoopRecord(loop_id, text, interval, next_at)


def to_data(change: LoopChange) -> JsonObject:
    """The data of the `loop/change` event."""
    match change:
        case Created(loop):
            return {"version": VERSION, "operation": "create", "loop": loop.to_json()}
        case Deleted(loop_id):
            return {"version": VERSION, "operation": "delete", "id": loop_id}
        case Dispatched(loop_id, next_at):
            return {"version": VERSION, "operation": "dispatch", "id": loop_id, "next_at": next_at}
        case _:
            assert_never(change)


def parse_change(data: Any) -> LoopChange:
    """Read the data of a `loop/change`. Raises `LoopLogError`."""
    table = _table(data, "a change")
    if type(table.get("version")) is not int or table["version"] != VERSION:
        _refuse(f"version {table.get('version')!r:.40} is not {VERSION}")
    operation: object = table.get("operation")
    if not isinstance(operation, str) or operation not in _KEYS:
        _refuse(f"the operation {operation!r:.40} is unknown")
    _check_keys(table, _KEYS[operation], operation)
    if operation == "create":
        return Created(_record(table["loop"]))
    loop_id = _text(table["id"], "id")
    return Deleted(loop_id) if operation == "delete" else Dispatched(loop_id, _number(table["next_at"], "next_at"))


def applied(active: tuple[LoopRecord, ...], change: LoopChange) -> tuple[LoopRecord, ...]:
    """The active loops after `change`, in the order of their creation. Raises `LoopLogError`."""
    if isinstance(change, Created):
        if any(loop.id == change.loop.id for loop in active):
            _refuse(f"{change.loop.id} exists already")
        return (*active, change.loop)
    place = next((index for index, loop in enumerate(active) if loop.id == change.id), None)
    if place is None:
        _refuse(f"{change.id!r:.60} is not active")
    if isinstance(change, Deleted):
        return (*active[:place], *active[place + 1 :])
    if change.next_at <= active[place].next_at:
        _refuse(f"the next occurrence of {change.id} does not advance")
    return (*active[:place], replace(active[place], next_at=change.next_at), *active[place + 1 :])


class LoopFold:
    """The strict fold over the changes of one log, after the fork prefix. `active` is in the order of creation."""

    __slots__ = ("_seen", "active")

    def __init__(self) -> None:
        self.active: tuple[LoopRecord, ...] = ()
        self._seen: set[str] = set()

    def feed(self, data: Any) -> None:
        """Take the data of the next `loop/change`. Raises `LoopLogError`; nothing has changed then."""
        change = parse_change(data)
        if isinstance(change, Created):
            if change.loop.id in self._seen:
                _refuse(f"{change.loop.id} was created before")
            self._seen.add(change.loop.id)
        self.active = applied(self.active, change)

    def get(self, loop_id: str) -> LoopRecord | None:
        """The active loop of that id."""
        return next((loop for loop in self.active if loop.id == loop_id), None)


def earliest(active: Iterable[LoopRecord]) -> LoopRecord | None:
    """The loop whose turn is next; of several at the same time the one that was created first."""
    return min(active, key=lambda loop: loop.next_at, default=None)


def next_occurrence(loop: LoopRecord, now_ms: int) -> int:
    """Epoch milliseconds: the first after now, in step with the creation, however many were missed.

    Raises `LoopInputError` at the end of time.
    """
    interval = loop.time_in_seconds * 1000
    following = loop.next_at + ((now_ms - loop.next_at) // interval + 1) * interval
    if following > MAX_MS:
        raise LoopInputError(f"{loop.id} has no next occurrence")
    return following


def heartbeat(loop: LoopRecord) -> str:
    """What the agent is sent each time."""
    rows = (
        "<heartbeat>",
        f"  <loop_id>{loop.id.translate(_XML)}</loop_id>",
        f"  <prompt>{loop.prompt.translate(_XML)}</prompt>",
        "</heartbeat>",
    )
    return "\n".join(rows)


def _record(value: Any) -> LoopRecord:
    table = _table(value, "a loop")
    _check_keys(table, _RECORD_KEYS, "a loop")
    prompt = _text(table["prompt"], "prompt")
    if prompt != prompt.strip():
        _refuse("a prompt is not trimmed")
    return LoopRecord(
        _text(table["id"], "id"),
        prompt,
        _number(table["time_in_seconds"], "time_in_seconds"),
        _number(table["next_at"], "next_at"),
    )


def _table(value: Any, what: str) -> JsonObject:
    if not isinstance(value, dict):
        _refuse(f"{what} is no object")
    return cast("JsonObject", value)


def _check_keys(table: JsonObject, wanted: set[str], what: str) -> None:
    if table.keys() != wanted:
        _refuse(f"{what} has other fields than {', '.join(sorted(wanted))}")


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        _refuse(f"{name} is no text")
    return value


def _number(value: Any, name: str) -> int:
    # a bool is an int to Python, not to JSON
    if type(value) is not int or not 0 < value <= MAX_MS:
        _refuse(f"{name} is no positive whole number")
    return value


def _refuse(what: str) -> NoReturn:
    raise LoopLogError(what)
