"""The MCP servers of one session: connected together, waited for once, named when they fail.

May not know: other sessions, how a server is reached. Invariant: the session's model calls wait only until every
server has settled or the time for that is up, which is counted from the opening; each problem is logged once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from agent_loop.agent import Agent
from agent_loop.hooks import Hooks, Scope
from agent_loop.llm.seam import LlmRequest
from agent_loop.mcp.naming import server_prefix
from agent_loop.mcp.seam import Entry, Limits, Refused, Server
from agent_loop.mcp.surroundings import Surroundings
from agent_loop.tools.registry import ToolRegistry
from bash_exec.secrets import SecretRegistry
from bash_exec.service import Services

if TYPE_CHECKING:
    from agent_loop.mcp.connection import Connection


_END_SECONDS = 10.0  # above what each server is given to end, so that only a loop which is itself at its end needs it


@dataclass(frozen=True, slots=True)
class McpParts:
    """What all sessions share. The servers' logs lie below `log_root` (0700)."""

    hooks: Hooks
    tools: ToolRegistry
    services: Services
    secrets: SecretRegistry
    log_root: str
    limits: Limits


class SessionServers:
    """Made with what was given for the session; `run` is a task of its own, `close` ends it.

    `before`: what the session had until now, which is closed first.
    """

    def __init__(
        self, agent: Agent, entries: Sequence[Entry], parts: McpParts, *, before: "SessionServers | None"
    ) -> None:
        self.entries = list(entries)
        self._agent = agent
        self._parts = parts
        self._before = before
        self._servers: list[Server] = [entry for entry in entries if not isinstance(entry, Refused)]
        self._connections: list[Connection] = []
        self._lost: list[tuple[str, str]] = []
        self._untold = [(entry.name, entry.reason) for entry in entries if isinstance(entry, Refused)]
        self._waited = anyio.Event()  # the model may be called
        self._has_waited = False
        self._closing = False
        self._closed = anyio.Event()
        self._scope = Scope()
        parts.hooks.on("agent/turn-start", self._on_turn_start, agent=agent.id, scope=self._scope)
        parts.hooks.wrap("agent/request", self._before_call, agent=agent.id, scope=self._scope)

    async def run(self) -> None:
        """Connect, and stay until every server has ended."""
        try:
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(self._wait_long_enough)
                if self._before is not None:
                    await self._before.close()
                    # it holds on to the one before it in turn
                    self._before = None
                await self._connect()
                waiting.cancel_scope.cancel()
        finally:
            self._waited.set()
            self._closed.set()

    async def close(self) -> None:
        """End the servers; their tools are gone at once. Bounded by what a server is given to end."""
        self._closing = True
        self._scope.dispose()
        for connection in self._connections:
            connection.stop()
        with anyio.move_on_after(_END_SECONDS, shield=True):
            await self._closed.wait()

    async def _connect(self) -> None:
        make = await anyio.to_thread.run_sync(_load) if self._servers else None
        if make is None or self._closing:
            return
        parts, prefixes = self._parts, list[str]()
        around = Surroundings(
            agent_id=self._agent.id,
            directory=self._agent.cwd,
            tools=parts.tools,
            services=parts.services,
            secrets=parts.secrets,
            log_root=parts.log_root,
            limits=parts.limits,
            tell=lambda name, problem: self._lost.append((name, problem)),
        )
        for server in self._servers:
            prefixes.append(server_prefix(server.name, prefixes.__contains__))
            self._connections.append(make(server, prefix=prefixes[-1], around=around))
        async with anyio.create_task_group() as group:
            for connection in self._connections:
                group.start_soon(connection.run)
            for connection in self._connections:
                await connection.settled.wait()
            self._waited.set()

    async def _wait_long_enough(self) -> None:
        # in real time, also in a replay: it is programs outside that are waited for
        await anyio.sleep(self._parts.limits.first_call_waits)
        self._waited.set()

    async def _before_call(self, request: LlmRequest, following: Callable[[LlmRequest], Any]) -> Any:
        await self._waited.wait()
        first, self._has_waited = not self._has_waited, True
        self._collect()
        if first:
            self._untold += [(name, "it is still starting; its tools come when it is ready") for name in self._late()]
        self._tell()
        return await following(replace(request, tools=self._parts.tools.schemas(self._agent.id)))

    def _late(self) -> list[str]:
        """The servers that have not settled; before there are connections, all."""
        if not self._connections:
            return [server.name for server in self._servers]
        return [connection.name for connection in self._connections if not connection.settled.is_set()]

    def _on_turn_start(self, _agent: Agent, _turn: int) -> None:
        # before the first call only what is certain from the beginning: what is said then depends on no race
        if self._has_waited:
            self._collect()
        self._tell()

    def _collect(self) -> None:
        self._untold += self._lost
        self._lost.clear()

    def _tell(self) -> None:
        """Log what is not said yet."""
        if not self._untold:
            return
        told, self._untold = self._untold, []
        names = ", ".join(dict.fromkeys(name for name, _problem in told))
        what = "MCP server is" if len(told) == 1 else "MCP servers are"
        self._agent.session.append(
            "session/notice",
            {
                "severity": "warning",
                "title": f"{what} not available: {names}",
                "description": "\n".join(f"{name}: {problem}" for name, problem in told),
            },
        )


def _load() -> "type[Connection]":
    """What needs the `mcp` package, which takes a second to load."""
    from agent_loop.mcp.connection import Connection  # noqa: PLC0415 - sessions without servers never pay for it

    return Connection
