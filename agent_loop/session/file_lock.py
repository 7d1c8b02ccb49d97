"""One live writer per log: an advisory lock beside it (contract session-log.md §9).

May not know: what is locked. Invariant: the lock file is never unlinked (two processes could then hold two files of
one name); the descriptor is not inherited, so the lock dies with its process.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from agent_loop.runtime import Runtime

WAIT_SECONDS: Final = 6.0
_POLL_SECONDS: Final = 0.05


class LockHeldError(Exception):
    """Somebody else holds the lock; `pid` is the holder when it could be read."""

    def __init__(self, pid: int | None) -> None:
        super().__init__("the lock is held")
        self.pid = pid


class FileLock:
    """A held lock; `release` is idempotent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = True

    @classmethod
    def take(cls, path: Path) -> "FileLock":
        """Take the lock at `path` at once. Raises `LockHeldError`, or `OSError` when it cannot be made."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockHeldError(_read_pid(descriptor)) from None
            undo.pop_all()
        # the number only serves the message of whoever waits: a full disk must not keep a log from being read
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        return cls(descriptor)

    def lies_at(self, path: Path) -> bool:
        """Whether the held lock's file is the one at `path`; it is not any more when that was removed."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let others write."""
        if self._held:
            self._held = False
            os.close(self._descriptor)


async def wait_for_lock(path: Path, runtime: Runtime) -> FileLock:
    """Take the lock at `path` within 6 s: its holder may be shutting down. Raises `LockHeldError`, `OSError`."""
    give_up = runtime.monotonic() + WAIT_SECONDS
    while True:
        try:
            return FileLock.take(path)
        except LockHeldError:
            if runtime.monotonic() >= give_up:
                raise
        await runtime.sleep(_POLL_SECONDS)


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 20, 0).strip()
    return int(text) if text.isdigit() else None
