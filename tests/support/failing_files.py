"""A disk that fails on demand, and otherwise is the real one."""

import errno
import os
import threading
from pathlib import Path

from agent_loop.session.log_file import FileOperations


class FailingFiles(FileOperations):
    """Set `write_error`, `sync_error`, `truncate_error`, `directory_error` to an errno to fail the calls of that kind
    from then on; the last after `directory_syncs_before_error` that go well. `durable` is how many bytes the file that
    was synced last had then. A sync waits for `hang`, then fails with `hanging_error`.

    `short` limits how many bytes one write takes; with `write_error` set the limit is written first, then it fails.
    """

    def __init__(self) -> None:
        self.write_error: int | None = None
        self.sync_error: int | None = None
        self.truncate_error: int | None = None
        self.directory_error: int | None = None
        self.directory_syncs_before_error = 0
        self.short: int | None = None
        self.writes = 0
        self.syncs = 0
        self.durable = 0
        self.hang: threading.Event | None = None
        self.hanging_error: int | None = None

    def write(self, descriptor: int, data: memoryview) -> int:
        self.writes += 1
        if self.short is not None:
            taken, self.short = super().write(descriptor, data[: self.short]), None
            return taken
        _raise(self.write_error)
        return super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        if self.hang is not None:
            self.hang.wait(60)
            _raise(self.hanging_error)
            return
        _raise(self.sync_error)
        super().sync(descriptor)
        self.durable = os.fstat(descriptor).st_size

    sync_data = sync

    def truncate(self, descriptor: int, size: int) -> None:
        _raise(self.truncate_error)
        super().truncate(descriptor, size)

    def sync_directory(self, directory: Path) -> None:
        if self.directory_syncs_before_error:
            self.directory_syncs_before_error -= 1
        else:
            _raise(self.directory_error)
        super().sync_directory(directory)


def _raise(code: int | None) -> None:
    if code is not None:
        raise OSError(code, os.strerror(code))


DISK_FULL = errno.ENOSPC
IO_ERROR = errno.EIO
