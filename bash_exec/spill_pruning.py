"""Old spill files and who may remove them (contract tools-and-bash.md §4, "Output").

May not know: commands, streams, what is in a file. Invariant: only files and folders go that have our names, are no
links, are older than asked and belong to no process that still lives — it holds a lock on its folder.
"""

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from itertools import islice

FOLDER_PREFIX = "output-"
_FOLDER = re.compile(r"output-[a-z0-9_]{8}")
_FILE = re.compile(r"[0-9a-f]{16}\.txt")
_AT_ONCE = 1000  # entries of a folder that are looked at; the rest has its turn next time


def claim(folder: str) -> int:
    """A descriptor that keeps `folder` and what is in it while it is open. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # a file system without locks: nobody gets one to remove it either
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return handle


def prune(root: str, *, before: float) -> None:
    """Remove what was last written before the time `before` (seconds, as files have it). Blocking, never raises."""
    with contextlib.suppress(OSError):
        for name in _some(root):
            if _FOLDER.fullmatch(name):
                with contextlib.suppress(OSError):  # in use, gone meanwhile, or not ours to touch
                    _prune_folder(os.path.join(root, name), before)


def _prune_folder(folder: str, before: float) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        old = os.fstat(handle).st_mtime < before
        for name in _some(handle):
            about = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if _FILE.fullmatch(name) and stat.S_ISREG(about.st_mode) and about.st_mtime < before:
                os.unlink(name, dir_fd=handle)
        if old:
            os.rmdir(folder)  # refused while anything is in it
    finally:
        os.close(handle)


def _some(folder: str | int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from [entry.name for entry in islice(entries, _AT_ONCE)]
