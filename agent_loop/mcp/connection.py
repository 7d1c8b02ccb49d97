"""One server of a session, from its start to its end.

May not know: other servers, the editor. Invariant: `run` never raises but for the cancellation of its own task (what
fails in a server or in the library is a sentence for the user), and nothing of the server is left when it returns.
"""

import math
from functools import partial
from typing import cast

import anyio

from agent_loop.errors import HarnessError
from agent_loop.hooks import Remover
from agent_loop.mcp.exchange import Exchange, McpError
from agent_loop.mcp.naming import tool_name
from agent_loop.mcp.remote import Address
from agent_loop.mcp.results import outcome_of
from agent_loop.mcp.seam import Server, StdioServer
from agent_loop.mcp.server_log import ServerLog
from agent_loop.mcp.stdio import Program
from agent_loop.mcp.surroundings import Surroundings
from agent_loop.mcp.tool import McpTool
from agent_loop.tools.seam import ToolOutcome
from agent_loop.vocabulary import JsonObject
from bash_exec.errors import ExecutorError

_FAREWELL_SECONDS = 2.0  # for a remote server to be told of the end
_GONE = "the connection to it has ended"


class Connection:
    """`settled` is set when its tools are there or it has failed; `prefix` stands before the names of its tools."""

    def __init__(self, server: Server, *, prefix: str, around: Surroundings) -> None:
        self.name = server.name
        self.settled = anyio.Event()
        self._around = around
        self._prefix = prefix
        self._log = log = ServerLog(f"{around.log_root}/{prefix}.log", around.secrets)
        self._transport = (
            Program(server, directory=around.directory, services=around.services, log=log, on_over=self._note_over)
            if isinstance(server, StdioServer)
            else Address(server)
        )
        self._offered: dict[str, tuple[McpTool, Remover]] = {}
        self._exchange: Exchange | None = None
        self._problem = ""
        self._scope = anyio.CancelScope()
        self._stopping = False
        self._stirred = anyio.Event()  # the tools have changed, the server is gone, or somebody wants the end
        self._has_changed = False
        self._is_over = False

    async def run(self) -> None:
        """Connect, offer the tools, stay until the end. A task of its own."""
        try:
            await self._live()
        except Exception as error:  # noqa: BLE001 - the server wall: nothing that a server does ends the agent
            self._problem = self._transport.explained(_sentence(error))
        finally:
            self._exchange = None
            self._log.close()
            self.settled.set()
        if not self._stopping:
            self._around.tell(self.name, self._problem)

    def stop(self) -> None:
        """Ask for the end, which is soon; the tools go at once."""
        self._stopping = self._is_over = True
        self._offer([])
        if self._exchange is None:
            self._scope.cancel()
        else:
            self._scope.deadline = anyio.current_time() + _FAREWELL_SECONDS
        self._stirred.set()

    def _note_over(self) -> None:
        self._is_over = True
        self._stirred.set()

    def _note_change(self) -> None:
        self._has_changed = True
        self._stirred.set()

    async def _live(self) -> None:
        seconds = self._around.limits.connect
        self._problem = self._transport.explained(f"it was not ready within {seconds:g} s")
        self._scope.deadline = anyio.current_time() + seconds
        with self._scope:
            await self._converse()
            self._problem = self._transport.explained(_GONE)

    async def _converse(self) -> None:
        around = self._around
        async with (
            self._transport.streams() as streams,
            Exchange(
                streams, directory=around.directory, limits=around.limits, on_change=self._note_change
            ) as exchange,
        ):
            await exchange.greet()
            self._offer(await exchange.tools())
            self._exchange, self._problem = exchange, ""
            self._scope.deadline = math.inf
            self.settled.set()
            while not self._is_over:
                if self._has_changed:
                    self._has_changed = False
                    await self._list_again(exchange)
                else:
                    self._stirred = anyio.Event()
                    await self._stirred.wait()
            self._exchange = None

    async def _list_again(self, exchange: Exchange) -> None:
        try:
            rows = await exchange.tools()
        except McpError as error:
            self._log.note(f"the tools could not be listed again: {error.message}".encode())
            return
        if not self._stopping:
            self._offer(rows)

    def _offer(self, rows: list[JsonObject]) -> None:
        """Make the tools of the registry those of `rows`; what has not changed stays."""
        wanted: dict[str, JsonObject] = {row["name"]: row for row in rows}
        for name, (tool, remove) in list(self._offered.items()):
            if wanted.get(name) != tool.row:
                remove()
                del self._offered[name]
        tools, agent = self._around.tools, self._around.agent_id
        for name, row in wanted.items():
            if name not in self._offered:
                shown = tool_name(self._prefix, name, lambda taken: tools.get(taken, agent) is not None)
                tool = McpTool(shown, row, server=self.name, call=partial(self._call, name))
                self._offered[name] = tool, tools.register(tool, agent=agent)

    async def _call(self, tool: str, arguments: JsonObject) -> ToolOutcome:
        if self._exchange is None:
            raise McpError(
                f"the MCP server {self.name} is gone: {self._problem or _GONE}; its tools cannot be used any more",
                "MCP_GONE",
            )
        try:
            return outcome_of(await self._exchange.call(tool, arguments))
        except McpError as error:
            if error.code == "MCP_GONE":
                self._note_over()  # of a remote server nothing else tells
            raise McpError(f"the MCP server {self.name}: {error.message}", error.code) from error


def _sentence(error: Exception) -> str:
    """What failed, for people; of an unforeseen failure only its kind, since its text may hold anything."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    if isinstance(error, HarnessError):
        return error.message
    if isinstance(error, ExecutorError):
        return str(error)
    return f"it could not be reached ({type(error).__name__})"
