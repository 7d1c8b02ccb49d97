"""Where the file tools read and write: the disk, or an editor with its unsaved buffers (contract tools-and-bash.md §6).

May not know: which one it is, tools. Invariant: a text goes out as it came in — byte order mark, line endings and bytes
that are no UTF-8 (as lone surrogates) included — and what a session has seen of a file is remembered by its content.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from agent_loop.abort import AbortSignal
from agent_loop.errors import HarnessError

WHOLE_LIMIT: Final = 16 << 20
"""Bytes of a file up to which it is read as a whole, and can be edited."""


class FileProblem(HarnessError):
    """A file that cannot be read or written; the sentence names it and the way round.

    Codes: `NOT_FOUND`, `NOT_A_FILE`, `NOT_A_DIRECTORY`, `NOT_TEXT`, `TOO_LARGE`, `NO_ACCESS`, `OUTSIDE`, `STALE`,
    `NO_MATCH`, `IO`, `aborted`.
    """


@dataclass(frozen=True, slots=True)
class Place:
    """What a call names: `path` as people know it (absolute, normalised), `real` without any link.

    `inside`: `real` lies in a workspace root; else the permission policy has granted it.
    """

    path: str
    real: str
    inside: bool = True


@dataclass(frozen=True, slots=True)
class LineWindow:
    """Some lines of a file, without their ends, from line `first` (1-based) on.

    `total` counts the lines of the file; None when they were not all counted. `more`: lines follow.
    """

    lines: tuple[str, ...]
    first: int
    total: int | None
    more: bool


class SeenFiles:
    """The content of each file as the session last saw or wrote it, as a hash; in memory only."""

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}

    def note(self, place: Place, text: str) -> None:
        """The model knows this text now."""
        self._digests[place.real] = _digest(text)

    def knows(self, place: Place) -> bool:
        """Whether the file was read or written in this session."""
        return place.real in self._digests

    def is_current(self, place: Place, text: str) -> bool:
        """Whether the file still holds what was seen."""
        return self._digests.get(place.real) == _digest(text)


class FileBackend(ABC):
    """Reads and writes whole texts for one session; `seen` is what that session knows.

    Every method may raise `FileProblem`, also with the code `aborted` when `signal` aborts first.
    """

    def __init__(self) -> None:
        self.seen = SeenFiles()

    @abstractmethod
    async def read(self, place: Place, *, signal: AbortSignal) -> str | None:
        """The text of a file; None when there is none. `TOO_LARGE` above `WHOLE_LIMIT`: `window` reads such a file."""

    @abstractmethod
    async def window(self, place: Place, *, first: int, count: int, signal: AbortSignal) -> LineWindow:
        """Up to `count` lines from `first` (1-based) on, without holding the whole file."""

    @abstractmethod
    async def write(self, place: Place, text: str, *, signal: AbortSignal) -> None:
        """Replace or create the file, with the directories above it; all of it, or nothing."""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
