"""Where the broken agent keeps its sessions: one file of JSON lines each, under HOME.

May not know: what the records mean, beyond the head line. Standard library only. Invariant: a record is in the file
before the frame that shows it is queued; one process writes a session at a time.
"""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_bridge.testing.broken_agent_wire import RpcError
from acp_bridge.testing.json_values import JsonObject, encode

_LOCK_SECONDS = 1.0
"""How long a load waits for a process that is just ending."""


def root() -> Path:
    """The folder of the sessions."""
    return Path(os.environ.get("HOME") or tempfile.gettempdir()) / ".acp-broken-agent"


class SessionFile:
    """One session's file, locked. Raises `RpcError` when there is none, or another process has it."""

    def __init__(self, session_id: str, faults: frozenset[str], *, head: JsonObject | None = None) -> None:
        self.path = root() / f"{session_id.replace('/', '')}.jsonl"
        self._faults = faults
        self._late: list[bytes] = []
        if head is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        elif not self.path.exists():
            raise RpcError(-32002, "Resource not found", {"sessionId": session_id})
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if head is not None else 0)
        self._descriptor = os.open(self.path, flags, 0o600)
        self._lock(session_id)
        if head is not None:
            self.append(head)

    def append(self, record: JsonObject) -> None:
        """Add a record."""
        line = encode(record).encode("utf-8", "replace") + b"\n"
        if "saves-at-the-end" in self._faults and "state" not in record and "head" not in record:
            self._late.append(line)
        else:
            os.write(self._descriptor, line)

    def flush(self) -> None:
        """A turn is over."""
        for line in self._late:
            os.write(self._descriptor, line)
        self._late.clear()

    def records(self) -> list[JsonObject]:
        """All of it; a line that was cut by a crash is left out."""
        lines = self.path.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._descriptor)

    def _lock(self, session_id: str) -> None:
        until = time.monotonic() + (0 if "impatient-load" in self._faults else _LOCK_SECONDS)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.02)  # a file lock has no wait that ends
                    continue
                os.close(self._descriptor)
                code = -32602 if "locked-is-invalid" in self._faults else -32603
                raise RpcError(code, "another process has this session", {"sessionId": session_id}) from None
            return


def listed(cwd: str | None, cursor: str | None, faults: frozenset[str]) -> JsonObject:
    """The result of session/list: newest first, by pages. Raises `RpcError` for a cursor that is none."""
    page = 20
    rows = [row for row in _rows() if cwd is None or os.path.realpath(row["cwd"]) == os.path.realpath(cwd)]
    if "filters-a-page" in faults and cwd is not None:
        rows = [row for row in list(_rows())[:page] if row in rows]
    if "lists-own-directory" in faults:
        rows = [row for row in rows if row["cwd"] == os.getcwd()]
    if "odd-dates" in faults:
        rows = [{**row, "updatedAt": "yesterday"} for row in rows]
    try:
        start = int(cursor or "0")
    except ValueError:
        if "takes-any-cursor" not in faults:
            raise RpcError(-32602, "unknown cursor") from None
        start = 0
    result: JsonObject = {"sessions": rows[start : start + page]}
    if start + page < len(rows):
        result["nextCursor"] = str(start + page - ("overlapping-pages" in faults))
    elif "null-cursor" in faults:
        result["nextCursor"] = None
    return result


def _rows() -> Iterator[JsonObject]:
    paths = [(path.stat().st_mtime_ns, path) for path in root().glob("*.jsonl")]
    for changed, path in sorted(paths, reverse=True):
        with path.open("rb") as file:
            head = json.loads(file.readline())["head"]
        roots = {"additionalDirectories": head["roots"]} if head["roots"] else {}
        date = datetime.fromtimestamp(changed / 1e9, UTC).isoformat()
        yield {"sessionId": path.stem, "cwd": head["cwd"], **roots, "updatedAt": date}
