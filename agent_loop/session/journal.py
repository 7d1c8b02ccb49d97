"""The journal of one live session: what was appended and is not yet in its file (contract session-log.md §9).

May not know: other sessions, how a log is checked. Invariant: an event leaves the buffer only when the kernel has it,
in order; a disk that stays full costs a bounded number of tries, however many events wait.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import anyio.to_thread

from agent_loop.session.attachments import AttachmentFiles
from agent_loop.session.codec import encode_events, encode_header
from agent_loop.session.disk_threads import DiskThreads
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.file_lock import LockHeldError
from agent_loop.session.log_file import FileOperations, LogFile, OpenLog
from agent_loop.session.reader import LogReader
from agent_loop.session.store import FIRST_WRITTEN, PersistenceError, SessionJournal, SessionStoreError

TRIED_EACH_TICK: Final = 64
"""With more events than this waiting after a failure, the next try comes when they have doubled, or with a flush."""


class JsonlJournal(SessionJournal):
    """Buffers, appends, makes durable; see the seam for what each method promises."""

    def __init__(
        self,
        header: SessionHeader,
        path: Path,
        *,
        operations: FileOperations,
        threads: DiskThreads,
        opened: OpenLog | None = None,
    ) -> None:
        self.header = header
        self._path = path
        self._threads = threads
        self._pending: list[SessionEvent] = []
        self._wanted = opened is not None
        self._file = LogFile(path, operations, opened)
        self._attachments = AttachmentFiles(path, operations)
        self._synced = self._file.size
        self._failure: OSError | LockHeldError | None = None
        self._next_try = 0
        self._closed = False
        # flush and close of one log run strictly one after another; anyio's lock costs several calls more
        self._turnstile = asyncio.Lock()

    def append(self, event: SessionEvent) -> None:
        self._pending.append(event)
        if event.type in FIRST_WRITTEN:
            self._wanted = True

    def write_pending(self) -> None:
        if not (self._pending or self._file.must_cut) or not self._wanted:
            return
        if self._closed:
            raise PersistenceError(self.header.id, "it has been closed")
        if self._failure is not None and len(self._pending) < self._next_try:
            raise self._unwritable(self._failure) from self._failure
        try:
            # first: an event never names what is not there
            self._attachments.write()
            head = b"" if self._file.exists else encode_header(self.header)
            self._file.write(head + encode_events(self._pending))
        except (OSError, LockHeldError) as error:
            self._failure = error
            self._next_try = 2 * len(self._pending) if len(self._pending) > TRIED_EACH_TICK else 0
            raise self._unwritable(error) from error
        self._failure = None
        self._pending.clear()

    async def flush(self) -> None:
        async with self._turnstile:
            await self._flush()

    def keep(self, data: bytes) -> str:
        return self._attachments.keep(data)

    def reachable_at(self, address: str) -> None:
        self._file.tell(address)

    async def attachment(self, ref: str) -> bytes | None:
        try:
            return await anyio.to_thread.run_sync(self._attachments.read, ref)
        except OSError as error:
            raise unreadable(self.header.id, error) from error

    def read(self, from_seq: int = 0) -> AsyncGenerator[SessionEvent, None]:
        # both are taken now: what is appended while somebody reads is not part of this reading
        return self._read(from_seq, self._file.size, tuple(self._pending))

    async def close(self) -> None:
        async with self._turnstile:
            if self._closed:
                return
            try:
                await self._flush()
            finally:
                self._closed = True
                self._file.close()

    async def _flush(self) -> None:
        self._next_try = 0
        self.write_pending()
        if self._synced == self._file.size and not self._file.unsettled:
            return
        try:
            size = self._file.size
            # abandoned on cancellation: a disk that hangs must not hold up a shutdown
            while await self._threads.run(self._sync, meanwhile=self._file.was_removed):
                self._file.put_back()
                self.put_back += 1
                size = self._file.size
        except (OSError, LockHeldError) as error:
            raise self._unwritable(error) from error
        self._synced = size

    def _sync(self) -> None:
        self._attachments.sync()
        self._file.sync()

    async def _read(
        self, from_seq: int, size: int, waiting: tuple[SessionEvent, ...]
    ) -> AsyncGenerator[SessionEvent, None]:
        if size:
            reader = LogReader(self.header, self._path, from_seq=from_seq, size=size)
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

    def _unwritable(self, error: OSError | LockHeldError) -> PersistenceError:
        if isinstance(error, LockHeldError):
            return PersistenceError(self.header.id, f"it is open in another process (pid {error.pid})")
        return PersistenceError(self.header.id, error.strerror or str(error))


def unreadable(session_id: str, error: OSError) -> SessionStoreError:
    """The error for a log that is there but cannot be opened or read."""
    what = error.strerror or str(error)
    return SessionStoreError(
        f"the log of session {session_id} cannot be opened: {what}", "SESSION_UNREADABLE", session_id
    )
