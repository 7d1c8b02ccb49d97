"""Line ends and byte order mark of a text, which a change keeps.

May not know: files, tools. Invariant: pure; a text that is not changed comes out as it went in, mixed line ends too.
"""

from bisect import bisect_left
from typing import Final

MARK: Final = "\ufeff"


class Layout:
    """A text as it is stored, and `body`: the same without mark, every line ending in a line feed alone."""

    def __init__(self, stored: str) -> None:
        self._mark = MARK if stored.startswith(MARK) else ""
        self._stored = stored.removeprefix(MARK)
        self.body = self._stored.replace("\r\n", "\n")
        self._removed = _removed(self._stored)
        self._end = "\r\n" if len(self._removed) > self.body.count("\n") / 2 else "\n"

    def replaced(self, spans: list[tuple[int, int]], new: str) -> str:
        """The stored text with `new` in the place of each span of `body` (start, end; in order, without overlap)."""
        written = self._ended(new)
        parts: list[str] = []
        position = 0
        for start, end in spans:
            parts += (self._stored[position : self._at(start)], written)
            position = self._at(end)
        return "".join((self._mark, *parts, self._stored[position:]))

    def rewritten(self, body: str) -> str:
        """`body` as the whole new text, with the old mark and line ends."""
        return self._mark + self._ended(body.removeprefix(MARK))

    def _at(self, index: int) -> int:
        return index + bisect_left(self._removed, index)

    def _ended(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", "\r\n") if self._end == "\r\n" else text


def _removed(stored: str) -> list[int]:
    """For each carriage return before a line feed, the place of that line feed in the text without them."""
    places: list[int] = []
    at = stored.find("\r\n")
    while at >= 0:
        places.append(at - len(places))
        at = stored.find("\r\n", at + 2)
    return places
