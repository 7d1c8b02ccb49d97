"""The MCP servers of all sessions (contract acp.md §2: none of them ever blocks or fails a session).

May not know: ACP, how a server is reached. Invariant: `open` never waits and never raises; what a server was given in
secret is registered before anything is started with it; after `release` nothing of a session's servers is left.
"""

from collections.abc import Sequence

import anyio
from anyio.abc import TaskGroup

from agent_loop.agent import Agent
from agent_loop.mcp.seam import Entry, Refused, StdioServer
from agent_loop.mcp.session_servers import McpParts, SessionServers
from bash_exec.secrets import SecretRegistry


class McpHost:
    """Connects in tasks of `tasks`: call `dispose` before that group ends."""

    def __init__(self, parts: McpParts, tasks: TaskGroup) -> None:
        self._parts = parts
        self._tasks = tasks
        self._sessions: dict[str, SessionServers] = {}

    def open(self, agent: Agent, entries: Sequence[Entry]) -> None:
        """Connect the agent to these. A live one keeps its servers when it is given the same ones again, or none."""
        present = self._sessions.get(agent.id)
        if not entries or (present is not None and present.entries == list(entries)):
            return
        for entry in entries:
            learn_secrets(entry, self._parts.secrets)
        servers = self._sessions[agent.id] = SessionServers(agent, entries, self._parts, before=present)
        self._tasks.start_soon(servers.run)

    async def release(self, session_id: str) -> None:
        """End the servers of a session. Bounded; nothing when it has none."""
        servers = self._sessions.pop(session_id, None)
        if servers is not None:
            await servers.close()

    async def dispose(self) -> None:
        """End every server, and the process above them."""
        async with anyio.create_task_group() as group:
            for session_id in tuple(self._sessions):
                group.start_soon(self.release, session_id)
        await self._parts.services.close()


def learn_secrets(entry: Entry, secrets: SecretRegistry) -> None:
    """Register what the client gave for this server: environment, headers, what an address carries."""
    if isinstance(entry, Refused):
        return
    if isinstance(entry, StdioServer):
        for name, value in entry.environment.items():
            secrets.add(name, value)
        return
    from urllib.parse import parse_qsl, urlsplit  # noqa: PLC0415 - few sessions have servers at an address

    for name, value in entry.headers.items():
        secrets.add(name, value)
        # of `Bearer …` the second word is the secret that may appear elsewhere
        secrets.add(name, value.rpartition(" ")[2])
    address = urlsplit(entry.url)
    for name, value in parse_qsl(address.query):
        secrets.add(name, value)
    secrets.add(entry.name, address.password or "")
