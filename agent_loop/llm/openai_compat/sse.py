"""Server-sent events out of bytes, sans I/O (contract llm.md §5).

May not know: HTTP, JSON, models. Invariant: the events are the same for every way of cutting the bytes. Lines end at
LF, CRLF or CR and nowhere else; text stays bytes until its event is complete, so no code point is ever cut and U+2028
is text.
"""

SseEvent = tuple[bytes, bytes]
"""(event name or `b""`, its data: the `data:` lines joined by LF)."""

_BOM = b"\xef\xbb\xbf"


class SseParser:
    """Feed it bytes, get the events that they complete. One per response."""

    __slots__ = ("_after_cr", "_data", "_event", "_first_line", "_partial")

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._after_cr = False
        self._first_line = True
        self._event = b""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[SseEvent]:
        """Take the next bytes. Linear in their number, however small the pieces."""
        if self._after_cr and data:
            # the LF of a CRLF that was cut in two ends no second line
            self._after_cr = False
            if data[0] == 0x0A:
                data = data[1:]
        if b"\n" not in data and b"\r" not in data:
            self._partial.append(data)
            return []
        # bytes.splitlines cuts at LF, CRLF and CR alone; str.splitlines would cut at U+2028 and friends
        lines = data.splitlines()
        lines[0] = b"".join(self._partial) + lines[0]
        self._after_cr = data[-1] == 0x0D
        self._partial = [] if data[-1] in b"\r\n" else [lines.pop()]
        events: list[SseEvent] = []
        for line in lines:
            self._line(line, events)
        return events

    def close(self) -> list[SseEvent]:
        """The end of the stream: what an unfinished last event holds (endpoints forget its final blank line)."""
        events: list[SseEvent] = []
        self._line(b"".join(self._partial), events)
        self._line(b"", events)
        self._partial = []
        return events

    def _line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append((self._event, b"\n".join(self._data)))
                self._data = []
            self._event = b""
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._event = value.removeprefix(b" ")
