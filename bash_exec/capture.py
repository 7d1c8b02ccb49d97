"""What is kept of one output stream, sans-IO (contract tools-and-bash.md §4, "Output").

May not know: pipes, files, the loop. Invariant: kept bytes + dropped bytes = bytes fed, memory never exceeds head +
tail, and no code point is split where bytes were dropped.
"""

import re
from typing import NamedTuple

from bash_exec.seam import StreamCapture

HEAD = 16 * 1024
TAIL = 48 * 1024

# possessive quantifiers: linear time on hostile output. A sequence cut at the end of the text is removed as well
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"  # CSI: colours, cursor moves, erase
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC strings
    r"|\x1b[ -/]*+[0-~]?"  # every other escape
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def model_text(text: str) -> str:
    r"""`text` as a reader without a terminal should see it.

    Escape sequences and control characters go; of a line rewritten with `\r` or `\b` its last state stays.
    """
    text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    if "\b" in text:
        text = _apply_backspaces(text)
    return _CONTROL.sub("", text)


def _apply_backspaces(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


def _sequence_length(lead: int) -> int:
    if lead < 0xC0 or lead >= 0xF8:
        return 1
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def incomplete_end(data: bytes | bytearray) -> int:
    """How many bytes at the end of `data` begin a UTF-8 code point that is not finished (0 to 3)."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            return back if _sequence_length(byte) > back else 0
    return 0


def continued_start(data: bytes | bytearray) -> int:
    """How many bytes at the start of `data` continue a code point that began before it (0 to 3)."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0xC0 == 0x80:
        count += 1
    return count


class OutputWindow:
    """Head and tail of one stream."""

    __slots__ = ("_head", "_head_limit", "_lines", "_nul", "_tail", "_tail_limit", "_total")

    def __init__(self, *, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._lines = 0
        self._nul = False

    @property
    def truncated(self) -> bool:
        """True once bytes were dropped."""
        return self._total > self._head_limit + self._tail_limit

    def feed(self, data: bytes) -> bytes:
        """Take one chunk, in amortised O(1) of the window.

        Returns the bytes that the spill file needs: none while the whole stream fits, then everything so far, then
        each chunk as it is.
        """
        overflowed = self.truncated
        self._total += len(data)
        self._lines += data.count(b"\n")
        self._nul = self._nul or b"\0" in data
        spill = b""
        if overflowed:
            spill = data
        elif self.truncated:
            spill = b"".join((self._head, self._tail, data))
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            del self._tail[:excess]
        return spill

    def capture(self, spill_path: str | None = None) -> StreamCapture:
        """The stream as it stands. `spill_path` is kept only when something was dropped."""
        if not self.truncated:
            text, binary = self._decode(bytes(self._head + self._tail))
            return StreamCapture(text, binary=binary)
        head = bytes(self._head[: len(self._head) - incomplete_end(self._head)])
        tail = bytes(self._tail[continued_start(self._tail) :])
        (first, odd_first), (last, odd_last) = self._decode(head), self._decode(tail)
        return StreamCapture(
            first + last,
            truncated=True,
            dropped_bytes=self._total - len(head) - len(tail),
            dropped_lines=self._lines - head.count(b"\n") - tail.count(b"\n"),
            spill_path=spill_path,
            binary=odd_first or odd_last,
        )

    def _decode(self, data: bytes) -> tuple[str, bool]:
        try:
            return model_text(data.decode()), self._nul
        except UnicodeDecodeError:
            return model_text(data.decode(errors="replace")), True


class OutputPiece(NamedTuple):
    """A part of a task's output. Offsets are bytes from its beginning; `lost` bytes before `offset` are gone."""

    text: str
    offset: int
    next_offset: int
    lost: int


class UnreadOutput:
    """The last bytes of a background task (both streams, in order of arrival), and how far they have been read.

    `limit`: bytes that are kept, at least the four of a code point.
    """

    __slots__ = ("_bytes", "_limit", "_next", "_start")

    def __init__(self, *, limit: int = HEAD + TAIL) -> None:
        self._limit = limit
        self._bytes = bytearray()
        self._start = 0  # the offset of the first byte that is still here
        self._next = 0  # the offset at which the next reader goes on

    def feed(self, data: bytes) -> None:
        """Take one chunk; what no longer fits falls out at the front."""
        self._bytes += data
        excess = len(self._bytes) - self._limit
        if excess > 0:
            del self._bytes[:excess]
            self._start += excess

    def take(self, *, final: bool) -> OutputPiece:
        """What came since the last call."""
        piece = self.peek(self._next, final=final)
        self._next = piece.next_offset
        return piece

    def peek(self, offset: int, *, final: bool) -> OutputPiece:
        """What came from `offset` (0 or more) on; reading it changes nothing.

        A code point that is not finished is left for the next piece unless the stream is `final`.
        """
        first = min(max(offset - self._start, 0), len(self._bytes))
        if offset < self._start:
            first += continued_start(self._bytes)
        end = len(self._bytes) - (0 if final else incomplete_end(self._bytes))
        end = max(first, end)
        text = model_text(bytes(self._bytes[first:end]).decode(errors="replace"))
        begin = self._start + first
        return OutputPiece(text, begin, self._start + end, max(0, begin - offset))
