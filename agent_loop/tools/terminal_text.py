"""Raw command output made safe for an editor's terminal card: sans-IO, incremental.

May not know: where the bytes come from or go. Invariant: the text is the same for any chunking of the bytes, and
sanitising it again changes nothing. Kept: printable text, backspace, tab, line feed, carriage return, colour (SGR) and
erase-in-line. Removed: strings (OSC, DCS, SOS, PM, APC: titles, clipboard writes, links, images), cursor and mode
sequences, all other control characters. Source: contract acp.md §3 (terminal card).
"""

import codecs
import re
from collections import deque
from typing import Final, Literal

HEAD_BYTES: Final = 16 * 1024
TAIL_BYTES: Final = 48 * 1024

_State = Literal["ground", "escape", "intermediate", "csi", "osc", "string"]

# whole runs of text and complete colour sequences in one match: a flood of colour costs no step per sequence. Not
# possessive: a group that is so takes back half of a sequence that does not fit, up to Python 3.11.4
_KEPT: Final = re.compile("(?:[^\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]+|\x1b\\[[0-9;:]{0,127}[mK])+")
_CSI_BODY: Final = re.compile("[ -?]+")
# a parameter string that colours or erases: no private marker, no intermediate
_CSI_KEPT: Final = re.compile("[0-9;:]*[mK]")
# longer than any real colour sequence; what is longer is dropped, so that nothing unbounded is held back
_CSI_LIMIT: Final = 128
_STRING_ENDS: Final[dict[_State, re.Pattern[str]]] = {
    # a line feed ends an unterminated OSC: a stray introducer must not hide the rest of the output
    "osc": re.compile("[\x07\n\x18\x1a\x1b\x9c]"),
    "string": re.compile("[\x18\x1a\x1b\x9c]"),
}
_AFTER_CONTROL: Final[dict[str, _State]] = {
    "\x1b": "escape",
    "\x9b": "csi",
    "\x9d": "osc",
    "\x90": "string",
    "\x98": "string",
    "\x9e": "string",
    "\x9f": "string",
}
_AFTER_ESCAPE: Final[dict[str, _State]] = {
    "[": "csi",
    "]": "osc",
    "P": "string",
    "X": "string",
    "^": "string",
    "_": "string",
}


class TerminalText:
    """Bytes in, displayable text out. At most one incomplete character and one short sequence are held back."""

    __slots__ = ("_csi", "_decoder", "_state")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._state: _State = "ground"
        self._csi = ""

    def feed(self, data: bytes) -> str:
        """The text that `data` completes."""
        return self._clean(self._decoder.decode(data))

    def finish(self) -> str:
        """The end of the stream: a cut character becomes U+FFFD, a cut sequence is dropped."""
        return self._clean(self._decoder.decode(b"", final=True))

    def _clean(self, text: str) -> str:
        out: list[str] = []
        position = 0
        while position < len(text):
            if self._state == "ground":
                position = self._ground(text, position, out)
            elif self._state == "csi":
                position = self._control_sequence(text, position, out)
            elif self._state in _STRING_ENDS:
                position = self._string(text, position)
            else:
                position = self._escape(text, position)
        return "".join(out)

    def _ground(self, text: str, position: int, out: list[str]) -> int:
        kept = _KEPT.match(text, position)
        end = kept.end() if kept else position
        out.append(text[position:end])
        if end == len(text):
            return end
        self._state = _AFTER_CONTROL.get(text[end], "ground")
        return end + 1

    def _escape(self, text: str, position: int) -> int:
        char = text[position]
        if " " <= char <= "/":
            self._state = "intermediate"
            return position + 1
        after = _AFTER_ESCAPE.get(char, "ground") if self._state == "escape" else "ground"
        self._state = after
        # a final byte belongs to the sequence; anything else ended it early and stands for itself
        return position + 1 if "0" <= char <= "~" else position

    def _control_sequence(self, text: str, position: int, out: list[str]) -> int:
        body = _CSI_BODY.match(text, position)
        end = body.end() if body else position
        self._csi = (self._csi + text[position:end])[:_CSI_LIMIT]
        if end == len(text):
            return end
        final = text[end]
        if "@" <= final <= "~":
            if len(self._csi) < _CSI_LIMIT and _CSI_KEPT.fullmatch(self._csi + final):
                out.append(f"\x1b[{self._csi}{final}")
            end += 1
        self._csi = ""
        self._state = "ground"
        return end

    def _string(self, text: str, position: int) -> int:
        found = _STRING_ENDS[self._state].search(text, position)
        if found is None:
            return len(text)
        self._state = "ground"
        # escape (the start of ST or of the next sequence) and line feed are looked at again
        return found.start() if found[0] in "\x1b\n" else found.end()


class TerminalCapture:
    """Sanitised output kept for the log: whole up to head + tail, else both ends and a note between them.

    Sizes are UTF-8 bytes. O(1) per chunk, memory bounded by head + tail + one chunk. `dropped`: how many of them
    `finish` left out.
    """

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "_tail_size", "_text", "dropped")

    def __init__(self, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._text = TerminalText()
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        """Take the next raw bytes."""
        self._keep(self._text.feed(data).encode())

    def finish(self) -> str:
        """The kept text; call once, after the last byte."""
        self._keep(self._text.finish().encode())
        tail = b"".join(self._tail)
        if self.dropped == 0 and len(tail) <= self._tail_limit:
            return (self._head + tail).decode()
        self.dropped += len(tail)
        head = self._head.decode(errors="ignore")
        ending = _whole_lines(tail[-self._tail_limit :])
        self.dropped += len(self._head) - len(head.encode()) - len(ending.encode())
        # the reset also ends a colour sequence that the cut went through
        return f"{head}\x1b[0m\n[{self.dropped} bytes not shown]\n{ending}"

    def _keep(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self.dropped += gone


def _whole_lines(data: bytes) -> str:
    text = data.decode(errors="ignore")
    newline = text.find("\n")
    return text[newline + 1 :] if newline >= 0 else text
