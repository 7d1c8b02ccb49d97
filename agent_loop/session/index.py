"""The outlines of all stored logs, kept beside them (contract session-log.md §9, "List").

May not know: live sessions, who lists. Invariant: the logs alone are the truth and the index only saves reading them:
one that is missing, corrupt, of another version, locked or not writable costs time, never a wrong answer.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_loop.session.layout import SUFFIX
from agent_loop.session.outline import Outline, read_outline
from agent_loop.session.store import SessionSummary

if TYPE_CHECKING:
    from sqlite3 import Connection

NAME: Final = "index.sqlite"
VERSION: Final = 1

_FIELDS: Final = [field.name for field in fields(Outline)]
_SELECT: Final = f"SELECT file, {', '.join(_FIELDS)} FROM logs"  # noqa: S608 - constant names
_INSERT: Final = f"INSERT OR REPLACE INTO logs VALUES (?{', ?' * len(_FIELDS)})"  # noqa: S608 - constant
_DELETE: Final = "DELETE FROM logs WHERE file = ?"
_CREATE: Final = f"CREATE TABLE IF NOT EXISTS logs (file PRIMARY KEY, {', '.join(_FIELDS)}) WITHOUT ROWID"
_values = attrgetter(*_FIELDS)

Outlines = dict[str, Outline]
"""By path below the root."""


class SessionIndex:
    """Lists the logs below `root`. Blocking: for a worker thread; any number of threads and processes at once.

    An index that others keep locked for `busy_seconds` is done without.
    """

    def __init__(self, root: Path, *, busy_seconds: float = 2.0) -> None:
        self._root = root
        self._path = root / NAME
        self._busy_seconds = busy_seconds

    def summaries(self) -> list[SessionSummary]:
        """All logs that a load would open, in no order; a missing root is empty. Raises `OSError`."""
        files = dict(self._files())
        if not files:
            return []
        known = self._load()
        rows: Outlines = {}
        for file, status in files.items():
            row = known.get(file)
            if row is not None and row.describes(status):
                rows[file] = row
            else:
                # deleted meanwhile, or somebody else's
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    rows[file] = read_outline(self._root, file, row)
        changed = {file: row for file, row in rows.items() if known.get(file) is not row}
        if changed or known.keys() - rows.keys():
            self._save(changed, known.keys() - rows.keys())
        return [summary for row in rows.values() if (summary := row.summary())]

    def forget(self, path: Path) -> None:
        """Keep nothing of the log that was at `path`: whoever deletes a session wants its title gone as well."""
        if self._path.exists():
            self._save({}, [f"{path.parent.name}/{path.name}"])

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            buckets = [entry for entry in os.scandir(self._root) if entry.is_dir()]
        except FileNotFoundError:
            return
        for bucket in buckets:
            for entry in os.scandir(bucket):
                # ids and buckets are ASCII on disk; what is not may not even be text
                if entry.name.endswith(SUFFIX) and f"{bucket.name}{entry.name}".isascii():
                    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                        status = entry.stat()
                        if stat.S_ISREG(status.st_mode):
                            yield f"{bucket.name}/{entry.name}", status

    def _load(self) -> Outlines:
        """What the index holds; an index that cannot be used holds nothing, one that never will be is removed."""
        import sqlite3  # noqa: PLC0415 - 10 ms that an agent which never lists need not pay

        if not self._path.exists():
            return {}
        try:
            with contextlib.closing(self._connect()) as connection:
                if _version(connection) == VERSION:
                    return {file: Outline(*values) for file, *values in connection.execute(_SELECT)}
        except sqlite3.OperationalError:
            # locked by somebody, on a disk that is read-only or failing, of a strange form: leave it
            return {}
        except sqlite3.DatabaseError:
            self._remove()
        return {}

    def _save(self, changed: Outlines, gone: Iterable[str]) -> None:
        """Best effort: what could not be kept is read again next time."""
        import sqlite3  # noqa: PLC0415 - 10 ms that an agent which never lists need not pay

        # what sqlite makes beside it gets the same permissions
        with contextlib.suppress(sqlite3.Error, OSError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with contextlib.closing(self._connect()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute("BEGIN IMMEDIATE")
                if _version(connection) != VERSION:
                    connection.execute("DROP TABLE IF EXISTS logs")
                    connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute(_CREATE)
                connection.executemany(_DELETE, [(file,) for file in gone])
                connection.executemany(_INSERT, [(file, *_values(row)) for file, row in changed.items()])
                connection.execute("COMMIT")

    def _connect(self) -> "Connection":
        import sqlite3  # noqa: PLC0415 - 10 ms that an agent which never lists need not pay

        return sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)

    def _remove(self) -> None:
        for name in (NAME, f"{NAME}-wal", f"{NAME}-shm"):
            with contextlib.suppress(OSError):
                os.unlink(self._root / name)


def _version(connection: "Connection") -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return version
