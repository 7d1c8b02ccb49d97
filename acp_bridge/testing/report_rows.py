"""Puts two transcripts side by side: which frame answers to which, and what a person calls it.

May not know: HTML, files. Invariant: pure; every frame of both sides stands in exactly one row, in its order; a row is
`same` exactly when its two frames are equal.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject, as_object, encode
from acp_bridge.testing.normalise import update_of

Mark = Literal["same", "changed", "missing", "extra"]

_SHOWN = 160  # characters of a frame in its one line


@dataclass(frozen=True, slots=True)
class Row:
    """`missing`: only the expected frame stands there; `extra`: only the found one."""

    mark: Mark
    expected: JsonObject | None
    found: JsonObject | None


def align(expected: Sequence[JsonObject], found: Sequence[JsonObject], asked: Mapping[str, str]) -> list[Row]:
    """The rows. Between equal frames, frames of one kind are paired as `changed`; `asked` is that of `kind`."""
    rows: list[Row] = []
    for same, old, new in _blocks(expected, found, encode):
        if same:
            rows += [Row("same", before, after) for before, after in zip(old, new, strict=True)]
            continue
        for alike, olds, news in _blocks(old, new, lambda frame: kind(frame, asked)):
            if alike:
                rows += [Row("changed", before, after) for before, after in zip(olds, news, strict=True)]
            else:
                rows += [Row("missing", frame, None) for frame in olds]
                rows += [Row("extra", None, frame) for frame in news]
    return rows


def _blocks(
    old: Sequence[JsonObject], new: Sequence[JsonObject], key: Callable[[JsonObject], str]
) -> Iterator[tuple[bool, Sequence[JsonObject], Sequence[JsonObject]]]:
    matcher = SequenceMatcher(None, [key(frame) for frame in old], [key(frame) for frame in new], autojunk=False)
    for name, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        yield name == "equal", old[old_from:old_to], new[new_from:new_to]


def asked_methods(entries: Iterable[Entry], sender: Literal["client", "agent"]) -> dict[str, str]:
    """Request id, as JSON → method, of the requests of one side."""
    return {
        encode(entry.frame["id"]): str(entry.frame["method"])
        for entry in entries
        if entry.sender == sender and "id" in entry.frame and "method" in entry.frame
    }


def kind(frame: JsonObject, asked: Mapping[str, str]) -> str:
    """What a frame is, in a few words: its update, its method, or the method that it answers by `asked`."""
    if "method" in frame:
        return str(update_of(frame).get("sessionUpdate") or frame["method"])
    name = asked.get(encode(frame.get("id")))
    word = "error" if "error" in frame else "result"
    return f"{word} of {name}" if name else word


def line(frame: JsonObject) -> str:
    """What a frame says, in one line: its text, its (tool call's) title and status, else its body."""
    update = update_of(frame)
    card = as_object((as_object(frame.get("params")) or {}).get("toolCall")) or update
    text = (as_object(update.get("content")) or {}).get("text")
    body = {key: value for key, value in update.items() if key != "sessionUpdate"}
    if text is not None:
        said = encode(text)
    elif title := [str(card[key]) for key in ("title", "status") if card.get(key)]:
        said = encode(" · ".join(title))[1:-1]
    else:
        said = encode(body or frame.get("params") or frame.get("result") or frame.get("error") or {})
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"


def stretches(rows: Sequence[Row], *, distance: int) -> list[tuple[bool, list[Row]]]:
    """The rows in stretches: those within `distance` of one that differs (True), and those far from any (False)."""
    shown = [False] * len(rows)
    for index, row in enumerate(rows):
        if row.mark != "same":
            start, end = max(index - distance, 0), min(index + distance + 1, len(rows))
            shown[start:end] = [True] * (end - start)
    grouped = groupby(zip(shown, rows, strict=True), key=lambda pair: pair[0])
    return [(visible, [row for _, row in pairs]) for visible, pairs in grouped]
