"""The open file of one log and the kernel calls that write it (contract session-log.md §9).

Also how a log gets its name: `open_new`, `write_all`, `publish`, `settle`, for whoever writes a whole one.

May not know: events, sessions. Invariant: behind `size` bytes there is nothing of ours that is not about to be cut
off; a write is there as a whole or not at all; under the log's name there is never a log that is not whole.
"""

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_loop.session.file_lock import FileLock
from agent_loop.session.layout import lock_path, make_directories, sync_directory

_COPY_BYTES: Final = 1 << 20
_NONE: Final = -1
"""No descriptor."""


class FileOperations:
    """The kernel calls that write a log; a test replaces them to fail on purpose. All raise `OSError`."""

    def write(self, descriptor: int, data: memoryview) -> int:
        """Append; returns how many bytes were taken."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Make durable what was written."""
        os.fsync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        """The same for a file that has its name: the bytes and how many they are, not when they were written."""
        getattr(os, "fdatasync", os.fsync)(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut to `size` bytes."""
        os.ftruncate(descriptor, size)

    def sync_directory(self, directory: Path) -> None:
        """Make durable which files there are."""
        sync_directory(directory)


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A log that exists: locked, open for appending, `kept_bytes` of `size` are well-formed."""

    descriptor: int
    lock: FileLock
    kept_bytes: int
    size: int


class LogFile:
    """Appends to `path`, which is made by the first write. All methods but `sync` belong to one thread.

    The first `size` bytes are ours, and whole. `must_cut`: more stands behind them; the next `write` begins with
    cutting it off, also a write of nothing. `unsettled`: the name of the file is not durable yet; `sync` sees to it.
    All raise `OSError`.
    """

    def __init__(self, path: Path, operations: FileOperations, opened: OpenLog | None) -> None:
        self._path = path
        self._operations = operations
        self._descriptor = opened.descriptor if opened else _NONE
        self._lock = opened.lock if opened else None
        self.size = opened.kept_bytes if opened else 0
        self.must_cut = opened is not None and opened.kept_bytes < opened.size
        self.unsettled = False
        self._address: str | None = None

    @property
    def exists(self) -> bool:
        """It was published."""
        return self._descriptor != _NONE

    def write(self, data: bytes) -> None:
        """Append all of `data`, or nothing. The first call publishes the file. Also raises `LockHeldError`."""
        if not self.exists:
            self._publish(data)
            return
        if self.must_cut:
            self._cut()
        try:
            write_all(self._operations, self._descriptor, data)
        except OSError:
            self.must_cut = True
            # when this fails too, the next write begins with it
            with contextlib.suppress(OSError):
                self._cut()
            raise
        self.size += len(data)

    def was_removed(self) -> bool:
        """Whether the file is gone from its place. Raises `OSError` when something else is there."""
        try:
            present = os.stat(self._path)
        except FileNotFoundError:
            return True
        if not os.path.samestat(present, os.fstat(self._descriptor)):
            raise FileExistsError("another file stands in its place")
        return False

    def put_back(self) -> None:
        """Write the file to its place again, durably: the descriptor holds what was removed.

        Not while `sync` runs. Also raises `LockHeldError`.
        """
        removed = self._descriptor
        self._publish(b"", copied=removed)
        os.close(removed)

    def tell(self, address: str) -> None:
        """Note beside the lock, now or once it is held, where this process can be spoken to."""
        self._address = address
        if self._lock is not None:
            self._lock.tell(address)

    def sync(self) -> None:
        """Make durable what was written. May run in another thread while more is written."""
        if self.unsettled:
            # the folder is gone: whoever asks `was_removed` meets that
            with contextlib.suppress(FileNotFoundError):
                self._settle()
        self._operations.sync_data(self._descriptor)

    def close(self) -> None:
        """Let go of the file and of its lock."""
        if self.exists:
            os.close(self._descriptor)
            self._descriptor = _NONE
        if self._lock is not None:
            self._lock.release()

    def _publish(self, data: bytes, *, copied: int = _NONE) -> None:
        make_directories(self._path.parent)
        self._take_lock()
        with open_new(self._path) as (descriptor, undo):
            if copied != _NONE:
                self._copy(copied, descriptor)
            write_all(self._operations, descriptor, data)
            publish(self._operations, descriptor, self._path)
            undo.pop_all()
        self._descriptor = descriptor
        self.must_cut = False
        self.size += len(data)
        self.unsettled = True
        # the events are there: a failure from here on is met by the next sync, or the events would be written twice
        with contextlib.suppress(OSError):
            self._settle()

    def _settle(self) -> None:
        settle(self._operations, self._path)
        self.unsettled = False

    def _take_lock(self) -> None:
        """Hold the lock file that lies beside the log now: the one we hold may have been removed with its folder."""
        path = lock_path(self._path)
        if self._lock is not None and self._lock.lies_at(path):
            return
        taken = FileLock.take(path)
        if self._address is not None:
            taken.tell(self._address)
        if self._lock is not None:
            self._lock.release()
        self._lock = taken

    def _copy(self, source: int, target: int) -> None:
        at = 0
        while at < self.size:
            piece = os.pread(source, min(_COPY_BYTES, self.size - at), at)
            write_all(self._operations, target, piece)
            at += len(piece)

    def _cut(self) -> None:
        self._operations.truncate(self._descriptor, self.size)
        self._operations.sync(self._descriptor)
        self.must_cut = False


@contextlib.contextmanager
def open_new(path: Path) -> Generator[tuple[int, contextlib.ExitStack]]:
    """A new private file for the log at `path`, under a temporary name: the lock of the log, which the caller holds,
    makes that name ours, and what lies there is left over from a crash.

    Closed and removed again, unless `pop_all` of the stack has handed it over. Raises `OSError`.
    """
    temporary = _temporary(path)
    temporary.unlink(missing_ok=True)
    with contextlib.ExitStack() as undo:
        undo.callback(temporary.unlink, missing_ok=True)
        descriptor = os.open(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        undo.callback(os.close, descriptor)
        yield descriptor, undo


def write_all(operations: FileOperations, descriptor: int, data: bytes) -> None:
    """Append all of `data`. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[operations.write(descriptor, rest) :]


def publish(operations: FileOperations, descriptor: int, path: Path) -> None:
    """Give what `open_new` made its name, whole and durable. Raises `OSError`."""
    operations.sync(descriptor)
    # a link, never a rename: a log that is there already stays as it is
    os.link(_temporary(path), path)


def settle(operations: FileOperations, path: Path) -> None:
    """Make the new name durable, and forget the temporary one. Raises `OSError`."""
    _temporary(path).unlink(missing_ok=True)
    operations.sync_directory(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")
