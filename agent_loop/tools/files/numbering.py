"""Windows of lines, and their text for the model: numbered, limited, with a footer that says what is left.

May not know: files' names, tools. Invariant: pure but for the file that is read; a line ends at a line feed and nowhere
else, and a long file is never held whole.
"""

from collections.abc import Callable
from typing import IO, Final

from agent_loop.tools.files.seam import LineWindow

LINES: Final = 2000
LINE_CHARACTERS: Final = 2000
TEXT_BYTES: Final = 50 * 1024
_PIECE: Final = 4 * LINE_CHARACTERS + 4


def window_of(text: str, *, first: int, count: int) -> LineWindow:
    """Up to `count` lines of `text` from `first` (1-based) on. A line feed at the end begins no further line."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    chosen = lines[first - 1 : first - 1 + count]
    return LineWindow(
        tuple(line.removesuffix("\r") for line in chosen), first, len(lines), more=first - 1 + count < len(lines)
    )


def long_file_window(file: IO[bytes], *, first: int, count: int, stopped: Callable[[], bool]) -> LineWindow:
    """The same of a file that may be of any length; of a long line the beginning. Ends early when `stopped`."""
    lines: list[str] = []
    number, begins = 1, True
    while (piece := file.readline(_PIECE)) and not stopped():
        if begins and number == first + count:
            return LineWindow(tuple(lines), first, None, more=True)
        if begins and number >= first:
            lines.append(piece.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r").removeprefix("\ufeff"))
        begins = piece.endswith(b"\n")
        number += begins
    return LineWindow(tuple(lines), first, number - begins, more=False)


def numbered(window: LineWindow) -> tuple[str, int]:
    """The lines as `<number>⇥<text>`, and how many of them fitted; a long line is cut, saying so."""
    shown: list[str] = []
    size = 0
    for number, line in enumerate(window.lines, window.first):
        text = line
        if len(line) > LINE_CHARACTERS:
            text = f"{line[:LINE_CHARACTERS]}… [line cut after {LINE_CHARACTERS} characters]"
        row = f"{number:6}\t{readable(text)}"
        size += len(row.encode()) + 1
        if size > TEXT_BYTES and shown:
            break
        shown.append(row)
    return "\n".join(shown), len(shown)


def footer(window: LineWindow, shown: int) -> str | None:
    """What of the file is not in `shown` lines of the window; None when they reach its end."""
    last = window.first + shown - 1
    if not window.more and shown == len(window.lines):
        return None
    total = "" if window.total is None else f" of {window.total}"
    return f"[lines {window.first}-{last}{total} shown; read on with offset={last + 1}]"


def readable(text: str) -> str:
    """`text` with the bytes that are no UTF-8 as U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
