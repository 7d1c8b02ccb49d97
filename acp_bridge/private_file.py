"""Files that only their user can read: changed by one process at a time, replaced whole or not at all.

May not know: what stands in them. Invariant: a file is 0600 from its first byte on; a write that fails leaves the old
file as it was, and no other.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def only_writer(folder: str) -> Generator[None]:
    """Nobody else who asks this way changes a file in `folder` meanwhile; the folder is 0700. Raises `OSError`."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fchmod(descriptor, 0o700)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: str, text: str) -> None:
    """Make `text` what stands in `path`, durably. Raises `OSError`."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}-", dir=os.path.dirname(path))  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
