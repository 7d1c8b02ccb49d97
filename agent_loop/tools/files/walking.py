"""All files below a directory, in the order of their paths.

May not know: tools; standard library only (the search process imports it). Invariant: no link is followed, and what
cannot be read is left out.
"""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from agent_loop.tools.files.ignoring import Ignored

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_RULES_BYTES: Final = 1 << 20


class Found(NamedTuple):
    """A file, or a link. `path` is relative to the top; `directory` (a descriptor) holds `name` until the next one."""

    path: str
    directory: int
    name: str
    link: bool
    ignored: bool


def walk(top: int, ignored: Ignored, *, stopped: Callable[[], bool] = lambda: False) -> Iterator[Found]:
    """The files below the directory `top` (a descriptor, which stays open). Ignored directories are not entered."""
    yield from _walk(top, "", ignored, stopped)


def _walk(directory: int, prefix: str, ignored: Ignored, stopped: Callable[[], bool]) -> Iterator[Found]:
    mark = ignored.enter(prefix, gitignore_of(directory)) if ignored.in_repository else 0
    try:
        with os.scandir(directory) as entries:
            rows = sorted((entry.name, _kind(entry)) for entry in entries)
    except OSError:
        rows = []
    for name, kind in rows:
        if stopped() or kind is None or name == ".git":
            continue
        path = prefix + name
        covered = ignored.in_repository and ignored.covers(path, directory=kind == "directory")
        if kind != "directory":
            yield Found(path, directory, name, kind == "link", covered)
        elif not covered:
            yield from _below(directory, name, path + "/", ignored, stopped)
    if ignored.in_repository:
        ignored.leave(mark)


def _below(directory: int, name: str, prefix: str, ignored: Ignored, stopped: Callable[[], bool]) -> Iterator[Found]:
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError:
        return
    try:
        yield from _walk(inner, prefix, ignored, stopped)
    finally:
        os.close(inner)


def read_file(directory: int, name: str, *, limit: int) -> bytes | None:
    """The bytes of a regular file; None when it is something else, larger than `limit`, or cannot be read."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= limit else None


def _kind(entry: os.DirEntry[str]) -> str | None:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else None


def gitignore_of(directory: int) -> str:
    """The text of the `.gitignore` in a directory, "" without one."""
    return (read_file(directory, ".gitignore", limit=_RULES_BYTES) or b"").decode("utf-8", "replace")
