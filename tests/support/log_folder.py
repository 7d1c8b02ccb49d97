"""One stored log that is written, cut, damaged and loaded again thousands of times."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.session.log_file import FileOperations

RAM = Path("/dev/shm")
HEADER = SessionHeader("s", 5, cwd="/w")


class Unsynced(FileOperations):
    """Nothing here has to survive a power cut."""

    def sync(self, descriptor: int) -> None:
        return

    def sync_directory(self, directory: Path) -> None:
        return


class LogFolder:
    """A store with the real files of one session, in memory where there is such a folder."""

    def __init__(self, root: Path, header: SessionHeader) -> None:
        self.header = header
        self.path = log_path(root, header.id, header.cwd)
        self.path.parent.mkdir()
        self.store = JsonlSessionStore(root, VirtualRuntime(), operations=Unsynced())

    async def load(self) -> list[SessionEvent]:
        """The events of a load, closed again."""
        events: list[SessionEvent] = []
        opened = await self.store.load(self.header.id, None, on_event=events.append)
        await opened.journal.close()
        return events


@contextmanager
def log_folder(header: SessionHeader = HEADER) -> Iterator[LogFolder]:
    with tempfile.TemporaryDirectory(dir=RAM if os.access(RAM, os.W_OK) else None) as root:
        yield LogFolder(Path(root), header)


def lines_of(events: list[SessionEvent], header: SessionHeader = HEADER) -> list[bytes]:
    """The lines of a log, header first."""
    return [encode_header(header), *map(encode_event, events)]
