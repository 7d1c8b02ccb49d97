"""One live writer per log: an advisory lock beside it (contract session-log.md §9).

May not know: what is locked. Invariant: the lock file is never unlinked (two processes could then hold two files of
one name); the descriptor is not inherited, so the lock dies with its process. What is written in the file is for people
and for who wants to speak to the holder: `pid`, and the address of its socket if it has one, a line each. It is gone
with an orderly release; after a crash it stays, and whoever reads it finds out whether it still holds.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final, NamedTuple

from agent_loop.runtime import Runtime

WAIT_SECONDS: Final = 6.0
_POLL_SECONDS: Final = 0.05
_READ_BYTES: Final = 512


class Holder(NamedTuple):
    """Who wrote the lock file last; `address`: the path of its socket."""

    pid: int
    address: str | None


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
        _write(descriptor, b"%d\n" % os.getpid())
        return cls(descriptor)

    def tell(self, address: str) -> None:
        """Let others know where this process can be spoken to: the path of a socket, one line."""
        if self._held:
            _write(self._descriptor, b"%d\n%s\n" % (os.getpid(), os.fsencode(address)))

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
            _write(self._descriptor, b"")
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


def read_holder(path: Path) -> Holder | None:
    """What the lock file at `path` says; None when nobody holds it, or nothing can be read. It is not taken."""
    try:
        with path.open("rb") as file:
            return _parsed(file.read(_READ_BYTES))
    except OSError:
        return None


def _write(descriptor: int, text: bytes) -> None:
    # a full disk must not keep a log from being read
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, text, 0)
        os.ftruncate(descriptor, len(text))


def _read_pid(descriptor: int) -> int | None:
    holder = _parsed(os.pread(descriptor, _READ_BYTES, 0))
    return holder and holder.pid


def _parsed(text: bytes) -> Holder | None:
    pid, _, rest = text.partition(b"\n")
    address, end, _ = rest.partition(b"\n")
    if not pid.strip().isdigit():
        return None
    return Holder(int(pid), os.fsdecode(address) if end and address.startswith(b"/") else None)
