"""The store seam: where a session's log is kept (contract session-log.md §7, §9).

May not know: files. Invariant: a journal's `write_pending` is one synchronous kernel write that precedes the wire's
write of the same tick; what it has accepted survives `kill -9`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from agent_loop.errors import HarnessError
from agent_loop.session.events import SessionEvent, SessionHeader

FIRST_WRITTEN: Final = frozenset({"turn/start", "command/run"})
"""The events that bring a session into its store; what was logged before waits for them."""


class SessionStoreError(HarnessError):
    """A session could not be opened or written. `session_id` names it."""

    def __init__(self, message: str, code: str, session_id: str) -> None:
        super().__init__(message, code)
        self.session_id = session_id


class SessionNotFoundError(SessionStoreError):
    """No such session exists."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r} is stored", "SESSION_NOT_FOUND", session_id)


class SessionLockedError(SessionStoreError):
    """Another process writes it. `pid` is the holder when it could be read."""

    def __init__(self, session_id: str, pid: int | None) -> None:
        where = f" (pid {pid})" if pid else ""
        super().__init__(
            f"session {session_id} is open in another process{where}; close it there first",
            "SESSION_LOCKED",
            session_id,
        )
        self.pid = pid


class SessionDamagedError(SessionStoreError):
    """A line in the middle of the log cannot be read; the file is untouched. Line is 1-based, offset in bytes."""

    def __init__(self, session_id: str, line: int, offset: int, what: str) -> None:
        super().__init__(
            f"the log of session {session_id} is damaged at line {line} (byte {offset}): {what}; it was left untouched",
            "SESSION_DAMAGED",
            session_id,
        )
        self.line = line
        self.offset = offset


class SessionVersionError(SessionStoreError):
    """The log was written by a newer version; the file is untouched."""

    def __init__(self, session_id: str, version: int) -> None:
        super().__init__(
            f"session {session_id} was written in log format {version}, which is newer than this version reads; "
            "update dsh-acp-agent to open it",
            "SESSION_VERSION",
            session_id,
        )


class SessionMismatchError(SessionStoreError):
    """Header, path and request do not agree about which session this is."""

    def __init__(self, session_id: str, what: str) -> None:
        super().__init__(f"session {session_id}: {what}", "SESSION_MISMATCH", session_id)


class PersistenceError(SessionStoreError):
    """The log could not be written; what was written before is intact, what was not is still buffered."""

    def __init__(self, session_id: str, what: str) -> None:
        super().__init__(f"the log of session {session_id} cannot be written: {what}", "PERSISTENCE", session_id)


class SessionJournal(ABC):
    """The log of one live session; the only writer of it."""

    header: SessionHeader
    put_back: int = 0
    """How often the log had been removed from its place and was written there anew, with all that it held."""

    @abstractmethod
    def append(self, event: SessionEvent) -> None:
        """Buffer; never blocks on I/O. Nothing reaches the disk before the first `turn/start` or `command/run`."""

    @abstractmethod
    def write_pending(self) -> None:
        """Hand what is buffered to the kernel, synchronously; cheap when nothing is.

        Raises `PersistenceError` after truncating back to the size before; the buffer is kept.
        """

    @abstractmethod
    async def flush(self) -> None:
        """`write_pending`, then fsync in a worker thread. Raises `PersistenceError`."""

    @abstractmethod
    def read(self, from_seq: int = 0) -> AsyncGenerator[SessionEvent, None]:
        """Stream the events that were accepted until now, written or still waiting, in order, bounded memory.

        Who may stop early closes it (`contextlib.aclosing`), so that the file is closed there and then. Raises
        `SessionStoreError` when the log cannot be read.
        """

    @abstractmethod
    def keep(self, data: bytes) -> str:
        """Take bytes that an event will name; they are written before it, beside the log. Returns their name.

        Never blocks on I/O.
        """

    @abstractmethod
    async def attachment(self, ref: str) -> bytes | None:
        """What `ref` names; None when it is not kept (any more). Raises `SessionStoreError`."""

    @abstractmethod
    def reachable_at(self, address: str) -> None:
        """The process that writes this log can be spoken to there: the path of a socket, without line breaks.

        A store whose logs nobody else sees need not keep it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Flush, release the lock and the handle; idempotent. Raises `PersistenceError` after releasing."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session opened for writing: repaired, durable. Read its events through the journal."""

    header: SessionHeader
    journal: SessionJournal
    event_count: int


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log opened for reading only: no lock, no repair; a torn or bad tail is not among its events.

    `events` checks what it reads as a load does, and raises what a load raises; who may stop early closes it
    (`contextlib.aclosing`). `attachment` is that of a journal.
    """

    header: SessionHeader
    events: AsyncGenerator[SessionEvent, None]
    attachment: Callable[[str], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One row of a listing: times in epoch ms (`updated_at` is that of the last event), `size` in bytes."""

    id: str
    cwd: str | None
    title: str | None
    created_at: int
    updated_at: int
    event_count: int
    size: int


class Quarantined(NamedTuple):
    """A part of a damaged log: where it stood (1-based line, offset in bytes), and why it was taken out.

    Or what was wrong there, when what can be read of it stays; `what` says so.
    """

    line: int
    offset: int
    what: str


@dataclass(frozen=True, slots=True)
class SalvageReport:
    """What a salvage did: how many events were `kept`, what was not. A healthy log: nothing was, and no path.

    `quarantine_path` is the file that holds the lines that were taken out, verbatim.
    """

    kept: int
    quarantined: tuple[Quarantined, ...] = ()
    quarantine_path: str | None = None


def ignore_event(_event: SessionEvent) -> None:
    """For a load that nobody folds."""


def same_directory(one: str, other: str) -> bool:
    """`samefile`; when either is gone, the same text after normalising."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.normpath(one) == os.path.normpath(other)


def check_directory(header: SessionHeader, cwd: str | None) -> None:
    """Raise `SessionMismatchError` when both name a working directory and it is not the same one."""
    if cwd is not None and header.cwd is not None and not same_directory(cwd, header.cwd):
        raise SessionMismatchError(header.id, f"it belongs to the directory {header.cwd}, not to {cwd}")


def listed(summaries: Iterable[SessionSummary], cwd: str | None) -> list[SessionSummary]:
    """The sessions of the directory `cwd` (None: all), last updated first, then by id."""
    chosen = list(summaries)
    if cwd is not None:
        # one look at the disk for each directory, not for each session
        same = {recorded: same_directory(cwd, recorded) for recorded in {row.cwd for row in chosen if row.cwd}}
        chosen = [row for row in chosen if row.cwd and same[row.cwd]]
    return sorted(chosen, key=lambda row: (-row.updated_at, row.id))


class SessionStore(ABC):
    """Opens journals. `create` touches nothing on disk."""

    @abstractmethod
    def create(self, header: SessionHeader) -> SessionJournal:
        """A journal for a new session (exclusive at publish: a duplicate id then is a `PersistenceError`)."""

    @abstractmethod
    async def load(
        self, session_id: str, cwd: str | None, *, on_event: Callable[[SessionEvent], None] = ignore_event
    ) -> StoredSession:
        """Open an existing session for writing, in whatever bucket it lies.

        Streams once: checks header, path, sequence; cuts a torn tail after the last `turn/end`; appends crash repair
        and makes it durable. `on_event` is fed each event of that one pass in order, repair included, possibly in a
        worker thread; when this raises, what it was fed is void. `cwd` (when given) must be the recorded directory
        (`samefile`, else normalised text). Waits up to 6 s for the lock. Raises `SessionNotFoundError`,
        `SessionLockedError`, `SessionDamagedError`, `SessionVersionError`, `SessionMismatchError`,
        `PersistenceError`, and `SessionStoreError` itself when the log cannot be read.
        """

    @abstractmethod
    def exists(self, session_id: str) -> bool:
        """Whether a log of that id is stored, in whatever bucket. Raises `SessionStoreError` when nobody can say."""

    @abstractmethod
    async def list(self, cwd: str | None = None) -> list[SessionSummary]:
        """The stored sessions, of one directory when given (compared as `load` does); last updated first, then by id.

        A log whose header cannot be read, or that lies where a load would not look for it, is left out. Damage further
        down is met by a load. Nothing stored is `[]`; an I/O error surfaces as `SessionStoreError`, it never reads as
        "no sessions".
        """

    @abstractmethod
    async def read(self, session_id: str) -> StoredLog:
        """Open a log for reading only, also one that somebody is writing.

        Raises `SessionNotFoundError`, `SessionDamagedError`, `SessionVersionError`, `SessionMismatchError`, and
        `SessionStoreError` itself when it cannot be read.
        """

    @abstractmethod
    async def add(self, header: SessionHeader, events: AsyncIterable[SessionEvent]) -> None:
        """Store a whole log at once, whole and durable or not at all; bounded memory. Nobody has it open afterwards.

        The events are those of a well-formed log, seq i at index i. Raises `PersistenceError` (also for an id that is
        stored), `SessionMismatchError` for an empty id, and what `events` raises.
        """

    @abstractmethod
    async def keep(self, header: SessionHeader, data: bytes) -> None:
        """Put bytes beside the log of `header` while its events are being added: they are removed when that fails.

        Raises `PersistenceError`.
        """

    @abstractmethod
    async def delete(self, session_id: str) -> bool:
        """Remove a log and what lies beside it; False when there is none. Waits up to 6 s for the lock.

        Raises `SessionLockedError`, and `SessionStoreError` itself when it cannot be removed.
        """

    @abstractmethod
    async def salvage(self, session_id: str) -> SalvageReport:
        """Repair a damaged log in place: what can be kept is, the rest lies verbatim in `<file>.damaged` afterwards.

        A log that a load would accept stays as it is. Waits up to 6 s for the lock. Raises `SessionNotFoundError`,
        `SessionLockedError`, `SessionVersionError`, `SessionMismatchError`, `PersistenceError`, and
        `SessionDamagedError` when nothing of it can be kept or its header is lost and cannot be rebuilt.
        """
