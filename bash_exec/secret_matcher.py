"""Where forms of secrets stand in a text, whole or begun (contract tools-and-bash.md §5).

May not know: names, streams, who reads the text. Invariant: searching costs linear time in ordinary text, and text in
which no form stands has no occurrence.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from bash_exec.secret_forms import SHORTEST, is_ordinary

REVEAL = 5
"""Characters of a form's beginning that may show before it is held back, where anything may show at all."""
GAP = 10
"""Characters that may stand between two of a dumped form: a line break and an indentation, two blanks, a comma."""
CONTEXT = REVEAL * (GAP + 1)
"""Characters in which `REVEAL` characters of a form may stand."""

_GAPS = b" \t\r\n:,"
_HEAD = 4  # characters of a form that an end of a text is searched for, before the rest is compared
_SHORT = 1000  # characters of a text that is searched faster by one pattern for all forms than for each by itself


class _Squeezed:
    """A text without gaps that knows where each of its bytes stood."""

    def __init__(self, text: str, data: bytes) -> None:
        self.data = data
        gaps = _GAPS.decode()
        self.places = [place for place, character in enumerate(text) if character not in gaps]

    def find(self, form: bytes, position: int) -> tuple[int, int] | None:
        """`(start, end)`, in the text and not before `position`, of the first `form` that gaps interrupt."""
        at = self.data.find(form, bisect_left(self.places, position))
        while at >= 0:
            last = at + len(form) - 1
            if self.places[last] - self.places[at] >= len(form) and self.is_dense(at, last):
                return self.places[at], self.places[last] + 1
            at = self.data.find(form, at + 1)
        return None

    def is_dense(self, first: int, last: int) -> bool:
        """True when no gap between those two bytes is longer than it may be."""
        return all(self.places[at + 1] - self.places[at] <= GAP + 1 for at in range(first, last))


class _Beginning(NamedTuple):
    """A form that the end of a text begins: where it stands there, and how far it has come."""

    start: int
    written: str
    form: str


class Matcher:
    """Finds the forms that were added to it. `latin`: in texts that are bytes decoded as Latin-1."""

    __slots__ = ("_begin", "_dumped", "_heads", "_latin", "_longest", "_marks", "_stubs")

    def __init__(self, *, latin: bool = False) -> None:
        self._latin = latin
        self._marks: dict[str, str] = {}
        self._heads: list[tuple[str, str]] = []
        self._stubs: set[str] = set()
        self._dumped: dict[str, bytes] = {}
        self._longest = 0  # characters of a dumped form
        self._begin = self._find_begin

    @property
    def empty(self) -> bool:
        """True while no form was added."""
        return not self._marks

    @property
    def forms(self) -> int:
        """How many forms were added."""
        return len(self._marks)

    def add(self, form: str, mark: str, *, dumped: bool) -> None:
        """`mark` stands for `form`; a form that is known keeps its mark. `dumped`: gaps may interrupt it."""
        if form in self._marks:
            return
        self._marks[form] = mark
        self._heads.append((form[:_HEAD], form))
        self._stubs.update(form[:size] for size in range(1, REVEAL + 1))
        self._begin = self._find_begin
        if dumped and not form.isdigit():  # a column of numbers is no dump of one
            self._dumped[form] = form.encode()
            self._longest = max(self._longest, len(form))

    def _find_begin(self, data: bytes) -> object:
        # compiled when first needed, after all the forms of a start were added
        begins = {re.escape(self._squeezed(form[: REVEAL + 1])) for form in self._marks}
        self._begin = re.compile(b"|".join(sorted(begins))).search
        return self._begin(data)

    def _squeezed(self, text: str) -> bytes:
        """`text` without the characters that a dump puts between those of a form; a byte for each other character."""
        return text.encode("latin-1" if self._latin else "ascii", "replace").translate(None, _GAPS)

    def is_clear(self, text: str) -> bool:
        """True for a short text in which no more than `REVEAL` characters of a form stand together."""
        return len(text) < _SHORT and self._begin(self._squeezed(text)) is None

    def stub(self, text: str, start: int = 0) -> int:
        """Where the longest end of `text`, not before `start`, is that begins a form by at most `REVEAL` characters."""
        length = len(text)
        return next((at for at in range(max(start, length - REVEAL), length) if text[at:] in self._stubs), length)

    def occurrences(self, text: str) -> Iterator[tuple[int, int, str]]:
        """`(start, end, mark)` of each form, from the left, the longest first, none overlapping another."""
        if self.is_clear(text):
            return
        # every form is searched by itself: `str.find` passes over foreign text ten times faster than a pattern does
        found: list[tuple[int, int, str, _Squeezed | None]] = []
        for form in self._marks:
            start = text.find(form)
            if start >= 0:
                found.append((start, start + len(form), form, None))
        found += self._interrupted(text)
        while found:
            start, end, form, _where = min(found, key=lambda entry: (entry[0], -entry[1]))
            yield start, end, self._marks[form]
            again = [_next(text, entry, end) for entry in found if entry[0] < end]
            found = [entry for entry in found if entry[0] >= end] + [entry for entry in again if entry is not None]

    def _interrupted(self, text: str) -> Iterator[tuple[int, int, str, _Squeezed]]:
        """The first occurrence of each form that gaps interrupt."""
        data = self._squeezed(text)
        if len(data) == len(text):
            return
        where: _Squeezed | None = None
        for name, form in self._dumped.items():
            if form in data:
                where = where or _Squeezed(text, data)
                span = where.find(form, 0)
                if span is not None:
                    yield *span, name, where

    def unfinished(self, text: str, start: int) -> int:
        """Where the longest end of `text`, not before `start`, is that begins a form and does not finish it.

        Of one that gaps interrupt `REVEAL` characters may stand there all the same.
        """
        length = len(text)
        best = length
        for head, form in self._heads if length - start >= _HEAD else ():
            at = _begun(text, form, head, max(start, length - len(form) + 1), best + _HEAD)
            best = best if at is None else at
        if best == length:
            best = self.stub(text, start)
        return min([best, *(beginning.start for beginning in self._interrupted_beginnings(text, start))])

    def cut_off(self, text: str, start: int) -> tuple[int, str] | None:
        """Where, not before `start`, a form begins that the end of `text` cuts off, and its mark.

        Only what is long enough and no ordinary text: `SHORTEST` characters of a form.
        """
        beginnings = [*self._interrupted_beginnings(text, start)]
        for head, form in self._heads:
            at = _begun(text, form, head, max(start, len(text) - len(form) + 1), len(text))
            if at is not None:
                beginnings.append(_Beginning(at, text[at:], form))
        telling = [beginning for beginning in beginnings if self._tells(beginning)]
        if not telling:
            return None
        first = min(telling)
        return first.start, self._marks[first.form]

    def _tells(self, beginning: _Beginning) -> bool:
        written = beginning.written
        if self._latin:  # characters count, not bytes
            written = written.encode("latin-1").decode(errors="ignore")
        if len(written) < SHORTEST:
            return False
        return not (written.isdigit() if beginning.form in self._dumped else is_ordinary(written, cut=True))

    def _interrupted_beginnings(self, text: str, start: int) -> Iterator[_Beginning]:
        """Each dumped form that an end of `text`, not before `start`, begins with gaps in it or behind it."""
        offset = max(start, len(text) - self._longest * (GAP + 1))
        tail = text[offset:]
        data = self._squeezed(tail)
        if len(data) == len(tail) or len(data) <= REVEAL:
            return
        where: _Squeezed | None = None
        for name, form in self._dumped.items():
            at = data.find(form[: REVEAL + 1], max(0, len(data) - len(form) + 1))
            while at >= 0:
                if form.startswith(data[at:]):
                    where = where or _Squeezed(tail, data)
                    behind = len(tail) - where.places[-1] - 1
                    if behind <= GAP and where.is_dense(at, len(data) - 1):
                        yield _Beginning(offset + where.places[at], data[at:].decode(), name)
                        break
                at = data.find(form[: REVEAL + 1], at + 1)


def _begun(text: str, form: str, head: str, start: int, end: int) -> int | None:
    """Where in `text`, between `start` and `end`, the rest of it begins `form`."""
    at = text.find(head, start, end)
    while at >= 0:
        if form.startswith(text[at:]):
            return at
        at = text.find(head, at + 1, end)
    return None


def _next(
    text: str, entry: tuple[int, int, str, _Squeezed | None], position: int
) -> tuple[int, int, str, _Squeezed | None] | None:
    """The next occurrence of the entry's form, not before `position`."""
    _start, _end, form, where = entry
    if where is None:
        start = text.find(form, position)
        return (start, start + len(form), form, None) if start >= 0 else None
    span = where.find(form.encode(), position)
    return (*span, form, where) if span is not None else None
