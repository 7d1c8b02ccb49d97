"""Files that hold an output stream whole when it did not fit (contract tools-and-bash.md §4, "Output").

May not know: what the bytes are, who reads them. Invariant: files are 0600, created exclusively under random names in
a 0700 folder of our own; no write happens on the loop; all files of one command share one cap; a file that may not be
whole is withdrawn; no folder is made without removing what has grown old.
"""

import contextlib
import os
import secrets
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from bash_exec.spill_pruning import FOLDER_PREFIX, claim, prune

KEEP_DAYS = 14.0


class SpillFolder:
    """The folder of one executor below `root`, made when the first stream overflows.

    Files that other executors left there `keep_days` ago or longer are removed then, but for those of a live process.
    """

    def __init__(self, root: Path, *, keep_days: float = KEEP_DAYS) -> None:
        self._root = root
        self._keep = keep_days * 86400
        self._path: str | None = None
        self._claim = -1
        self._lock = threading.Lock()  # two streams may overflow at once, each in its own worker thread

    def create_file(self) -> tuple[BinaryIO, str]:
        """A new file and its path. Blocking. Raises OSError."""
        with self._lock:
            folder = self._path or self._make()
            path = os.path.join(folder, f"{secrets.token_hex(8)}.txt")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            return open(os.open(path, flags, 0o600), "wb"), path

    def _make(self) -> str:
        os.makedirs(self._root, mode=0o700, exist_ok=True)
        path = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=self._root)
        self._claim = claim(path)
        self._path = path
        prune(str(self._root), before=os.fstat(self._claim).st_mtime - self._keep)  # by the clock of the files
        return path

    def close(self) -> None:
        """Remove the folder when nothing is in it; files stay readable for the model and the user. Idempotent."""
        if self._path is not None:
            path, self._path = self._path, None
            with contextlib.suppress(OSError):
                os.rmdir(path)
            os.close(self._claim)


class SpillBudget:
    """How many bytes the files of one command may still take."""

    __slots__ = ("cap", "remaining")

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.remaining = cap


class SpillFile:
    """One stream's file; created at the first write."""

    __slots__ = ("_budget", "_file", "_folder", "_path", "_withdrawn")

    def __init__(self, folder: SpillFolder, budget: SpillBudget) -> None:
        self._folder = folder
        self._budget = budget
        self._file: BinaryIO | None = None
        self._path: str | None = None
        self._withdrawn = False

    @property
    def path(self) -> str | None:
        """Where the stream is, None while there is no file, and from the moment on when it may not be whole."""
        return self._path

    async def write(self, data: bytes) -> bool:
        """Append in a worker thread; False when the cap was reached, and the file withdrawn.

        A disk that refuses ends the file, not the command. A cancelled caller leaves no gap: what was given is written.
        """
        if len(data) > self._budget.remaining:
            self._budget.remaining = 0
            self.withdraw()
            return False
        self._budget.remaining -= len(data)
        if not self._withdrawn:
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._write, data)
            except OSError:
                self.withdraw()
        return True

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._file, self._path = self._folder.create_file()
        self._file.write(data)
        self._file.flush()

    def withdraw(self) -> None:
        """Remove the file, now or when it would be made: something is missing in it, or nobody will hear of it."""
        self._withdrawn = True
        self.close()
        if self._path is not None:
            with contextlib.suppress(OSError):  # the command may have removed it
                os.unlink(self._path)
            self._path = None

    def close(self) -> None:
        """Close the descriptor; the file stays."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a buffer that the full disk refused is flushed again here
                self._file.close()
            self._file = None
