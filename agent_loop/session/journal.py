"""The log file of one live session (contract session-log.md §9).

May not know: other sessions, how a log is checked. Invariant: behind `_size` bytes there is nothing of ours that is
not about to be cut off; an event leaves the buffer only when the kernel has it.
"""

import contextlib
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.file_lock import FileLock, LockHeldError
from agent_loop.session.layout import lock_path, make_directories, sync_directory
from agent_loop.session.reader import LogReader
from agent_loop.session.store import FIRST_WRITTEN, PersistenceError, SessionJournal, SessionStoreError


class FileOperations:
    """The kernel calls that write a log; a test replaces them to fail on purpose. All raise `OSError`."""

    def write(self, descriptor: int, data: memoryview) -> int:
        """Append; returns how many bytes were taken."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Make durable what was written."""
        os.fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut to `size` bytes."""
        os.ftruncate(descriptor, size)


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A log that exists: locked, open for appending, `kept_bytes` of `size` are well-formed."""

    descriptor: int
    lock: FileLock
    kept_bytes: int
    size: int


class JsonlJournal(SessionJournal):
    """Buffers, appends, makes durable; see the seam for what each method promises."""

    def __init__(
        self, header: SessionHeader, path: Path, *, operations: FileOperations, opened: OpenLog | None = None
    ) -> None:
        self.header = header
        self._path = path
        self._operations = operations
        self._pending: list[SessionEvent] = []
        self._wanted = opened is not None
        self._descriptor = opened.descriptor if opened else None
        self._lock = opened.lock if opened else None
        self._size = opened.kept_bytes if opened else 0
        self._synced = self._size
        self._must_cut = opened is not None and opened.kept_bytes < opened.size
        self._closed = False
        # flush and close of one log run strictly one after another
        self._turnstile = anyio.Lock()

    def append(self, event: SessionEvent) -> None:
        self._pending.append(event)
        if event.type in FIRST_WRITTEN:
            self._wanted = True

    def write_pending(self) -> None:
        if not (self._pending or self._must_cut) or not self._wanted:
            return
        if self._closed:
            raise PersistenceError(self.header.id, "it has been closed")
        try:
            if self._descriptor is None:
                self._publish()
            else:
                self._write_batch(self._descriptor)
        except OSError as error:
            raise PersistenceError(self.header.id, error.strerror or str(error)) from error

    async def flush(self) -> None:
        async with self._turnstile:
            await self._flush()

    def read(self, from_seq: int = 0) -> AsyncGenerator[SessionEvent, None]:
        # both are taken now: what is appended while somebody reads is not part of this reading
        return self._read(from_seq, self._size, tuple(self._pending))

    async def close(self) -> None:
        async with self._turnstile:
            if self._closed:
                return
            try:
                await self._flush()
            finally:
                self._closed = True
                if self._descriptor is not None:
                    os.close(self._descriptor)
                    self._descriptor = None
                if self._lock is not None:
                    self._lock.release()

    async def _flush(self) -> None:
        self.write_pending()
        size = self._size
        if self._descriptor is None or self._synced == size:
            return
        try:
            # abandoned on cancellation: a disk that hangs must not hold up a shutdown
            await anyio.to_thread.run_sync(self._operations.sync, self._descriptor, abandon_on_cancel=True)
        except OSError as error:
            raise PersistenceError(self.header.id, error.strerror or str(error)) from error
        self._synced = size

    async def _read(
        self, from_seq: int, size: int, waiting: tuple[SessionEvent, ...]
    ) -> AsyncGenerator[SessionEvent, None]:
        if size:
            reader = LogReader(self.header.id, self._path, from_seq=from_seq, size=size)
            try:
                while batch := await anyio.to_thread.run_sync(reader.read_batch):
                    for event in batch:
                        yield event
            except OSError as error:
                raise unreadable(self.header.id, error) from error
            finally:
                reader.close()
        for event in waiting:
            if event.seq >= from_seq:
                yield event

    def _publish(self) -> None:
        directory = self._path.parent
        make_directories(directory)
        if self._lock is None:
            self._lock = self._take_lock()
        batch = encode_header(self.header) + self._encode_pending()
        # the lock makes the temporary name ours: what lies there is left over from a crash
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.unlink(missing_ok=True)
        with contextlib.ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o600)
            undo.callback(os.close, descriptor)
            self._write_all(descriptor, batch)
            self._operations.sync(descriptor)
            # a link, never a rename: a log that is there already stays as it is
            os.link(temporary, self._path)
            undo.pop_all()
        self._descriptor = descriptor
        self._size = self._synced = len(batch)
        self._pending.clear()
        temporary.unlink()
        sync_directory(directory)

    def _take_lock(self) -> FileLock:
        try:
            return FileLock.take(lock_path(self._path))
        except LockHeldError as error:
            raise PersistenceError(self.header.id, f"it is open in another process (pid {error.pid})") from error

    def _write_batch(self, descriptor: int) -> None:
        if self._must_cut:
            self._cut(descriptor)
        batch = self._encode_pending()
        try:
            self._write_all(descriptor, batch)
        except OSError:
            self._must_cut = True
            # when this fails too, the next write begins with it
            with contextlib.suppress(OSError):
                self._cut(descriptor)
            raise
        self._size += len(batch)
        self._pending.clear()

    def _cut(self, descriptor: int) -> None:
        self._operations.truncate(descriptor, self._size)
        self._operations.sync(descriptor)
        self._must_cut = False

    def _encode_pending(self) -> bytes:
        return b"".join(map(encode_event, self._pending))

    def _write_all(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._operations.write(descriptor, rest) :]


def unreadable(session_id: str, error: OSError) -> SessionStoreError:
    """The error for a log that is there but cannot be opened or read."""
    what = error.strerror or str(error)
    return SessionStoreError(
        f"the log of session {session_id} cannot be opened: {what}", "SESSION_UNREADABLE", session_id
    )
