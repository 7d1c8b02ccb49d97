"""What a server writes to its stderr, and what of its stdout was no message: a file for people who debug.

May not know: processes, messages. Invariant: the file is 0600 in a 0700 directory and stays below its cap, no secret
gets into it, and a file that cannot be written never stops the server.
"""

import os
from collections import deque

from bash_exec.secrets import BytesRedactor, SecretRegistry

CAP = 1024 * 1024
"""Bytes of the file; what came before is kept once, with `.old` behind the name."""
_LAST = 20


class ServerLog:
    """The file `path`, opened with the first bytes."""

    def __init__(self, path: str, secrets: SecretRegistry, *, cap: int = CAP) -> None:
        self._path = path
        self._cap = cap
        self._redactor = BytesRedactor(secrets)
        self._file: int | None = None
        self._size = 0
        self._broken = False
        self._tail: deque[bytes] = deque(maxlen=_LAST)

    @property
    def last_words(self) -> str:
        """The last line that says something, at most 300 characters."""
        lines = b"".join(self._tail).decode(errors="replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

    def write(self, data: bytes) -> None:
        """Append what came."""
        self._append(self._redactor.feed(data))

    def note(self, line: bytes) -> None:
        """Append a line of stdout that was no message."""
        self.write(b"[stdout] " + line[:2000] + b"\n")

    def close(self) -> None:
        """Append what was held back; nothing afterwards. Idempotent."""
        self._append(self._redactor.finish())
        self._broken = True
        self._let_go()

    def _append(self, data: bytes) -> None:
        if not data or self._broken:
            return
        self._tail.append(data[-2000:])
        try:
            file = self._file
            if file is None or self._size + len(data) > self._cap:
                file = self._reopened(len(data))
            os.write(file, data[: self._cap])
        except OSError:
            self._broken = True
        self._size += len(data)

    def _reopened(self, coming: int) -> int:
        """The descriptor of a file that has room for what is coming."""
        self._let_go()
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = self._file = os.open(self._path, flags, 0o600)
        self._size = os.fstat(file).st_size
        if self._size and self._size + coming > self._cap:
            self._let_go()
            os.replace(self._path, f"{self._path}.old")
            file = self._file = os.open(self._path, flags, 0o600)
            self._size = 0
        return file

    def _let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
