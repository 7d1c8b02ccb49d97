"""Where a session's log lies below the root, and how directories and files are made (contract session-log.md §9).

May not know: what is in a log. Invariant: ids map to file names one to one and no name leaves its bucket; everything
made here is readable by its owner alone.
"""

import contextlib
import errno
import hashlib
import os
import re
from pathlib import Path
from typing import Final

SUFFIX: Final = ".jsonl"
NO_CWD_BUCKET: Final = "_no-cwd"

_ESCAPED: Final = re.compile(r"[^A-Za-z0-9._-]")


def encode_id(session_id: str) -> str:
    """The file name of an id, without suffix: `[A-Za-z0-9._-]` kept, other UTF-16 units as `~XXXX`.

    Raises `ValueError` for the empty id.
    """
    if not session_id:
        raise ValueError("a session id may not be empty")
    if session_id in {".", ".."}:
        return "~002E" * len(session_id)
    return _ESCAPED.sub(_escape, session_id)


def bucket_of(cwd: str | None) -> str:
    """The directory of the sessions of one working directory."""
    if cwd is None:
        return NO_CWD_BUCKET
    return "cwd-" + hashlib.sha256(cwd.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def log_path(root: Path, session_id: str, cwd: str | None) -> Path:
    """The one path of a session's log. Raises `ValueError` for the empty id."""
    return root / bucket_of(cwd) / (encode_id(session_id) + SUFFIX)


def lock_path(path: Path) -> Path:
    """The lock file of a log."""
    return path.with_name(path.name + ".lock")


def find_log(root: Path, session_id: str, cwd: str | None) -> Path | None:
    """The log of an id: in the bucket of `cwd` when it is there, else in the first bucket that has it.

    Raises `OSError` for everything but absence: an unreadable root never reads as "no such session".
    """
    expected = log_path(root, session_id, cwd)
    if _is_there(expected):
        return expected
    try:
        buckets = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    except FileNotFoundError:
        return None
    for bucket in buckets:
        path = root / bucket / expected.name
        if _is_there(path):
            return path
    return None


def make_directories(directory: Path) -> None:
    """Make `directory` and its missing parents, each 0700 and durable. Raises `OSError`."""
    missing: list[Path] = []
    while not directory.is_dir():
        missing.append(directory)
        directory = directory.parent
    for path in reversed(missing):
        # another process may be faster; a file in the way fails at the next step, with its own name
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the entries of a directory durable. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_there(path: Path) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        # a name that is too long cannot have been stored
        if error.errno in {errno.ENOENT, errno.ENAMETOOLONG}:
            return False
        raise
    return True


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"~{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
