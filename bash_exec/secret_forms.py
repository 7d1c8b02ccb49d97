"""How a secret may look in a text, and where such forms stand in one (contract tools-and-bash.md §5).

May not know: names, streams, who reads the text. Invariant: searching costs linear time in ordinary text, and text in
which no form stands has no occurrence.
"""

import json
import re
from binascii import b2a_base64
from collections.abc import Callable, Iterator

SHORTEST = 8
"""Characters of a form; a shorter value is a word that ordinary text may rightly hold."""
DELTA_REVEAL = 5
"""Characters of a form's beginning that a model delta may show, so that one delta stays one frame."""

_HEAD = 4  # characters of a form that an end of a text is searched for, before the rest is compared
_NUMBER = re.compile(r"[-+]?[\d.,:]+")
_PATH = re.compile(r"(?:~|\.{1,2})?/")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#\s]*")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


def is_ordinary(value: str) -> bool:
    """True for a path, a URL without userinfo, a number, or letters only: text that may be no secret at all."""
    if value.isalpha() or _NUMBER.fullmatch(value) or _PATH.match(value):
        return True
    url = _URL.match(value)
    return url is not None and "@" not in url[0]


def utf8(text: str) -> bytes:
    """The bytes of an environment's text, undecodable ones included."""
    return text.encode(errors="surrogateescape")


def forms_of(value: str) -> Iterator[str]:
    """`value` plain, in hex, base64, URL-quoted and JSON-escaped, some of them twice.

    base64: the characters that do not depend on what stands before or behind it, for each of the three alignments.
    Not among them: a form that something else interrupts, such as the line breaks of `base64`.
    """
    data = utf8(value)
    yield value
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        coded = b2a_base64(bytes(before) + data, newline=False).decode()
        own = coded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield own
        yield own.replace("+", "-").replace("/", "_")
    for kept in (b"", b"/"):
        quoted = "".join(chr(byte) if byte in _UNQUOTED or byte in kept else f"%{byte:02X}" for byte in data)
        yield quoted
        yield quoted.replace("%20", "+")
        yield _ESCAPE.sub(lambda found: found[0].lower(), quoted)
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")


class Matcher:
    """Finds the forms that were added to it."""

    __slots__ = ("_heads", "_marks", "_stubs", "begin")

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._heads: list[tuple[str, str]] = []
        self._stubs: set[str] = set()
        self.begin: Callable[[str], object] | None = None
        """Something when more than `DELTA_REVEAL` characters of a form's beginning stand in the text; None: no form."""

    def add(self, form: str, mark: str) -> None:
        """`mark` stands for `form`; a form that is known keeps its mark."""
        if form not in self._marks:
            self._marks[form] = mark
            self._heads.append((form[:_HEAD], form))
            self._stubs.update(form[:size] for size in range(1, _HEAD))
            self.begin = self._find_begin

    def _find_begin(self, text: str) -> object:
        # compiled when first needed, after all the forms of a start were added
        begins = {re.escape(form[: DELTA_REVEAL + 1]) for form in self._marks}
        self.begin = re.compile("|".join(sorted(begins))).search
        return self.begin(text)

    def occurrences(self, text: str) -> Iterator[tuple[int, int, str]]:
        """`(start, end, mark)` of each form, from the left, the longest first, none overlapping another."""
        # every form is searched by itself: `str.find` passes over foreign text ten times faster than a pattern does
        found: list[tuple[int, int, str]] = []
        for form in self._marks if len(text) >= SHORTEST else ():
            start = text.find(form)
            if start >= 0:
                found.append((start, -len(form), form))
        while found:
            start, _length, form = min(found)
            end = start + len(form)
            yield start, end, self._marks[form]
            again = [(text.find(form, end), length, form) for at, length, form in found if at < end]
            found = [entry for entry in found if entry[0] >= end] + [entry for entry in again if entry[0] >= 0]

    def unfinished(self, text: str, start: int) -> int:
        """Where the longest end of `text`, not before `start`, is that begins a form and does not finish it."""
        length = len(text)
        best = length
        for head, form in self._heads if length - start >= _HEAD else ():
            at = text.find(head, max(start, length - len(form) + 1), best + _HEAD)
            while 0 <= at < best:
                if form.startswith(text[at:]):
                    best = at
                else:
                    at = text.find(head, at + 1)
        if best < length:
            return best
        return next((at for at in range(max(start, length - _HEAD + 1), length) if text[at:] in self._stubs), length)
