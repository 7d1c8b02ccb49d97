"""The talk with one server that has been reached: greeting, list of tools, calls.

May not know: processes, addresses, the agent. Invariant: every failure of a server leaves as `McpError` with a
sentence; a call that is cancelled has told the server so.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from mcp import types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from agent_loop.errors import HarnessError
from agent_loop.mcp.forgiving import mended
from agent_loop.mcp.seam import Limits, Streams
from agent_loop.vocabulary import JsonObject

_PAGES = 50
_CLIENT = types.Implementation(name="dsh-acp-agent", version="1")


class McpError(HarnessError):
    """A server did not do what it was asked. `code`: `MCP_GONE`, `MCP_TIMEOUT` or `MCP_ERROR`."""


class _Mending(JSONRPCDispatcher[Any]):
    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        return mended(method, await super().send_raw_request(method, params, opts, **more))


class Exchange:
    """Enter it over the streams of a transport. `on_change` is called when the server's tools have changed."""

    def __init__(self, streams: Streams, *, directory: str, limits: Limits, on_change: Callable[[], None]) -> None:
        self._limits = limits
        self._directory = directory
        self._on_change = on_change
        self._session = ClientSession(
            dispatcher=_Mending(*streams),
            read_timeout_seconds=limits.connect,
            client_info=_CLIENT,
            message_handler=self._hear,
            list_roots_callback=self._list_roots,
        )

    async def __aenter__(self) -> Self:
        await self._session.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._session.__aexit__(kind, error, trace)

    async def greet(self) -> None:
        """The handshake; a server that knows only the later one gets that. Raises `McpError`."""
        try:
            await self._session.initialize()
        except MCPError as error:
            if _is_closed(error) or _is_late(error):
                raise _failure(error, self._limits.connect) from error
            try:
                await self._session.discover()
            except (MCPError, ValueError, RuntimeError):
                raise _failure(error, self._limits.connect) from error
        except (ValueError, RuntimeError) as error:
            raise McpError(f"its greeting does not fit the protocol ({_first_line(error)})", "MCP_ERROR") from error

    async def tools(self) -> list[JsonObject]:
        """`{name, description?, inputSchema, annotations?}` of every tool. Raises `McpError`."""
        rows: list[JsonObject] = []
        cursor: str | None = None
        try:
            for _page in range(_PAGES):
                page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                rows += [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor:
                    break
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return []  # a server of prompts and resources only
            raise _failure(error, self._limits.connect) from error
        except ValueError as error:
            raise McpError(
                f"its list of tools does not fit the protocol ({_first_line(error)})", "MCP_ERROR"
            ) from error
        return rows

    async def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """The result of `tools/call`. Raises `McpError`."""
        limit = self._limits.call
        try:
            result = await self._session.call_tool(tool, arguments, read_timeout_seconds=limit)
        except MCPError as error:
            raise _failure(error, limit) from error
        except (ValueError, RuntimeError) as error:
            raise McpError(f"its answer does not fit the protocol ({_first_line(error)})", "MCP_ERROR") from error
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._on_change()
        await anyio.lowlevel.checkpoint()

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG002 - who asks is known
        return types.ListRootsResult.model_validate({"roots": [{"uri": Path(self._directory).as_uri()}]})


def _failure(error: MCPError, seconds: float) -> McpError:
    if _is_late(error):
        return McpError(f"it did not answer within {seconds:g} s", "MCP_TIMEOUT")
    if _is_closed(error):
        return McpError("the connection to it has ended", "MCP_GONE")
    return McpError(f"it answered: {error.message[:500]}", "MCP_ERROR")


# servers use these codes for other things, too: only with its own words it is the package that speaks


def _is_closed(error: MCPError) -> bool:
    return error.code == types.CONNECTION_CLOSED and error.message == "Connection closed"


def _is_late(error: MCPError) -> bool:
    return error.code == types.REQUEST_TIMEOUT and error.message.endswith(" timed out")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
