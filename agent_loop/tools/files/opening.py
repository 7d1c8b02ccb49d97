"""Descriptors of files and directories whose path was resolved and checked.

May not know: workspace roots, tools. Invariant: no link is followed — a component that was swapped for one after the
check is an error (`ELOOP`, `ENOTDIR`), never another file.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

# O_PATH needs no right to list the directories on the way; a system without it needs that
_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# a pipe or a device must not block the open
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def directory_of(real: str, *, create: bool = False) -> Generator[tuple[int, str]]:
    """Descriptor of the directory that holds `real` (absolute, resolved), and the name in it (`.` for the root).

    `create` makes the directories that are missing. Raises `OSError`.
    """
    *parents, name = real.strip(os.sep).split(os.sep)
    descriptor = os.open(os.sep, _DIRECTORY)
    try:
        for parent in parents:
            inner = _enter(parent, descriptor, create=create)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name or "."
    finally:
        os.close(descriptor)


def open_file(real: str) -> int:
    """A descriptor to read `real` (absolute, resolved), whatever it is. Raises `OSError`."""
    with directory_of(real) as (directory, name):
        return os.open(name, _FILE, dir_fd=directory)


def _enter(name: str, directory: int, *, create: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):  # somebody else was faster
        os.mkdir(name, dir_fd=directory)
    return os.open(name, _DIRECTORY, dir_fd=directory)
