"""Reading back a log that was checked when it was opened.

May not know: who reads. Invariant: holds one batch of events, whatever the size of the log; reads no byte behind
`size`, so a writer may append meanwhile.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from agent_loop.session.codec import LineError, decode_event
from agent_loop.session.events import SessionEvent, SessionHeader, make_event
from agent_loop.session.migrations import MIGRATIONS, Migration, steps_from
from agent_loop.session.store import SessionDamagedError

_BATCH_BYTES = 1 << 18


class LogReader:
    """The events from `from_seq` on within the first `size` bytes; opened at the first `read_batch`, `close` after."""

    def __init__(
        self,
        header: SessionHeader,
        path: Path,
        *,
        from_seq: int,
        size: int,
        migrations: Mapping[int, Migration] = MIGRATIONS,
    ) -> None:
        self._session_id = header.id
        self._steps = steps_from(header.version, migrations) or ()
        self._path = path
        self._skip = from_seq + 1  # the header and the events before
        self._size = size
        self._line = 0
        self._offset = 0
        self._file: BinaryIO | None = None

    def read_batch(self) -> list[SessionEvent]:
        """The next events, about 256 KiB of them; empty at the end.

        Raises `OSError`, and `SessionDamagedError` when the file was changed behind our back.
        """
        file = self._file
        if file is None:
            file = self._file = self._path.open("rb")
            while self._skip and self._next_line(file):
                self._skip -= 1
        limit = self._offset + _BATCH_BYTES
        events: list[SessionEvent] = []
        while self._offset < limit:
            start = self._offset
            line = self._next_line(file)
            if not line:
                break
            try:
                events.append(make_event(*decode_event(line, self._steps)))
            except LineError as error:
                raise SessionDamagedError(self._session_id, self._line, start, str(error)) from error
        return events

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _next_line(self, file: BinaryIO) -> bytes:
        if self._offset >= self._size:
            return b""
        line = file.readline()
        self._line += 1
        self._offset += len(line)
        return line
