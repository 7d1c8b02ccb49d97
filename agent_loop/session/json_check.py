"""Is a value losslessly JSON, and a copy of it that nobody else holds (contract session-log.md §5).

May not know: which events exist. Invariant: what `own_json` returns reads back equal from its JSON text and shares no
list or object with what it was given.
"""

from math import isfinite
from typing import Any, Final, cast

from agent_loop.errors import HarnessError
from agent_loop.vocabulary import JsonObject

MAX_INTEGER: Final = 2**53 - 1
MIN_INTEGER: Final = -MAX_INTEGER
MAX_DEPTH: Final = 200
_TOO_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels, or contains itself"


class InvalidEventError(HarnessError):
    """Data that cannot be logged; nothing was logged. `event_type` names the event."""

    def __init__(self, event_type: str, what: str) -> None:
        super().__init__(f"event {event_type!r} cannot be logged: {what}", "INVALID_EVENT")
        self.event_type = event_type


class _Fault(Exception):
    """Why a value is not JSON; `own_json` adds the name of the event."""


def own_json(event_type: str, value: Any) -> Any:
    """A deep copy of `value`. Raises `InvalidEventError` unless it is losslessly JSON.

    Allowed: None, bool, str without lone surrogates, finite float, int up to 2^53−1, list, dict with str keys; exact
    types only (a subclass reads back as something else); at most 200 levels, which also refuses cycles.
    """
    try:
        return _own(value, MAX_DEPTH)
    except _Fault as fault:
        raise InvalidEventError(event_type, str(fault)) from None


def copy_json(value: Any) -> Any:
    """A deep copy of a value that is known to be JSON."""
    if type(value) is dict:
        return {key: copy_json(item) for key, item in cast("JsonObject", value).items()}
    if type(value) is list:
        return [copy_json(item) for item in cast("list[Any]", value)]
    return value


def _own(value: Any, depth: int) -> Any:
    found: Any = value  # a name that `type(…) is dict` does not narrow: a cast is a call
    if type(value) is dict:
        return _own_object(found, depth)
    if type(value) is list:
        if not depth:
            raise _Fault(_TOO_DEEP)
        return [_own(item, depth - 1) for item in found]
    _check_scalar(value)
    return value


def _own_object(value: JsonObject, depth: int) -> JsonObject:
    if not depth:
        raise _Fault(_TOO_DEEP)
    owned = value.copy()
    for key, item in value.items():
        if type(key) is not str:
            raise _Fault(f"a key of type {type(key).__name__} is not JSON")
        if not key.isascii():
            _check_text(key)
        # most values are short texts, small numbers and objects: spare them a call
        if type(item) is str and item.isascii():
            continue
        found: Any = item
        if type(item) is dict:
            owned[key] = _own_object(found, depth - 1)
        elif type(item) is list:
            owned[key] = _own(found, depth - 1)
        elif not (type(item) is int and MIN_INTEGER <= item <= MAX_INTEGER):
            _check_scalar(item)
    return owned


def _check_scalar(value: Any) -> None:
    if type(value) is str:
        _check_text(value)
    elif type(value) is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise _Fault(f"an integer beyond 2^53-1 ({value.bit_length()} bits) does not survive every JSON reader")
    elif type(value) is float:
        if not isfinite(value):
            raise _Fault(f"{value} is not a JSON number")
    elif value is not None and type(value) is not bool:
        raise _Fault(f"a {type(value).__name__} is not JSON")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _Fault(f"a text holds the lone surrogate U+{ord(text[error.start]):04X}") from None
