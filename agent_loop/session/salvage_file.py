"""Salvaging the file of a damaged log, in place (contract session-log.md §9).

May not know: sessions, who asks. Invariant: the old log stands under its name until the new one is whole and durable,
and none of its lines is given up before it is durable in the new log or beside it.

What cannot be kept is appended to `<file>.damaged`: for each part one line of JSON that tells its place, its length
in bytes and what is wrong with it, then the part verbatim, then a line end. `<file>.before-repair` is the whole old
log; it is there only while the new one takes its place, and after a crash in that moment.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self

import pydantic_core

from agent_loop.session.codec import LineError, UnknownVersionError, decode_header, encode_header
from agent_loop.session.events import LOG_VERSION, SessionHeader
from agent_loop.session.glued import first_object
from agent_loop.session.layout import NO_CWD_BUCKET, SUFFIX, bucket_of
from agent_loop.session.log_file import FileOperations
from agent_loop.session.migrations import steps_from
from agent_loop.session.salvage import Keep, LogSalvage, Reject
from agent_loop.session.scan import LogScan
from agent_loop.session.store import (
    Quarantined,
    SalvageReport,
    SessionDamagedError,
    SessionVersionError,
    ignore_event,
)

_BATCH_BYTES: Final = 1 << 20


CheckHeader = Callable[[SessionHeader], None]
"""Raises when such a header cannot be that of the log at its path."""


def salvage_file(
    session_id: str, path: Path, *, check_header: CheckHeader, operations: FileOperations
) -> SalvageReport:
    """Repair the log at `path`, whose lock the caller holds. Blocking: for a worker thread.

    A log that a load would accept stays as it is, byte for byte. Raises `OSError`, `SessionVersionError`, what
    `check_header` raises, and `SessionDamagedError` when the header is lost and nothing tells the working directory,
    or when no event is left that could stay.
    """
    with path.open("rb") as file:
        scan = LogScan(session_id, file, ignore_event)
        try:
            check_header(scan.read_header())
            while scan.advance():
                continue
        except SessionDamagedError as damage:
            return _DamagedFile(session_id, path, file, operations).repair(check_header, damage)
    # a crash may have left it; the log that took its place is whole
    _beside(path, ".before-repair").unlink(missing_ok=True)
    return SalvageReport(scan.event_count)


class _Start(NamedTuple):
    """What line 1 says, how many of its bytes say it, and the number of the line that goes on behind them."""

    header: SessionHeader | None
    size: int
    next_line: int


class _DamagedFile:
    def __init__(self, session_id: str, path: Path, file: BinaryIO, operations: FileOperations) -> None:
        self._session_id = session_id
        self._path = path
        self._file = file
        self._operations = operations

    def repair(self, check_header: CheckHeader, damage: SessionDamagedError) -> SalvageReport:
        start = self._start()
        # two passes: what the header must say is known when the events have been read
        quarantined: list[Quarantined] = []
        found = self._pass(start, keep=_drop, reject=lambda entry, _content: quarantined.append(entry))
        if not found.kept:
            raise damage
        header = start.header or self._rebuilt_header(found.first_time or 0, damage)
        check_header(header)
        seed_length = None if header.seed_length is None else found.seed_kept
        self._write(start, replace(header, seed_length=seed_length, version=LOG_VERSION))
        return SalvageReport(found.kept, tuple(quarantined), str(_beside(self._path, ".damaged")))

    def _start(self) -> _Start:
        self._file.seek(0)
        line = self._file.readline()
        try:
            return _Start(decode_header(line), len(line), 2)
        except LineError:
            lone = first_object(line)
        try:
            return _Start(decode_header(lone), len(lone), 1)
        except LineError:
            return _Start(None, 0, 1)
        except UnknownVersionError as error:
            raise SessionVersionError(self._session_id, error.version) from error

    def _rebuilt_header(self, created_at: int, damage: SessionDamagedError) -> SessionHeader:
        """The header that the path tells: its name is the id, its folder goes by the working directory."""
        bucket = self._path.parent.name
        if bucket == NO_CWD_BUCKET:
            return SessionHeader(self._session_id, created_at)
        for sibling in sorted(self._path.parent.glob("*" + SUFFIX)):
            with contextlib.suppress(OSError, LineError, UnknownVersionError), sibling.open("rb") as file:
                cwd = decode_header(file.readline()).cwd
                if bucket_of(cwd) == bucket:
                    return SessionHeader(self._session_id, created_at, cwd=cwd)
        raise SessionDamagedError(
            self._session_id,
            damage.line,
            damage.offset,
            "its header is lost, and no other session of its directory tells which one that is",
        ) from damage

    def _pass(self, start: _Start, *, keep: Keep, reject: Reject) -> LogSalvage:
        """Feed the whole file."""
        header = start.header
        if header is None:
            reject(Quarantined(1, 0, "the header was lost; the new one says what is still known"), b"")
        elif start.next_line == 1:
            reject(Quarantined(1, start.size, "it shares the line of the header; both stay"), b"")
        salvage = LogSalvage(
            keep,
            reject,
            seed_length=(header and header.seed_length) or 0,
            steps=(header and steps_from(header.version)) or (),
        )
        self._file.seek(start.size)
        offset = start.size
        for number, line in enumerate(self._file, start.next_line):
            salvage.feed(line, number, offset)
            offset += len(line)
        salvage.finish()
        return salvage

    def _write(self, start: _Start, header: SessionHeader) -> None:
        """Put the new log in the place of the old one."""
        damaged, before = _beside(self._path, ".damaged"), _beside(self._path, ".before-repair")
        # the lock makes these names ours: what lies there is left over from a crash
        new = _beside(self._path, ".tmp")
        new.unlink(missing_ok=True)
        before.unlink(missing_ok=True)
        with contextlib.ExitStack() as undo:
            undo.callback(new.unlink, missing_ok=True)
            undo.callback(_cut_back, damaged, damaged.stat().st_size if damaged.exists() else 0)
            with _Output(new, self._operations) as log, _Output(damaged, self._operations) as quarantine:
                log.add(encode_header(header))
                self._pass(start, keep=log.add, reject=lambda entry, content: quarantine.add(_record(entry, content)))
                quarantine.finish()
                log.finish()
            self._operations.sync_directory(self._path.parent)
            os.link(self._path, before)
            undo.callback(before.unlink)
            os.replace(new, self._path)
            undo.pop_all()
        self._operations.sync_directory(self._path.parent)
        before.unlink()


class _Output:
    """Appends to a file in batches; `finish` makes it durable."""

    def __init__(self, path: Path, operations: FileOperations) -> None:
        self._operations = operations
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._waiting = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._descriptor)

    def add(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) >= _BATCH_BYTES:
            self._write()

    def finish(self) -> None:
        self._write()
        self._operations.sync(self._descriptor)

    def _write(self) -> None:
        data, self._waiting = bytes(self._waiting), bytearray()
        rest = memoryview(data)
        while rest:
            rest = rest[self._operations.write(self._descriptor, rest) :]


def _record(entry: Quarantined, content: bytes) -> bytes:
    told = {"line": entry.line, "offset": entry.offset, "bytes": len(content), "what": entry.what}
    return pydantic_core.to_json(told) + b"\n" + content + b"\n"


def _cut_back(path: Path, size: int) -> None:
    """Undo what was appended to a file that was so long; none: it was not there."""
    if size:
        os.truncate(path, size)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _drop(_line: bytes) -> None:
    """The first pass only counts."""
