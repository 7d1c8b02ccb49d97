"""`session/new`, `session/load`, `session/set_mode` (acp.md §2).

May not know: prompts. Invariant: no entry of `mcpServers` ever fails a session; `session/new`'s response precedes every
update of its session, `session/load`'s follows its whole replay.
"""

import os
from typing import Any, cast

from acp_bridge.live_session import LiveSession
from acp_bridge.methods.v1.connection import RESOURCE_NOT_FOUND, Connection
from acp_bridge.permission.policy import MODES
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INTERNAL_ERROR, INVALID_PARAMS
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import LoadSessionParams, NewSessionParams, SetModeParams
from agent_loop.session.store import SessionNotFoundError, SessionStoreError


async def new(connection: Connection, params: NewSessionParams, call: Call) -> dict[str, Any]:
    """A fresh session in `cwd`."""
    connection.require_settings()
    _check_directory(params.cwd)
    live = connection.bridge.new(params.cwd)
    live.unused_servers = _server_names(params.mcp_servers)
    call.after_response(lambda: _advertise(connection, live))
    return {"sessionId": live.id, "modes": _modes(connection, live.id)}


async def load(connection: Connection, params: LoadSessionParams, call: Call) -> dict[str, Any]:
    """The stored session, shown whole before the response; a live one is shown again and goes on."""
    connection.require_settings()
    if not os.path.isabs(params.cwd):
        raise _bad_cwd(params.cwd, "is not an absolute path")
    try:
        live = await connection.bridge.load(params.session_id, params.cwd)
    except SessionNotFoundError as error:
        raise RpcError(
            RESOURCE_NOT_FOUND, "Session not found", {"sessionId": params.session_id, "details": error.message}
        ) from error
    except SessionStoreError as error:
        reason = error.code.removeprefix("SESSION_").lower()
        raise RpcError(
            INTERNAL_ERROR,
            f"Session cannot be opened: {error.message}",
            {"reason": reason, "details": error.message, "sessionId": params.session_id},
        ) from error
    live.unused_servers = _server_names(params.mcp_servers)
    call.after_response(lambda: _advertise(connection, live))
    return {"modes": _modes(connection, live.id)}


async def set_mode(connection: Connection, params: SetModeParams, _call: Call) -> dict[str, Any]:
    """Change the mode, idle or in mid-turn; the update precedes the response."""
    live = await connection.require(params.session_id)
    known = [mode["id"] for mode in MODES]
    if params.mode_id not in known:
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: modeId {params.mode_id!r:.60} is unknown; use one of {', '.join(known)}"
        )
    live.agent.session.append("mode/change", {"modeId": params.mode_id})
    connection.bridge.parts.policy.set_mode(live.id, params.mode_id)
    return {}


def _modes(connection: Connection, session_id: str) -> dict[str, Any]:
    return {"currentModeId": connection.bridge.parts.policy.mode(session_id), "availableModes": list(MODES)}


def _advertise(connection: Connection, live: LiveSession) -> None:
    commands: list[dict[str, Any]] = [
        {"name": row["name"], "description": row["description"]}
        | ({"input": {"hint": row["hint"]}} if row["hint"] is not None else {})
        for row in connection.bridge.parts.commands.advertised()
    ]
    live.notify({"sessionUpdate": "available_commands_update", "availableCommands": commands})


def _check_directory(cwd: str) -> None:
    if not os.path.isabs(cwd):
        raise _bad_cwd(cwd, "is not an absolute path")
    if not os.path.isdir(cwd):
        raise _bad_cwd(cwd, "is not an existing directory")


def _bad_cwd(cwd: str, what: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Invalid params: cwd {cwd!r:.200} {what}")


def _server_names(servers: list[Any]) -> tuple[str, ...]:
    names: list[str] = []
    for index, server in enumerate(servers):
        name: object = cast("dict[str, Any]", server).get("name") if isinstance(server, dict) else None
        names.append(name if isinstance(name, str) and name else f"number {index + 1}")
    return tuple(names)
