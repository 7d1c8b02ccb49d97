"""The messages on a server's stdout, one a line.

May not know: processes, what a message means. Invariant: what is no message is told and skipped, whatever it is; one
line never takes more memory than the limit.
"""

import json
from typing import Any, cast

from mcp.types.jsonrpc import JSONRPCMessage, jsonrpc_message_adapter
from pydantic_core import from_json

LINE_LIMIT = 64 * 1024 * 1024


class Lines:
    """Cuts a stream into lines; of one that is longer than `limit` bytes nothing comes out."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` ends, blank ones left out."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._keep(end)
            if self._size <= self._limit:
                lines.append(b"".join(self._parts).strip())
            self._parts, self._size = [], 0
        self._keep(rest)
        return [line for line in lines if line]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()


def messages_of(line: bytes) -> list[JSONRPCMessage]:
    """The message of a line, or those of an array. Raises `ValueError` when it is none."""
    try:
        value: Any = from_json(line)
    except ValueError:
        value = from_json(_without_surrogates(line))
    rows = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [jsonrpc_message_adapter.validate_python(row, by_name=False) for row in rows]


def _without_surrogates(line: bytes) -> str:
    """The same JSON with U+FFFD for halves of characters, which some runtimes write."""
    try:
        text = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
