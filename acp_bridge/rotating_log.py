"""The log file (acp.md §1).

May not know: what is logged. Invariant: the file and those it was rotated to are 0600 in a 0700 directory.
"""

import logging
import logging.handlers
import os
from pathlib import Path
from typing import Any

_MAX_BYTES = 5 * 1024 * 1024
_KEPT = 2


class _PrivateRotatingFile(logging.handlers.RotatingFileHandler):
    """A rotating file that only its owner can read."""

    def _open(self) -> Any:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return open(descriptor, self.mode, encoding="utf-8")


def file_handler(directory: Path) -> logging.Handler:
    """`agent.log` in `directory`, which is made. Raises `OSError`."""
    # one by one: `parents=True` would give the parents that it makes to everybody
    for path in (*reversed(directory.parents), directory):
        path.mkdir(mode=0o700, exist_ok=True)
    return _PrivateRotatingFile(directory / "agent.log", maxBytes=_MAX_BYTES, backupCount=_KEPT, encoding="utf-8")
