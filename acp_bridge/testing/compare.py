"""Says where two record lists part: the first differing record, field by field, with its neighbours.

May not know: what the records are. Invariant: pure; equal lists give None; a difference never prints whole documents.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode

_SHOWN = 300  # characters of one value or neighbour


def difference(expected: Sequence[JsonObject], found: Sequence[JsonObject], *, what: str, accept: str) -> str | None:
    """A readable account of the first difference, or None. `accept` is the command that takes `found` as right."""
    for index in range(max(len(expected), len(found))):
        old, new = expected[index : index + 1], found[index : index + 1]
        fields = list(field_differences("$", old[0], new[0])) if old and new else []
        if old and new and not fields:
            continue
        lines = [f"{what} differs at record {index + 1} (expected {len(expected)} records, found {len(found)})"]
        lines += [f"  before: {_short(record)}" for record in expected[max(index - 1, 0) : index]]
        lines += [f"  {path}: expected {before}, found {after}" for path, before, after in fields]
        if not fields:
            lines.append(f"  missing: {_short(old[0])}" if old else f"  too many: {_short(new[0])}")
        lines += [f"  after, expected: {_short(record)}" for record in expected[index + 1 : index + 2]]
        lines += [f"  after, found: {_short(record)}" for record in found[index + 1 : index + 2]]
        lines.append(f"  if the new one is right: {accept}")
        return "\n".join(lines)
    return None


def field_differences(path: str, expected: Any, found: Any) -> Iterator[tuple[str, str, str]]:
    """Each field below `path` that differs: its path, and both values as (shortened) JSON, or the word nothing."""
    old, new = _children(expected), _children(found)
    if old is None or new is None or type(expected) is not type(found):
        if expected != found or type(expected) is not type(found):
            yield path, _short(expected), _short(found)
        return
    for part in {**old, **new}:
        if part not in old:
            yield path + part, "nothing", _short(new[part])
        elif part not in new:
            yield path + part, _short(old[part]), "nothing"
        else:
            yield from field_differences(path + part, old[part], new[part])


def _children(value: Any) -> JsonObject | None:
    if (table := as_object(value)) is not None:
        return {f".{key}": item for key, item in table.items()}
    if (items := as_list(value)) is not None:
        return {f"[{index}]": item for index, item in enumerate(items)}
    return None


def _short(value: Any) -> str:
    text = encode(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
