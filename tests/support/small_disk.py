"""A disk of a few pages that a test fills up and makes read-only: a tmpfs where one may be mounted.

Elsewhere the kernel refuses in other words: a limit on the size of files, and a folder without the right to write.
"""

import errno
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SmallDisk:
    """Everything below `path` is on it. A full disk takes nothing more, not even where a page has room left."""

    def __init__(self, path: Path, *, mounted: bool) -> None:
        self.path = path
        self._mounted = mounted
        self._limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        if not self._mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, self._limit[1]))
            return
        with self._filler.open("wb", buffering=0) as filler:
            try:
                while filler.write(b"x" * 4096):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def free(self) -> None:
        """Take back what `fill` did."""
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limit)
        self._filler.unlink(missing_ok=True)

    def make_read_only(self) -> None:
        """Nothing on it may be open for writing."""
        self._mount_option("ro", 0o500)

    def make_writable(self) -> None:
        self._mount_option("rw", 0o700)

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def _mount_option(self, option: str, mode: int) -> None:
        if self._mounted:
            subprocess.run(["mount", "-o", f"remount,{option}", str(self.path)], check=True)
        else:
            self.path.chmod(mode)


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    path.mkdir(mode=0o700)
    tmpfs = ["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", str(path)]
    mounted = (
        shutil.which("mount") is not None and not subprocess.run(tmpfs, check=False, capture_output=True).returncode
    )
    disk = SmallDisk(path, mounted=mounted)
    try:
        yield disk
    finally:
        disk.free()
        if mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)
