"""What a listing shows of one stored log, read without parsing its lines (contract session-log.md §9, "List").

May not know: where outlines are kept. Invariant: reads every byte of a log at most once however often it is asked, as
logs only grow; a file that was cut or replaced is read anew. Nothing that stands in a file makes it fail.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_loop.session.codec import LineError, UnknownVersionError, decode_event, decode_header
from agent_loop.session.layout import SUFFIX, bucket_of, encode_id
from agent_loop.session.shapes import shape_fault
from agent_loop.session.store import SessionSummary

# The envelope's key order is the contract's, so a line tells its seq and time at its beginning, whatever follows.
_ENVELOPE: Final = re.compile(rb'\{"type":"[^"\\]*","seq":(\d{1,15}),"time":(-?\d{1,15}),"data":')
_ENVELOPE_BYTES: Final = 256
_TITLE: Final = b'\n{"type":"session/title",'
_HEADER_BYTES: Final = 1 << 20
_FORWARD_BYTES: Final = 1 << 20
_BACKWARD_BYTES: Final = 1 << 16
_MAX_TIME: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Outline:
    """One log as it was when its file had this inode, size and time. `read_to` ends behind the last good line.

    `id` is None when the file is no log that a load would open: its header is unreadable, or names another place.
    """

    inode: int
    size: int
    mtime_ns: int
    read_to: int = 0
    id: str | None = None
    cwd: str | None = None
    title: str | None = None
    created_at: int = 0
    updated_at: int = 0
    event_count: int = 0

    def describes(self, status: os.stat_result) -> bool:
        """The file has not changed since."""
        return (self.inode, self.size, self.mtime_ns) == (status.st_ino, status.st_size, status.st_mtime_ns)

    def summary(self) -> SessionSummary | None:
        """The row of a listing; None for a file that is no log."""
        if self.id is None:
            return None
        return SessionSummary(
            self.id, self.cwd, self.title, self.created_at, self.updated_at, self.event_count, self.size
        )


def read_outline(root: Path, file: str, known: Outline | None) -> Outline:
    """Read `file` (its path below `root`), from where `known` ends when that is its beginning. Raises `OSError`."""
    descriptor = os.open(root / file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        now = Outline(status.st_ino, status.st_size, status.st_mtime_ns)
        if known is not None and known.id is not None and _goes_on(descriptor, known, now):
            begun = replace(known, size=now.size, mtime_ns=now.mtime_ns)
        else:
            begun = _begin(descriptor, file, now)
        return _read_on(descriptor, begun) if begun.id is not None else begun
    finally:
        os.close(descriptor)


def _begin(descriptor: int, file: str, now: Outline) -> Outline:
    line = os.pread(descriptor, _HEADER_BYTES, 0).partition(b"\n")
    try:
        header = decode_header(line[0]) if line[1] else None
    except (LineError, UnknownVersionError):
        return now
    if header is None or not header.id or f"{bucket_of(header.cwd)}/{encode_id(header.id)}{SUFFIX}" != file:
        return now
    created = max(-_MAX_TIME, min(header.created_at, _MAX_TIME))
    return replace(now, read_to=len(line[0]) + 1, id=header.id, cwd=header.cwd, created_at=created, updated_at=created)


def _goes_on(descriptor: int, known: Outline, now: Outline) -> bool:
    """What stands behind `known` is its next event, or nothing whole yet."""
    if now.inode != known.inode or now.size < known.size:
        return False
    start = os.pread(descriptor, _ENVELOPE_BYTES, known.read_to)
    envelope = _ENVELOPE.match(start)
    return int(envelope[1]) == known.event_count if envelope else b"\n" not in start


def _read_on(descriptor: int, begun: Outline) -> Outline:
    start, end = begun.read_to, begun.size
    last = _last_envelope(descriptor, start, end)
    if last is None:
        return begun
    title = begun.title
    for at in _occurrences(descriptor, _TITLE, start - 1, last[0]):
        title = _title_at(descriptor, at + 1, last[0]) or title
    return replace(begun, read_to=last[0], title=title, updated_at=last[2], event_count=last[1] + 1)


def _last_envelope(descriptor: int, start: int, end: int) -> tuple[int, int, int] | None:
    """(offset behind it, seq, time) of the last good line between the offsets."""
    stop = _find_backward(descriptor, start, end)
    while stop > start:
        begin = _find_backward(descriptor, start, stop - 1)
        envelope = _ENVELOPE.match(os.pread(descriptor, _ENVELOPE_BYTES, begin))
        if envelope:
            return stop, int(envelope[1]), int(envelope[2])
        stop = begin
    return None


def _find_backward(descriptor: int, start: int, end: int) -> int:
    """The offset behind the last line end between the offsets, `start` when there is none."""
    while end > start:
        begin = max(start, end - _BACKWARD_BYTES)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return start


def _occurrences(descriptor: int, needle: bytes, start: int, end: int) -> Iterator[int]:
    """The offsets of `needle` between the offsets, in order."""
    while end - start >= len(needle):
        block = os.pread(descriptor, min(_FORWARD_BYTES, end - start), start)
        found = block.find(needle)
        while found >= 0:
            yield start + found
            found = block.find(needle, found + 1)
        # one that begins here and ends in the next block is found there
        start += max(len(block) - len(needle) + 1, 1)


def _title_at(descriptor: int, start: int, end: int) -> str | None:
    line = b""
    while b"\n" not in line:
        line += os.pread(descriptor, min(_BACKWARD_BYTES, end - start - len(line)), start + len(line))
    try:
        event_type, _seq, _time, data = decode_event(line.partition(b"\n")[0])
    except LineError:
        return None
    return data["title"] if shape_fault(event_type, data) is None else None
