"""Newline-delimited frames out of a byte stream, without I/O.

May not know: JSON, descriptors, the event loop. It imports nothing, because the light start path may use it before
anything heavy is loaded.
Invariant: only the byte 0x0A ends a frame (never U+2028, U+0085 or a bare CR), however the stream is cut into pieces;
a frame above the limit yields exactly one `OVERSIZE` and the frame behind it is intact (contract acp.md §1).
"""

_BOM = b"\xef\xbb\xbf"


class Oversize:
    """A frame above the limit stood here; its bytes are gone."""

    __slots__ = ()


OVERSIZE = Oversize()


class FrameSplitter:
    """Cuts a stream into frames: bytes without their newline, never blank, a leading BOM removed.

    `limit` counts the bytes of one line before its newline. Memory held is at most `limit` plus one piece.
    """

    __slots__ = ("_discarding", "_limit", "_pending")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._discarding = False

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """Take the next piece of the stream, give the frames that it completes.

        `OVERSIZE` comes as soon as the limit is passed: a sender that never ends its line is answered too.
        """
        events: list[bytes | Oversize] = []
        *ended, rest = data.split(b"\n")
        for line in ended:
            self._take(line, events)
            self._end_line(events)
        self._take(rest, events)
        return events

    def finish(self) -> list[bytes | Oversize]:
        """The stream has ended: a last line without newline is a frame like any other."""
        events: list[bytes | Oversize] = []
        self._end_line(events)
        return events

    def _take(self, piece: bytes, events: list[bytes | Oversize]) -> None:
        if self._discarding:
            return
        self._pending += piece
        if len(self._pending) > self._limit:
            self._discarding = True
            self._pending = bytearray()
            events.append(OVERSIZE)

    def _end_line(self, events: list[bytes | Oversize]) -> None:
        frame = bytes(self._pending).removeprefix(_BOM)
        if frame and not frame.isspace():
            events.append(frame)
        self._pending.clear()
        self._discarding = False
