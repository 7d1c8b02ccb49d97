"""`mcpServers` of a session as the agent takes them (acp.md §2, surface.md §1.6).

May not know: how a server is reached. Invariant: total — an entry that cannot be used becomes one that says why, by the
name that the client gave it, and never harms its neighbours.
"""

from collections.abc import Sequence
from typing import Any, cast

from acp_bridge.schema import McpProgram, McpRemote, SchemaProblem, parse
from agent_loop.mcp.seam import Entry, Refused, RemoteServer, StdioServer


def server_entries(given: Sequence[Any]) -> list[Entry]:
    """One for each that was given, in order."""
    return [_entry(value, number) for number, value in enumerate(given, 1)]


def _entry(value: Any, number: int) -> Entry:
    row = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    name: object = row.get("name")
    shown = name if isinstance(name, str) and name.strip() else f"number {number}"
    kind = row.get("type") or ("http" if "url" in row else "stdio")
    try:
        if kind == "stdio":
            program = parse(McpProgram, row)
            return StdioServer(shown, program.command, tuple(program.args), program.environment)
        if kind in ("http", "sse"):
            remote = parse(McpRemote, row)
            return RemoteServer(shown, kind, remote.url, remote.given_headers)
    except SchemaProblem as problem:
        return Refused(shown, f"its entry cannot be used: {problem}")
    return Refused(shown, f"servers of the type {kind!r:.40} are not supported; use stdio, http or sse")
