"""Where the old text of an edit stands, and why it does not.

May not know: files, tools. Invariant: pure; an edit is never guessed — it matches character by character, or the reason
names the lines that come closest.
"""

import re
from difflib import SequenceMatcher
from typing import Final

from agent_loop.tools.files.seam import FileProblem

_NAMED: Final = 8
_COMPARED: Final = 5000
_SHOWN: Final = 160
_NUMBERED: Final = re.compile(r"^\s*\d+\t")


def spans_of(body: str, old: str, *, path: str, replace_all: bool) -> list[tuple[int, int]]:
    """Start and end of each place of `old` in `body`. Raises `FileProblem` (`NO_MATCH`) for none, and for several
    unless `replace_all`.
    """
    spans: list[tuple[int, int]] = []
    at = body.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = body.find(old, at + len(old))
    if not spans:
        raise FileProblem(f"old_string does not stand in {path}. {_closest(body, old)}", "NO_MATCH")
    if len(spans) > 1 and not replace_all:
        lines = [str(line_of(body, start)) for start, _ in spans[:_NAMED]]
        more = ", …" if len(spans) > _NAMED else ""
        raise FileProblem(
            f"old_string stands {len(spans)} times in {path} (lines {', '.join(lines)}{more}); add lines around it "
            "until it is unique, or set replace_all",
            "NO_MATCH",
        )
    return spans


def line_of(body: str, index: int) -> int:
    """The 1-based line of a character."""
    return body.count("\n", 0, index) + 1


def _closest(body: str, old: str) -> str:
    if not old.strip():
        return "It is blank, and so many blank lines are nowhere in it."
    wanted, lines = old.strip("\n").split("\n"), body.split("\n")
    if all(_NUMBERED.match(line) for line in wanted if line.strip()):
        return "It begins with line numbers: read shows them, they are not in the file."
    bare = [line.strip() for line in wanted]
    stripped = [line.strip() for line in lines]
    for start in range(len(lines) - len(bare) + 1):
        if stripped[start] == bare[0] and stripped[start : start + len(bare)] == bare:
            return f"The same words stand from line {start + 1} on with other white space; read those lines again."
    best, ratio = 0, 0.0
    first = next(line for line in bare if line)
    matcher = SequenceMatcher(None, b=first, autojunk=False)
    for number, line in enumerate(stripped[:_COMPARED]):
        matcher.set_seq1(line[:_SHOWN])
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio and matcher.ratio() > ratio:
            best, ratio = number, matcher.ratio()
    if ratio < 0.6:
        return "No line is like its first; read the file again."
    return f"Closest is line {best + 1}: {lines[best][:_SHOWN]!r}."
