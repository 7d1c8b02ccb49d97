"""Reading a log while another process writes it.

May not know: who reads. Invariant: never writes and takes no lock; only whole lines are events, checked as a load
checks them; when what was read is not the beginning of the file any more, reading begins anew and says so.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.scan import LogScan


@dataclass(frozen=True, slots=True)
class Piece:
    """The next events. `begins`: they are the first ones, what came before is void. `at_end`: more may come later."""

    header: SessionHeader
    begins: bool
    events: list[SessionEvent]
    at_end: bool


@dataclass(frozen=True, slots=True)
class _Opened:
    file: BinaryIO
    scan: LogScan
    header: SessionHeader


class LogFollower:
    """`read` again and again, in any one thread at a time; `close` at the end."""

    def __init__(self, session_id: str, path: Path) -> None:
        self._session_id = session_id
        self._path = path
        self._opened: _Opened | None = None
        self._batch: list[SessionEvent] = []
        self._size = 0

    def read(self) -> Piece:
        """What there is by now, about 1 MiB of it.

        Raises `OSError` (`FileNotFoundError` when the log is gone), `SessionDamagedError`, `SessionVersionError`.
        """
        opened, begins = self._opened, False
        if opened is None or not self._goes_on(opened):
            opened, begins = self._open(), True
        # a line that was not whole is read again
        opened.file.seek(opened.scan.read_bytes)
        more = opened.scan.advance()
        events = self._batch[:]
        self._batch.clear()
        return Piece(opened.header, begins, events, at_end=not more)

    def close(self) -> None:
        """Let go of the file."""
        if self._opened is not None:
            self._opened.file.close()
        self._opened = None
        self._batch.clear()

    def _open(self) -> _Opened:
        self.close()
        file = self._path.open("rb")
        try:
            scan = LogScan(self._session_id, file, self._batch.append)
            self._opened = _Opened(file, scan, scan.read_header())
        except BaseException:
            file.close()
            raise
        self._size = os.fstat(file.fileno()).st_size
        return self._opened

    def _goes_on(self, opened: "_Opened") -> bool:
        present = os.stat(self._path)
        size, self._size = self._size, present.st_size
        # a bad line at the end is cut off when the session is opened: then what stands there now is another
        return (
            os.path.samestat(present, os.fstat(opened.file.fileno()))
            and present.st_size >= opened.scan.read_bytes
            and (opened.scan.bad_line is None or present.st_size == size)
        )
