"""Sessions as files of JSON lines below one root (contract session-log.md §9).

May not know: what listens to a session. Invariant: opening a log changes it at most once — a torn tail is cut and a
crashed turn closed, durably, before anybody sees the session; whatever else is wrong is refused, the file untouched.
"""

import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_loop.runtime import Runtime
from agent_loop.session.attachments import AttachmentFiles, read_attachment, remove_attachments
from agent_loop.session.disk_threads import DiskThreads
from agent_loop.session.events import SessionEvent, SessionHeader, make_event
from agent_loop.session.file_lock import FileLock, LockHeldError, wait_for_lock
from agent_loop.session.index import SessionIndex
from agent_loop.session.journal import FileOperations, JsonlJournal, OpenLog, unreadable
from agent_loop.session.layout import find_log, lock_path, log_path, sync_directory
from agent_loop.session.scan import LogScan
from agent_loop.session.store import (
    PersistenceError,
    SalvageReport,
    SessionDamagedError,
    SessionLockedError,
    SessionMismatchError,
    SessionNotFoundError,
    SessionStore,
    SessionStoreError,
    SessionSummary,
    StoredLog,
    StoredSession,
    check_directory,
    ignore_event,
    listed,
)
from agent_loop.session.whole import add_log

_BESIDE: Final = (".damaged", ".before-repair", ".tmp")
"""What may lie beside a log and goes with it; its lock file stays, two processes could else hold one name's lock."""


class JsonlSessionStore(SessionStore):
    """The store of the product. `root` need not exist; it is made at the first write."""

    def __init__(self, root: Path, runtime: Runtime, *, operations: FileOperations | None = None) -> None:
        self._root = root
        self._runtime = runtime
        self._operations = operations or FileOperations()
        self._threads = DiskThreads()
        self._index = SessionIndex(root)

    def create(self, header: SessionHeader) -> JsonlJournal:
        """See the seam. Raises `SessionMismatchError` for an empty id."""
        return JsonlJournal(header, self._path(header), operations=self._operations, threads=self._threads)

    async def load(
        self, session_id: str, cwd: str | None, *, on_event: Callable[[SessionEvent], None] = ignore_event
    ) -> StoredSession:
        path = self._find(session_id, cwd)
        lock = await self._lock(session_id, path)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.release)
            opened, scan, header = await self._read(session_id, cwd, path, lock, on_event)
            undo.callback(os.close, opened.descriptor)
            journal = JsonlJournal(header, path, operations=self._operations, threads=self._threads, opened=opened)
            event_count = await self._close_crashed_turn(journal, scan, on_event)
            undo.pop_all()
        return StoredSession(header, journal, event_count)

    def exists(self, session_id: str) -> bool:
        with contextlib.suppress(SessionNotFoundError):
            self._find(session_id, None)
            return True
        return False

    async def list(self, cwd: str | None = None) -> list[SessionSummary]:
        try:
            return await anyio.to_thread.run_sync(lambda: listed(self._index.summaries(), cwd))
        except OSError as error:
            what = f"the sessions cannot be listed: {error.strerror}: {error.filename}"
            raise SessionStoreError(what, "SESSION_UNREADABLE", "") from error

    async def read(self, session_id: str) -> StoredLog:
        path = self._find(session_id, None)
        try:
            with path.open("rb") as file:
                header = LogScan(session_id, file, ignore_event).read_header()
        except OSError as error:
            raise unreadable(session_id, error) from error
        self._check_header(header, session_id, None, path)

        async def attachment(ref: str) -> bytes | None:
            try:
                return await anyio.to_thread.run_sync(read_attachment, path, ref)
            except OSError as error:
                raise unreadable(session_id, error) from error

        return StoredLog(header, self._stream(session_id, path), attachment)

    async def add(self, header: SessionHeader, events: AsyncIterable[SessionEvent]) -> None:
        path = self._path(header)
        try:
            with contextlib.ExitStack() as undo:
                # what lies beside a stored log belongs to that one
                undo.callback(lambda: None if path.exists() else remove_attachments(path))
                await add_log(path, header, events, operations=self._operations)
                undo.pop_all()
        except LockHeldError as error:
            raise PersistenceError(header.id, f"it is open in another process (pid {error.pid})") from error
        except OSError as error:
            raise PersistenceError(header.id, error.strerror or str(error)) from error

    async def keep(self, header: SessionHeader, data: bytes) -> None:
        files = AttachmentFiles(self._path(header), self._operations)
        files.keep(data)

        def write() -> None:
            files.write()
            files.sync()

        try:
            await anyio.to_thread.run_sync(write)
        except OSError as error:
            raise PersistenceError(header.id, error.strerror or str(error)) from error

    async def delete(self, session_id: str) -> bool:
        try:
            path = self._find(session_id, None)
        except SessionNotFoundError:
            return False
        lock = await self._lock(session_id, path)
        try:
            return await anyio.to_thread.run_sync(self._remove, path)
        except OSError as error:
            what = error.strerror or str(error)
            raise SessionStoreError(
                f"session {session_id} cannot be deleted: {what}", "PERSISTENCE", session_id
            ) from error
        finally:
            lock.release()

    async def salvage(self, session_id: str) -> SalvageReport:
        from agent_loop.session.salvage_file import salvage_file  # noqa: PLC0415 - people need it, no agent does

        path = self._find(session_id, None)
        lock = await self._lock(session_id, path)
        check = partial(self._check_header, session_id=session_id, cwd=None, path=path)
        try:
            return await anyio.to_thread.run_sync(
                partial(salvage_file, session_id, path, check_header=check, operations=self._operations)
            )
        except FileNotFoundError as error:
            raise SessionNotFoundError(session_id) from error
        except OSError as error:
            raise PersistenceError(session_id, error.strerror or str(error)) from error
        finally:
            lock.release()

    def _path(self, header: SessionHeader) -> Path:
        try:
            return log_path(self._root, header.id, header.cwd)
        except ValueError as error:
            raise SessionMismatchError(header.id, str(error)) from error

    async def _lock(self, session_id: str, path: Path) -> FileLock:
        try:
            return await wait_for_lock(lock_path(path), self._runtime)
        except LockHeldError as error:
            raise SessionLockedError(session_id, error.pid) from error
        except OSError as error:
            raise PersistenceError(session_id, error.strerror or str(error)) from error

    async def _stream(self, session_id: str, path: Path) -> AsyncGenerator[SessionEvent, None]:
        batch: list[SessionEvent] = []
        try:
            with path.open("rb") as file:
                scan = LogScan(session_id, file, batch.append)
                scan.read_header()
                damage, more = None, True
                while more:
                    try:
                        more = await anyio.to_thread.run_sync(scan.advance)
                    except SessionDamagedError as error:
                        # what stands before it is shown first
                        damage, more = error, False
                    for event in batch:
                        yield event
                    batch.clear()
                if damage:
                    raise damage
        except FileNotFoundError as error:
            raise SessionNotFoundError(session_id) from error
        except OSError as error:
            raise unreadable(session_id, error) from error

    def _find(self, session_id: str, cwd: str | None) -> Path:
        try:
            path = find_log(self._root, session_id, cwd) if session_id else None
        except OSError as error:
            raise unreadable(session_id, error) from error
        if path is None:
            raise SessionNotFoundError(session_id)
        return path

    async def _read(
        self, session_id: str, cwd: str | None, path: Path, lock: FileLock, on_event: Callable[[SessionEvent], None]
    ) -> tuple[OpenLog, LogScan, SessionHeader]:
        try:
            with contextlib.ExitStack() as undo:
                descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
                undo.callback(os.close, descriptor)
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    scan = LogScan(session_id, file, on_event)
                    header = scan.read_header()
                    self._check_header(header, session_id, cwd, path)
                    while await anyio.to_thread.run_sync(scan.advance):
                        continue
                size = os.fstat(descriptor).st_size
                undo.pop_all()
        except FileNotFoundError as error:
            # deleted while we waited for its lock
            raise SessionNotFoundError(session_id) from error
        except OSError as error:
            raise unreadable(session_id, error) from error
        return OpenLog(descriptor, lock, scan.kept_bytes, size), scan, header

    def _check_header(self, header: SessionHeader, session_id: str, cwd: str | None, path: Path) -> None:
        if header.id != session_id:
            raise SessionMismatchError(session_id, f"its log says that it is session {header.id!r}")
        if log_path(self._root, header.id, header.cwd) != path:
            raise SessionMismatchError(session_id, f"its log lies in the wrong folder {path.parent.name!r}")
        check_directory(header, cwd)

    @staticmethod
    async def _close_crashed_turn(
        journal: JsonlJournal, scan: LogScan, on_event: Callable[[SessionEvent], None]
    ) -> int:
        count = scan.event_count
        closing: list[SessionEvent] = []
        for event_type, data in scan.crash.repair():
            closing.append(make_event(event_type, count, scan.last_time, data))
            count += 1
        for event in closing:
            journal.append(event)
        # also cuts the torn tail; nothing is written when there is neither
        await journal.flush()
        for event in closing:
            on_event(event)
        return count

    def _remove(self, path: Path) -> bool:
        for suffix in _BESIDE:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        try:
            path.unlink()
        except FileNotFoundError:
            # somebody was faster
            return False
        remove_attachments(path)
        sync_directory(path.parent)
        self._index.forget(path)
        return True
