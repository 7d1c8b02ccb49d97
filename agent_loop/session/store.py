"""The store seam: where a session's log is kept (contract session-log.md §7, §9).

May not know: files. Invariant: a journal's `write_pending` is one synchronous kernel write that precedes the wire's
write of the same tick; what it has accepted survives `kill -9`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

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
    async def close(self) -> None:
        """Flush, release the lock and the handle; idempotent. Raises `PersistenceError` after releasing."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session opened for writing: repaired, durable. Read its events through the journal."""

    header: SessionHeader
    journal: SessionJournal
    event_count: int


def ignore_event(_event: SessionEvent) -> None:
    """For a load that nobody folds."""


def check_directory(header: SessionHeader, cwd: str | None) -> None:
    """Raise `SessionMismatchError` when both name a working directory and it is not the same one.

    The same: `samefile`; when either is gone, the same text after normalising.
    """
    if cwd is None or header.cwd is None:
        return
    try:
        same = os.path.samefile(cwd, header.cwd)
    except OSError:
        same = os.path.normpath(cwd) == os.path.normpath(header.cwd)
    if not same:
        raise SessionMismatchError(header.id, f"it belongs to the directory {header.cwd}, not to {cwd}")


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
