"""JSON values and JSON lines, as the harness handles them.

May not know: what they mean. Invariant: only 0x0A ends a line (U+2028 and friends are text); key order is kept.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

JsonObject = dict[str, Any]


def as_object(value: Any) -> JsonObject | None:
    """`value` if it is a JSON object."""
    return cast("JsonObject", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """`value` if it is a JSON array."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def contains(value: Any, wanted: Any) -> bool:
    """Whether every field of `wanted` stands in `value`, at any depth; lists must have the same length."""
    table, fields = as_object(value), as_object(wanted)
    if table is not None and fields is not None:
        return all(key in table and contains(table[key], item) for key, item in fields.items())
    items, wanted_items = as_list(value), as_list(wanted)
    if items is not None and wanted_items is not None:
        return len(items) == len(wanted_items) and all(map(contains, items, wanted_items))
    return type(value) is type(wanted) and value == wanted


def read_lines(path: Path) -> list[JsonObject]:
    """The objects of a JSON lines file. Raises `ValueError` that names the file and the line."""
    records: list[JsonObject] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line:
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
    return records


def write_lines(path: Path, records: Iterable[JsonObject]) -> None:
    """Write one compact object a line."""
    path.write_text(lines_of(records), encoding="utf-8", newline="\n")


def lines_of(records: Iterable[JsonObject]) -> str:
    """The text of a JSON lines file: one compact object a line."""
    return "".join([encode(record) + "\n" for record in records])


def encode(value: Any) -> str:
    """Compact JSON; line separators that editors cut at are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for separator in ("\u2028", "\u2029", "\u0085"):
        text = text.replace(separator, f"\\u{ord(separator):04x}")
    return text
