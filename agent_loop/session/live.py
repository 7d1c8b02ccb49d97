"""The sessions of this process: made, loaded, written and closed here (contract session-log.md §7, §9).

May not know: files, agents, editors. Invariant: an id is live once; every event reaches the kernel within the loop
tick that appended it, before any frame of that tick (the wire's `before_write` is `write_pending`).
"""

import asyncio
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

import anyio

from agent_loop.errors import DuplicateError
from agent_loop.hooks import Hooks
from agent_loop.runtime import Runtime
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.fork import fork_log
from agent_loop.session.json_check import InvalidEventError, own_json
from agent_loop.session.log import Session, Tail
from agent_loop.session.store import (
    PersistenceError,
    SessionJournal,
    SessionMismatchError,
    SessionNotFoundError,
    SessionStore,
    SessionStoreError,
)
from bash_exec.secrets import SecretRegistry

LAST_WORDS_SECONDS: Final = 4.0
_PUT_BACK: Final = {
    "severity": "warning",
    "title": "The stored conversation had been removed",
    "description": "Its file was deleted while it was open; it was written anew, with everything that it held.",
}


class LiveSessions:
    """Emits `session/created(session)`, `session/event(session, event)`, `session/flush(session)` (parallel; the
    store's own flush is its first listener) and `session/write-failed(session, error)`, the last once per turn.

    No log holds one of `secrets`.
    """

    def __init__(
        self,
        store: SessionStore,
        hooks: Hooks,
        runtime: Runtime,
        *,
        secrets: SecretRegistry | None = None,
        last_words_seconds: float = LAST_WORDS_SECONDS,
    ) -> None:
        self.store = store
        self._hooks = hooks
        self._runtime = runtime
        self._secrets = secrets
        self._last_words_seconds = last_words_seconds
        self._sessions: dict[str, Session] = {}
        self._busy: set[str] = set()
        self._unwritten: dict[Session, None] = {}
        self._told: dict[Session, int] = {}  # the turn in which a write failure was last reported
        self._scheduled = False
        self._unhook = hooks.on("session/flush", self._flush)

    def prepare(
        self,
        *,
        session_id: str | None = None,
        cwd: str | None = None,
        seed: Iterable[SessionEvent] = (),
        parent: str | None = None,
        created_at: int | None = None,
    ) -> Session:
        """A session that nobody knows yet; `enter` and `announce` follow. Nothing is stored, no event emitted.

        `seed` is the beginning of another log (seq i at index i), copied; turn numbers continue. Raises
        `DuplicateError`, `SessionMismatchError` (relative `cwd`, empty id), `InvalidEventError`, `NestingError`.
        """
        new_id = self._runtime.new_id() if session_id is None else session_id
        self._check_free(new_id)
        # an id of our own making is new; one that was given may be that of a stored session
        if session_id and self._is_stored(session_id):
            raise DuplicateError("session", session_id)
        if cwd is not None and not os.path.isabs(cwd):
            raise SessionMismatchError(new_id, f"its working directory {cwd!r} is not an absolute path")
        tail = Tail(self._secrets)
        inherited = [_inherit(tail, event) for event in seed]
        header = SessionHeader(
            new_id,
            self._runtime.now_ms() if created_at is None else created_at,
            cwd=cwd,
            parent_session=parent,
            seed_length=len(inherited) or None,
        )
        own_json("session", header.to_json())
        journal = self.store.create(header)
        for event in inherited:
            journal.append(event)
        return self._session(journal, tail)

    def enter(self, session: Session) -> None:
        """Register it. Raises `DuplicateError`."""
        self._check_free(session.id)
        self._sessions[session.id] = session
        if session.next_seq:
            self._on_append(session)

    def announce(self, session: Session) -> None:
        """Emit `session/created`; when that is cut short, the session is unregistered again."""
        try:
            self._hooks.emit("session/created", session, agent=session.id)
        except BaseException:
            self._forget(session)
            raise

    def create(
        self,
        *,
        session_id: str | None = None,
        cwd: str | None = None,
        seed: Iterable[SessionEvent] = (),
        parent: str | None = None,
        created_at: int | None = None,
    ) -> Session:
        """`prepare`, `enter`, `announce`."""
        session = self.prepare(session_id=session_id, cwd=cwd, seed=seed, parent=parent, created_at=created_at)
        self.enter(session)
        self.announce(session)
        return session

    async def load(self, session_id: str, cwd: str | None) -> Session:
        """Open a stored session: one streaming read feeds its folds. Then entered and announced.

        Raises `DuplicateError` when it is live or being loaded, and what `SessionStore.load` raises.
        """
        with self._held(session_id):
            tail = Tail(self._secrets, stored=True)
            stored = await self.store.load(session_id, cwd, on_event=tail.feed)
        try:
            session = self._session(stored.journal, tail)
            self._sessions[session_id] = session
            self.announce(session)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stored.journal.close()
            raise
        return session

    async def fork(self, parent_id: str, *, cwd: str) -> Session:
        """A new session that begins with the turns of another that have ended, stored before it is loaded.

        The parent is only read; a live one of which nothing is stored yet gives an empty beginning. Raises what
        `SessionStore.read`, `add` and `load` raise.
        """
        new_id = self._runtime.new_id()
        try:
            begun = await fork_log(self.store, parent_id, SessionHeader(new_id, self._runtime.now_ms(), cwd=cwd))
        except SessionNotFoundError:
            if parent_id not in self._sessions:
                raise
            begun = False
        return await self.load(new_id, cwd) if begun else self.create(cwd=cwd, parent=parent_id)

    async def delete(self, session_id: str) -> bool:
        """Remove a stored session for good; False when there is none. Nobody can open it meanwhile.

        Raises `DuplicateError` when it is live or being loaded, and what `SessionStore.delete` raises.
        """
        with self._held(session_id):
            return await self.store.delete(session_id)

    def get(self, session_id: str) -> Session | None:
        """The live session of that id."""
        return self._sessions.get(session_id)

    def write_pending(self) -> None:
        """Hand what was appended since the last call to the kernel. Cheap when nothing was; never raises.

        A session that cannot be written gets its `failure` and keeps its events; the next append tries again.
        """
        if not self._unwritten:
            return
        sessions = tuple(self._unwritten)
        self._unwritten.clear()
        for session in sessions:
            try:
                session.journal.write_pending()
            except PersistenceError as error:
                self._failed(session, error)
            else:
                session.failure = None

    async def detach(self, session: Session) -> None:
        """Flush, close the log, unregister; idempotent, a stale session is no other's. Shielded, within 4 s.

        Raises `PersistenceError` when events could not be made durable; the session is unregistered all the same.
        """
        if self._sessions.get(session.id) is not session:
            return
        try:
            with anyio.move_on_after(self._last_words_seconds / 2, shield=True):
                await session.flush()
            with anyio.move_on_after(self._last_words_seconds / 2, shield=True) as last_words:
                await session.journal.close()
            if last_words.cancelled_caught:
                raise PersistenceError(session.id, "the disk did not answer in time")
        finally:
            self._forget(session)

    async def aclose(self) -> None:
        """Detach every session, side by side. Raises an `ExceptionGroup` of what failed, after all of them."""
        errors: list[Exception] = []
        async with anyio.create_task_group() as tasks:
            for session in tuple(self._sessions.values()):
                tasks.start_soon(self._detach_noting, session, errors)
        self._unhook()
        if errors:
            raise ExceptionGroup("some sessions could not be written to the end", errors)

    async def _detach_noting(self, session: Session, errors: list[Exception]) -> None:
        try:
            await self.detach(session)
        except PersistenceError as error:
            errors.append(error)

    @contextmanager
    def _held(self, session_id: str) -> Generator[None]:
        """Nobody else gets the id meanwhile. Raises `DuplicateError`."""
        self._check_free(session_id)
        self._busy.add(session_id)
        try:
            yield
        finally:
            self._busy.remove(session_id)

    def _check_free(self, session_id: str) -> None:
        if session_id in self._sessions or session_id in self._busy:
            raise DuplicateError("session", session_id)

    def _is_stored(self, session_id: str) -> bool:
        try:
            return self.store.exists(session_id)
        except SessionStoreError:
            # a root that cannot be read refuses the first write, in its own words
            return False

    def _session(self, journal: SessionJournal, tail: Tail) -> Session:
        return Session(journal, tail, hooks=self._hooks, runtime=self._runtime, on_append=self._on_append)

    def _forget(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        self._unwritten.pop(session, None)
        self._told.pop(session, None)

    def _on_append(self, session: Session) -> None:
        self._unwritten[session] = None
        if not self._scheduled:
            self._scheduled = True
            # a callback of this loop, not a task: it runs once in this tick and cannot outlive it
            asyncio.get_running_loop().call_soon(self._tick)

    def _tick(self) -> None:
        self._scheduled = False
        self.write_pending()

    async def _flush(self, session: Session) -> bool:
        # at once: what waits for its turn with the disk would let frames of this tick overtake their events
        self.write_pending()
        before = session.journal.put_back
        try:
            await session.journal.flush()
        except PersistenceError as error:
            self._failed(session, error)
            return False
        session.failure = None
        if session.journal.put_back > before:
            session.append("session/notice", _PUT_BACK)
        return True

    def _failed(self, session: Session, error: PersistenceError) -> None:
        session.failure = error
        if self._told.get(session) != session.last_turn:
            self._told[session] = session.last_turn
            self._hooks.emit("session/write-failed", session, error, agent=session.id)


def _inherit(tail: Tail, event: SessionEvent) -> SessionEvent:
    if event.seq != tail.state.next_seq:
        raise InvalidEventError(event.type, f"a seed has seq {event.seq} at index {tail.state.next_seq}")
    return tail.admit(event.type, event.data, time=event.time)
