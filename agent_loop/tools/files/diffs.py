"""What changed between two texts, as diffs for an editor (contract tools-and-bash.md §6, "Diffs").

May not know: files, who shows them. Invariant: pure; the work grows with the text, not with its square, and a large
text gives its hunks only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from agent_loop.tools.files.numbering import readable
from agent_loop.vocabulary import JsonObject

LARGE_LINES: Final = 10_000
LARGE_CHARACTERS: Final = 128 * 1024
"""Every change is kept in the log: above this it would grow by the whole file each time."""
_CONTEXT: Final = 3
_ALIGNED: Final = 2_000

_Change = tuple[int, int, int, int]  # lines [a, b) of the old text became lines [c, d) of the new one


@dataclass(frozen=True, slots=True)
class Changes:
    """`diffs` as in `DiffCard`; `line` is the first changed one in the new text (1-based), None without a change."""

    diffs: list[JsonObject]
    line: int | None
    added: int
    removed: int


def changes_of(
    path: str, old: str | None, new: str, *, whole: int = LARGE_CHARACTERS, room: int = 2 * LARGE_CHARACTERS
) -> Changes:
    """From `old` (None: there was no file) to `new`, both as they are stored.

    Up to `whole` characters the texts are shown whole, else the hunks, of which `room` characters are kept.
    """
    before, after = _lines(old or ""), _lines(new)
    changed = list(_changes(before, after))
    line = changed[0][2] + 1 if changed else None
    if max(len(before), len(after)) <= LARGE_LINES and max(len(old or ""), len(new)) <= whole:
        diffs = [_diff(path, None if old is None else readable(old), readable(new))]
    else:
        hunks = (
            _diff(path, None if old is None else readable("".join(before[a:b])), readable("".join(after[c:d])))
            for a, b, c, d in _hunks(changed, len(before), len(after))
        )
        diffs = _bounded(hunks, room)
    return Changes(diffs, line, sum(d - c for _, _, c, d in changed), sum(b - a for a, b, _, _ in changed))


def _bounded(hunks: Iterator[JsonObject], room: int) -> list[JsonObject]:
    """The hunks that fit: nobody reads a megabyte of changes."""
    kept: list[JsonObject] = []
    for hunk in hunks:
        for side in ("oldText", "newText"):
            text: str | None = hunk[side]
            if text is not None:
                hunk[side] = (
                    text if len(text) <= room else f"{text[:room]}\n[… {len(text) - room} characters left out …]\n"
                )
                room = max(room - len(text), 0)
        kept.append(hunk)
        if not room:
            break
    return kept


def _diff(path: str, old: str | None, new: str) -> JsonObject:
    return {"path": path, "oldText": old, "newText": new}


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _changes(before: list[str], after: list[str]) -> Iterator[_Change]:
    start, shorter = 0, min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    tail = 0
    while tail < shorter - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[start : len(before) - tail], after[start : len(after) - tail]
    if len(old) + len(new) <= _ALIGNED:
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                yield start + a, start + b, start + c, start + d
    elif len(old) == len(new):
        # many places of one line each, as when a name is replaced everywhere
        yield from _line_by_line(old, new, start)
    else:
        yield start, start + len(old), start, start + len(new)


def _line_by_line(old: list[str], new: list[str], start: int) -> Iterator[_Change]:
    # equal ends were cut off before, so the first line differs
    begin = end = start
    for index, (was, is_now) in enumerate(zip(old, new, strict=True), start):
        if was != is_now:
            if index > end:
                yield begin, end, begin, end
                begin = index
            end = index + 1
    yield begin, end, begin, end


def _hunks(changed: list[_Change], before: int, after: int) -> Iterator[_Change]:
    """The changes with lines around them; those that would touch are one."""
    hunk: _Change | None = None
    for a, b, c, d in changed:
        wide = (max(a - _CONTEXT, 0), min(b + _CONTEXT, before), max(c - _CONTEXT, 0), min(d + _CONTEXT, after))
        if hunk is not None and wide[0] <= hunk[1]:
            hunk = (hunk[0], wide[1], hunk[2], wide[3])
        else:
            if hunk is not None:
                yield hunk
            hunk = wide
    if hunk is not None:
        yield hunk
