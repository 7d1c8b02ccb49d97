"""A store on a disk that a test can fill up: the memory store, whose writes fail while `broken` is set."""

from agent_loop.session.events import SessionHeader
from agent_loop.session.memory import MemoryJournal, MemorySessionStore
from agent_loop.session.store import PersistenceError


class FailingStore(MemorySessionStore):
    """Full from `broken = True` on, until it is set back."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def create(self, header: SessionHeader) -> "FailingJournal":
        return FailingJournal(header, self)


class FailingJournal(MemoryJournal):
    """Refuses to write while its store is broken; what was appended stays buffered."""

    def __init__(self, header: SessionHeader, store: FailingStore) -> None:
        super().__init__(header, store.logs)
        self._store = store

    def write_pending(self) -> None:
        if self._store.broken:
            raise PersistenceError(self.header.id, "no space left on device")
        super().write_pending()
