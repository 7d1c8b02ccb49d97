"""Where the socket of this process lies, and who is at the other end of a connection.

May not know: what is said over it. Invariant: a socket lies in a directory that belongs to this user alone, and its
path fits into a socket address everywhere.
"""

import contextlib
import os
import re
import socket
import stat
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

LONGEST: Final = 100
"""Bytes of a path; a socket address holds 104 on macOS, 108 on Linux."""
_NAME: Final = re.compile(r"([0-9]+)-[0-9a-f]+\.sock")
_OPTION: Final[int | None] = getattr(socket, "SO_PEERCRED", None)


def directories(environment: Mapping[str, str], state: Path, temporary: Path) -> tuple[Path, ...]:
    """Where a socket may lie, best place first: the runtime directory of the user, the state, a temporary one."""
    given = environment.get("XDG_RUNTIME_DIR", "")
    runtime = (Path(given, "dsh-acp-agent"),) if os.path.isabs(given) else ()
    return (*runtime, state / "run", temporary / f"dsh-acp-agent-{os.geteuid()}")


def socket_path(candidates: Iterable[Path], name: str) -> Path:
    """A path in the first directory that fits; the directory is made. Raises `OSError` when none does.

    `name`: hexadecimal, that of no other socket of this process.
    """
    file = f"{os.getpid()}-{name}.sock"
    for directory in candidates:
        if len(os.fsencode(directory / file)) <= LONGEST:
            with contextlib.suppress(OSError):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                if is_private(directory):
                    return directory / file
    raise OSError("there is no private directory with a short path for a socket")


def is_private(directory: Path) -> bool:
    """Whether it is a directory, no link to one, that is this user's alone. Raises `OSError`."""
    found = directory.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def sweep(directory: Path) -> None:
    """Remove the sockets of processes that have ended without doing so. Raises `OSError`."""
    for path in directory.iterdir():
        named = _NAME.fullmatch(path.name)
        if named and not is_running(int(named[1])):
            path.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):
        # one of another user: the number was used again
        return False
    return True


IsOwn = Callable[[socket.socket], bool]
"""Whether the other end of a connection may be spoken to."""


def is_own_peer(connection: socket.socket, *, option: int | None = _OPTION) -> bool:
    """Whether the other end belongs to this user; where the kernel does not tell, the directory has seen to it."""
    if option is None:
        return True
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return uid == os.geteuid()
