"""Sessions in memory: the fake beside the real store, for tests and embedders.

May not know: files. Invariant: passes the contract suite of the real one — nothing is stored before the first
`turn/start` or `command/run`, one live writer, repair at load.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from dataclasses import dataclass, field

from agent_loop.session.attachments import ref_of
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionEvent, SessionHeader, make_event
from agent_loop.session.repair import CrashFold
from agent_loop.session.store import (
    FIRST_WRITTEN,
    PersistenceError,
    SalvageReport,
    SessionJournal,
    SessionLockedError,
    SessionMismatchError,
    SessionNotFoundError,
    SessionStore,
    SessionSummary,
    StoredLog,
    StoredSession,
    check_directory,
    ignore_event,
    listed,
)


@dataclass(slots=True)
class KeptLog:
    """One stored log; `writer` is its live journal, `attachments` the bytes that it names."""

    header: SessionHeader
    events: list[SessionEvent] = field(default_factory=list[SessionEvent])
    writer: SessionJournal | None = None
    attachments: dict[str, bytes] = field(default_factory=dict[str, bytes])


class MemoryJournal(SessionJournal):
    """The journal of one live session; see the seam."""

    def __init__(self, header: SessionHeader, logs: dict[str, KeptLog], *, stored: KeptLog | None = None) -> None:
        self.header = header
        self._logs = logs
        self._stored = stored
        self._pending: list[SessionEvent] = []
        self._kept: dict[str, bytes] = {}
        self._wanted = stored is not None
        self.address: str | None = None
        self._closed = False

    def append(self, event: SessionEvent) -> None:
        self._pending.append(event)
        if event.type in FIRST_WRITTEN:
            self._wanted = True

    def write_pending(self) -> None:
        if not self._pending or not self._wanted:
            return
        if self._closed:
            raise PersistenceError(self.header.id, "it has been closed")
        if self._stored is None:
            if self.header.id in self._logs:
                raise PersistenceError(self.header.id, "a log of this id exists already")
            self._stored = self._logs[self.header.id] = KeptLog(self.header, writer=self)
        self._stored.attachments |= self._kept
        self._stored.events.extend(self._pending)
        self._pending.clear()

    async def flush(self) -> None:
        self.write_pending()

    def read(self, from_seq: int = 0) -> AsyncGenerator[SessionEvent, None]:
        stored = self._stored.events if self._stored else []
        return _iterate([*stored[from_seq:], *(event for event in self._pending if event.seq >= from_seq)])

    def reachable_at(self, address: str) -> None:
        self.address = address

    def keep(self, data: bytes) -> str:
        ref = ref_of(data)
        self._kept[ref] = data
        return ref

    async def attachment(self, ref: str) -> bytes | None:
        stored = self._stored.attachments if self._stored else {}
        return {**stored, **self._kept}.get(ref)

    async def close(self) -> None:
        if self._closed:
            return
        try:
            self.write_pending()
        finally:
            self._closed = True
            if self._stored is not None:
                self._stored.writer = None


class MemorySessionStore(SessionStore):
    """`logs` is what a disk would hold, by session id: a test may look at it, and may cut it short."""

    def __init__(self) -> None:
        self.logs: dict[str, KeptLog] = {}
        self._kept: dict[str, dict[str, bytes]] = {}

    def create(self, header: SessionHeader) -> MemoryJournal:
        """See the seam. Raises `SessionMismatchError` for an empty id."""
        if not header.id:
            raise SessionMismatchError(header.id, "a session id may not be empty")
        return MemoryJournal(header, self.logs)

    async def load(
        self, session_id: str, cwd: str | None, *, on_event: Callable[[SessionEvent], None] = ignore_event
    ) -> StoredSession:
        stored = self.logs.get(session_id)
        if stored is None:
            raise SessionNotFoundError(session_id)
        if stored.writer is not None:
            raise SessionLockedError(session_id, None)
        check_directory(stored.header, cwd)
        crash = CrashFold()
        for event in stored.events:
            crash.feed(event)
        time = stored.events[-1].time
        for event_type, data in crash.repair():
            stored.events.append(make_event(event_type, len(stored.events), time, data))
        for event in stored.events:
            on_event(event)
        journal = MemoryJournal(stored.header, self.logs, stored=stored)
        stored.writer = journal
        return StoredSession(stored.header, journal, len(stored.events))

    def exists(self, session_id: str) -> bool:
        return session_id in self.logs

    async def list(self, cwd: str | None = None) -> list[SessionSummary]:
        return listed(map(_summary, self.logs.values()), cwd)

    async def read(self, session_id: str) -> StoredLog:
        stored = self.logs.get(session_id)
        if stored is None:
            raise SessionNotFoundError(session_id)

        async def attachment(ref: str) -> bytes | None:
            return stored.attachments.get(ref)

        return StoredLog(stored.header, _iterate([*stored.events]), attachment)

    async def add(self, header: SessionHeader, events: AsyncIterable[SessionEvent]) -> None:
        self.create(header)
        try:
            kept = [event async for event in events]
        finally:
            attachments = self._kept.pop(header.id, {})
        if header.id in self.logs:
            raise PersistenceError(header.id, "a log of this id exists already")
        self.logs[header.id] = KeptLog(header, kept, attachments=attachments)

    async def keep(self, header: SessionHeader, data: bytes) -> None:
        self._kept.setdefault(header.id, {})[ref_of(data)] = data

    async def salvage(self, session_id: str) -> SalvageReport:
        stored = self.logs.get(session_id)
        if stored is None:
            raise SessionNotFoundError(session_id)
        if stored.writer is not None:
            raise SessionLockedError(session_id, None)
        # what never was a line of bytes is never damaged
        return SalvageReport(len(stored.events))

    async def delete(self, session_id: str) -> bool:
        stored = self.logs.get(session_id)
        if stored is not None and stored.writer is not None:
            raise SessionLockedError(session_id, None)
        return self.logs.pop(session_id, None) is not None


def _summary(log: KeptLog) -> SessionSummary:
    header, title = log.header, None
    for event in log.events:
        if event.type == "session/title":
            title = event.data["title"]
    return SessionSummary(
        header.id,
        header.cwd,
        title,
        created_at=header.created_at,
        updated_at=log.events[-1].time if log.events else header.created_at,
        event_count=len(log.events),
        size=len(encode_header(header)) + sum(len(encode_event(event)) for event in log.events),
    )


async def _iterate(events: list[SessionEvent]) -> AsyncGenerator[SessionEvent, None]:
    for event in events:
        yield event
