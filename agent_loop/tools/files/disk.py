"""Texts on the disk (contract tools-and-bash.md §6).

May not know: tools, editors. Invariant: a write replaces the whole file or nothing, keeps its mode and owner, and goes
through a link to what it names; nothing here blocks the loop.
"""

import errno
import os
import stat
from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

from agent_loop.abort import AbortSignal
from agent_loop.tools.files.kinds import binary_kind
from agent_loop.tools.files.numbering import long_file_window
from agent_loop.tools.files.opening import directory_of, open_file
from agent_loop.tools.files.seam import WHOLE_LIMIT, FileBackend, FileProblem, LineWindow, Place

_HEAD: Final = 8192
_T = TypeVar("_T")


class DiskFiles(FileBackend):
    """The files as they are stored."""

    async def read(self, place: Place, *, signal: AbortSignal) -> str | None:
        return await off_loop(lambda: read_text(place), place, "read", signal)

    async def window(self, place: Place, *, first: int, count: int, signal: AbortSignal) -> LineWindow:
        def read_window() -> LineWindow:
            with os.fdopen(_open_text(place), "rb") as file:
                return long_file_window(file, first=first, count=count, stopped=lambda: signal.aborted)

        return await off_loop(read_window, place, "read", signal)

    async def write(self, place: Place, text: str, *, signal: AbortSignal) -> None:
        await off_loop(lambda: _replace(place, text.encode("utf-8", "surrogateescape")), place, "write", signal)


async def off_loop(work: Callable[[], _T], place: Place, verb: str, signal: AbortSignal) -> _T:
    """`work` in a thread, its `OSError` as a `FileProblem`; not begun, or its result dropped, when `signal` aborts."""
    if not signal.aborted:
        try:
            result = await anyio.to_thread.run_sync(work)
        except OSError as error:
            raise problem_of(error, place, verb) from error
        if not signal.aborted:
            return result
    raise FileProblem(f"the turn ended before it could {verb} {place.path}", "aborted")


def read_text(place: Place) -> str | None:
    """The whole text; None when there is no such file. Blocking. Raises `OSError`, `FileProblem`."""
    try:
        descriptor = _open_text(place)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(WHOLE_LIMIT + 1)
    if len(data) > WHOLE_LIMIT:
        raise _too_large(place)
    return data.decode("utf-8", "surrogateescape")


def check_text(place: Place) -> bool:
    """Whether there is such a file. Blocking. Raises as `read_text` does."""
    try:
        descriptor = _open_text(place)
    except FileNotFoundError:
        return False
    try:
        if os.fstat(descriptor).st_size > WHOLE_LIMIT:
            raise _too_large(place)
    finally:
        os.close(descriptor)
    return True


def _too_large(place: Place) -> FileProblem:
    return FileProblem(f"{place.path} is larger than {WHOLE_LIMIT >> 20} MiB; change it with a command", "TOO_LARGE")


def _open_text(place: Place) -> int:
    """A descriptor at the beginning of a regular file that holds text."""
    descriptor = open_file(place.real)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise FileProblem(f"{place.path} is a device, a pipe or a socket, not a file", "NOT_A_FILE")
        kind = binary_kind(os.pread(descriptor, _HEAD, 0))
        if kind is not None:
            raise FileProblem(
                f"{place.path} is not text but {kind} ({status.st_size} bytes); use a command that understands it",
                "NOT_TEXT",
            )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _replace(place: Place, data: bytes) -> None:
    with directory_of(place.real, create=True) as (directory, name):
        try:
            old = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            old = None
        if old is not None:
            _check_replaceable(old, place)
        # a name of fixed length: that of the file may be as long as a name can be
        temporary = f".dsh-{os.urandom(8).hex()}.tmp"
        created = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=directory)
        try:
            with os.fdopen(created, "wb") as file:
                if old is not None:
                    _keep_rights(created, old)
                file.write(data)
                file.flush()
                os.fsync(created)
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(temporary, dir_fd=directory)
            raise


def _check_replaceable(old: os.stat_result, place: Place) -> None:
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(old.st_mode):
        raise FileProblem(f"{place.path} is a device, a pipe, a socket or a new link, not a file", "NOT_A_FILE")
    if not old.st_mode & 0o222:
        mode = stat.S_IMODE(old.st_mode)
        raise FileProblem(
            f"{place.path} is read-only (mode {mode:04o}); make it writable (chmod u+w) if it is meant to change",
            "NO_ACCESS",
        )


def _keep_rights(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError as error:
            # the new file would belong to somebody else
            raise PermissionError(errno.EPERM, "it belongs to another user") from error
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def problem_of(error: OSError, place: Place, verb: str) -> FileProblem:
    """`error` as a sentence that names the file and, where there is one, the way round."""
    path = place.path
    match error.errno:
        case errno.ENOENT:
            return FileProblem(f"{path} does not exist; look for it with glob or list", "NOT_FOUND")
        case errno.EISDIR:
            return FileProblem(f"{path} is a directory; use list to see what is in it", "NOT_A_FILE")
        case errno.ENOTDIR | errno.EEXIST:
            return FileProblem(f"cannot {verb} {path}: a part of that path is not a directory", "NOT_A_DIRECTORY")
        case errno.ELOOP:
            return FileProblem(f"cannot {verb} {path}: it became a link while it was looked at; try again", "OUTSIDE")
        case errno.EACCES | errno.EPERM:
            return FileProblem(f"no permission to {verb} {path}: {error.strerror}", "NO_ACCESS")
        case _:
            return FileProblem(f"cannot {verb} {path}: {error.strerror or error}", "IO")
