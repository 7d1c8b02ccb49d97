"""Agents whose MCP servers are real programs, or real servers at an address of this machine."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agent_loop.abort import AbortController
from agent_loop.agent import Agent
from agent_loop.mcp.host import McpHost
from agent_loop.mcp.seam import Entry, Limits, StdioServer
from agent_loop.mcp.session_servers import McpParts
from agent_loop.tools.seam import ToolCall, ToolContext, ToolOutcome
from bash_exec.service import Services
from tests.support import mcp_server
from tests.support.agent_world import OPTIONS, World, agent_world
from tests.support.processes import numbers
from tests.support.scripted_adapter import says

PIPES = ("waiting", "cancelled", "deaf", "go")
LIMITS = Limits(connect=20, call=20, first_call_waits=20)


def program(name: str, behaviour: str = "", **environment: str) -> StdioServer:
    """The server of `mcp_server.py`."""
    return StdioServer(name, sys.executable, ("-S", mcp_server.__file__, behaviour), environment)


@dataclass
class McpWorld:
    """`cwd` is where the servers run and leave their files."""

    agents: World
    host: McpHost
    agent: Agent
    cwd: Path

    async def open(self, *entries: Entry) -> None:
        """Give the agent servers, and a first prompt, before which they have settled."""
        self.host.open(self.agent, entries)
        await self.agents.prompt(self.agent)

    async def call(self, tool: str, signal: Any = None, **arguments: Any) -> ToolOutcome:
        context = ToolContext(self.agent.id, str(self.cwd), signal or AbortController())
        return await self.agents.tools.execute(ToolCall("c", tool, arguments, "{}"), context, agent=self.agent.id)

    async def text(self, tool: str, **arguments: Any) -> str:
        """The one text that the tool answers."""
        (block,) = (await self.call(tool, **arguments)).content
        return block["text"]

    def tools(self) -> dict[str, Any]:
        """What the model is offered, by name."""
        return {row["name"]: row for row in self.agents.tools.schemas(self.agent.id)}

    def notices(self) -> list[str]:
        """The notices of the log, as title and description."""
        return [f"{data['title']}\n{data['description']}" for data in self.agents.of(self.agent, "session/notice")]

    async def tools_changed(self) -> None:
        """Return when the tools of the agent have changed the next time."""
        changed = anyio.Event()
        remove = self.agents.hooks.on("tools/change", changed.set, agent=self.agent.id)
        await changed.wait()
        remove()

    async def told(self, pipe: str) -> str:
        """What a server writes into the named pipe, which was made with the world."""
        return await anyio.to_thread.run_sync((self.cwd / pipe).read_text)

    async def pids(self, server: str = "s") -> list[int]:
        """The processes of a server."""
        return numbers(await self.text(f"{server}__pids"))


@asynccontextmanager
async def mcp_world(cwd: Path, *answers: Sequence[Any], limits: Limits = LIMITS) -> AsyncIterator[McpWorld]:
    """At the end every server is gone."""
    async with agent_world(*answers, fallback=says("hi")) as agents:
        for name in PIPES:
            os.mkfifo(cwd / name)
        services = Services(environment={"PATH": os.environ["PATH"]})
        parts = McpParts(agents.hooks, agents.tools, services, agents.secrets, str(cwd / "logs"), limits)
        host = McpHost(parts, agents.tasks)
        agent = agents.registry.create(replace(OPTIONS), cwd=str(cwd))
        try:
            yield McpWorld(agents, host, agent, cwd)
        finally:
            with anyio.CancelScope(shield=True):
                await host.dispose()
