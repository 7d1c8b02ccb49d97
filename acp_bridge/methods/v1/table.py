"""The methods of ACP v1: name → (params, handler), and their dispatch.

May not know: what a method does. Invariant: what is not in the table is −32601; params are parsed once, here; before
`initialize` every other request is −32600 and every notification is ignored.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from acp_bridge.methods.v1 import connection as connecting
from acp_bridge.methods.v1 import listing, options, sessions
from acp_bridge.methods.v1 import prompt as prompting
from acp_bridge.methods.v1.connection import Connection
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import (
    AdvanceParams,
    AuthenticateParams,
    Incoming,
    ListSessionsParams,
    LoadSessionParams,
    LogoutParams,
    NewSessionParams,
    PromptParams,
    SchemaProblem,
    SessionParams,
    SetConfigOptionParams,
    SetModeParams,
    parse,
)

_Params = TypeVar("_Params", bound=Incoming)
Handler = Callable[[Connection, Any, Call], Awaitable[dict[str, Any] | None]]


@dataclass(frozen=True, slots=True)
class Method:
    """A request: its params model and its handler."""

    params: type[Incoming]
    handler: Handler


METHODS: dict[str, Method] = {
    "authenticate": Method(
        AuthenticateParams, lambda connection, params, _: connecting.authenticate(connection, params)
    ),
    "logout": Method(LogoutParams, lambda connection, params, _: connecting.logout(connection, params)),
    "session/new": Method(NewSessionParams, sessions.new),
    "session/load": Method(LoadSessionParams, sessions.load),
    "session/resume": Method(LoadSessionParams, sessions.resume),
    "session/fork": Method(LoadSessionParams, sessions.fork),
    "session/list": Method(ListSessionsParams, listing.list_sessions),
    "session/close": Method(SessionParams, sessions.close),
    "session/delete": Method(SessionParams, sessions.delete),
    "session/set_mode": Method(SetModeParams, options.set_mode),
    "session/set_config_option": Method(SetConfigOptionParams, options.set_config_option),
    "session/prompt": Method(PromptParams, prompting.prompt),
    connecting.ADVANCE_CLOCK: Method(
        AdvanceParams, lambda connection, params, _: connecting.advance_clock(connection, params)
    ),
}
CANCEL = "session/cancel"


class V1Dispatcher:
    """Serves one connection from the table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def is_notification(self, method: str) -> bool:
        """The notifications that a client may send."""
        return method == CANCEL

    def begin(self, method: str, params: dict[str, Any], call: Call) -> bool:
        """Prompts for the model need no task: the agent has one. Raises `RpcError`, without secrets."""
        if method != "session/prompt" or not self._connection.initialized:
            return False
        try:
            return prompting.begin(self._connection, _parsed(PromptParams, params), call)
        except RpcError as error:
            raise self._connection.redacted(error) from error

    async def request(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any] | None:
        """Parse and handle. Raises `RpcError`, without secrets."""
        try:
            return await self._handle(method, params, call)
        except RpcError as error:
            raise self._connection.redacted(error) from error

    async def _handle(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any] | None:
        if method == "initialize":
            return await connecting.initialize(self._connection, params)
        if not self._connection.initialized:
            raise RpcError(INVALID_REQUEST, "Not initialized: send initialize first")
        row = METHODS.get(method)
        if row is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method:.200}")
        return await row.handler(self._connection, _parsed(row.params, params), call)

    def notification(self, method: str, params: dict[str, Any]) -> None:
        """Act on a known notification; everything else, malformed ones included, is ignored."""
        if method != CANCEL or not self._connection.initialized:
            return
        try:
            parsed = parse(SessionParams, params)
        except SchemaProblem:
            return
        prompting.cancel(self._connection, parsed)


def _parsed(model: type[_Params], params: dict[str, Any]) -> _Params:
    try:
        return parse(model, params)
    except SchemaProblem as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from error
