"""The one reading of a stored log that checks it (contract session-log.md §9, "Load").

May not know: sessions, locks; it never writes. Invariant: `kept_bytes` ends behind the last line of a well-formed
prefix; a bad line with a good one behind it is damage and is reported, never skipped.
"""

from collections.abc import Callable, Mapping
from typing import BinaryIO

from agent_loop.session.codec import Envelope, LineError, UnknownVersionError, decode_event, decode_header
from agent_loop.session.events import SessionEvent, SessionHeader, make_event
from agent_loop.session.migrations import MIGRATIONS, Migration, steps_from
from agent_loop.session.nesting import Nesting, NestingError
from agent_loop.session.repair import CrashFold
from agent_loop.session.shapes import shape_fault
from agent_loop.session.store import SessionDamagedError, SessionVersionError

_BATCH_BYTES = 1 << 20


class LogScan:
    """Feeds the events of `file` to `on_event`; `read_header` once, then `advance` until it returns False.

    `event_count`, `last_time` (epoch ms) and `crash` describe what was fed. Memory: one line. Both methods raise
    `SessionDamagedError`, `SessionVersionError` and `OSError`, and may run in any thread.
    """

    def __init__(
        self,
        session_id: str,
        file: BinaryIO,
        on_event: Callable[[SessionEvent], None],
        *,
        migrations: Mapping[int, Migration] = MIGRATIONS,
    ) -> None:
        self._session_id = session_id
        self._file = file
        self._on_event = on_event
        self._migrations = migrations
        self._steps: tuple[Migration, ...] = ()
        self._nesting = Nesting()
        self._line = 0
        self._offset = 0
        self._bad: SessionDamagedError | None = None
        self.crash = CrashFold()
        self.event_count = 0
        self.last_time = 0
        self.kept_bytes = 0

    @property
    def read_bytes(self) -> int:
        """Where the first line begins that was not read whole."""
        return self._offset

    @property
    def bad_line(self) -> SessionDamagedError | None:
        """What is wrong with the first whole line behind `kept_bytes`; None when there is none."""
        return self._bad

    def read_header(self) -> SessionHeader:
        """Line 1."""
        line = self._file.readline()
        try:
            if not line.endswith(b"\n"):
                raise LineError("the header line is incomplete")
            header = decode_header(line, self._migrations)
        except LineError as error:
            raise SessionDamagedError(self._session_id, 1, 0, str(error)) from error
        except UnknownVersionError as error:
            raise SessionVersionError(self._session_id, error.version) from error
        self._steps = steps_from(header.version, self._migrations) or ()
        self._line = 1
        self._offset = self.kept_bytes = len(line)
        return header

    def advance(self) -> bool:
        """Read on, about 1 MiB; False when the end is reached."""
        limit = self._offset + _BATCH_BYTES
        while self._offset < limit:
            line = self._file.readline()
            if not line.endswith(b"\n"):
                # nothing more, or a line that the crash cut: behind `kept_bytes` in both cases
                return False
            self._line += 1
            self._take(line)
            self._offset += len(line)
        return True

    def _take(self, line: bytes) -> None:
        try:
            envelope = decode_well_formed(line, self._steps)
            if self._bad is not None:
                raise self._bad
            self._feed(envelope)
        except (LineError, NestingError) as error:
            if self._bad is None:
                self._bad = SessionDamagedError(self._session_id, self._line, self._offset, str(error))
            return
        self.kept_bytes = self._offset + len(line)

    def _feed(self, envelope: Envelope) -> None:
        if envelope.seq != self.event_count:
            raise LineError(f"its seq is {envelope.seq}, {self.event_count} was expected")
        self._nesting.check(envelope.type, envelope.data)
        event = make_event(*envelope)
        self._nesting.apply(event.type, event.data)
        self.crash.feed(event)
        self.event_count += 1
        self.last_time = event.time
        self._on_event(event)


def decode_well_formed(line: bytes, steps: tuple[Migration, ...]) -> Envelope:
    """Read one line whose event has the fields of its type. Raises `LineError`."""
    envelope = decode_event(line, steps)
    fault = shape_fault(envelope.type, envelope.data)
    if fault is not None:
        raise LineError(fault)
    return envelope
