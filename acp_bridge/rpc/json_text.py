"""JSON as this wire reads and writes it.

May not know: envelopes. pydantic_core does the work; the standard library decides only where it refuses (a lone
surrogate is legal JSON that it will not read).
Invariant: `decode` raises nothing but `ValueError`, whatever the bytes; what it gives is at most `MAX_DEPTH` deep and
free of lone surrogates; what `encode` gives is UTF-8 without NaN and without any character that some reader takes for
the end of a line (contract acp.md §1).
"""

import json
import re
from typing import Any, Never, cast

from pydantic_core import from_json, to_json

MAX_DEPTH = 200
_SURROGATE = re.compile("[\ud800-\udfff]")


def decode(text: bytes) -> Any:
    """Read one JSON value. Raises `ValueError`: no JSON, no UTF-8, NaN, too deep, a number of too many digits."""
    try:
        value = from_json(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return _repaired(_decode_leniently(text), depth=0)
    # the fast reader lets some containers of one level more pass; counting openers first keeps the check off the path
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        _repaired(value, depth=0)
    return value


def encode(value: Any) -> bytes:
    """Write `value` compactly, keys in their order, without a newline. Infinite numbers become null.

    Raises `ValueError` for a type that is no JSON and for more than about 250 levels.
    """
    try:
        text = to_json(value, inf_nan_mode="null")
    except ValueError:
        text = to_json(_repaired(value, depth=0), inf_nan_mode="null")
    if b"\xe2\x80" in text:
        text = text.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in text:
        text = text.replace(b"\xc2\x85", b"\\u0085")
    return text


def _decode_leniently(text: bytes) -> Any:
    try:
        # decoded here: given bytes, json.loads would guess UTF-16 and accept it
        return json.loads(text.decode(), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from error


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON number")


def _repaired(value: Any, *, depth: int) -> Any:
    """The same value with U+FFFD for each lone surrogate; raises `ValueError` below `MAX_DEPTH`."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if not isinstance(value, (dict, list)):
        return value
    if depth == MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {_repaired(key, depth=depth + 1): _repaired(member, depth=depth + 1) for key, member in members.items()}
    return [_repaired(item, depth=depth + 1) for item in cast("list[Any]", value)]
