"""`session/new`, `load`, `resume`, `fork`, `close` and `delete` (acp.md §2).

May not know: prompts. Invariant: no entry of `mcpServers` ever fails a session; `session/new`'s response precedes every
update of its session, `session/load`'s follows its whole replay, `session/close`'s follows everything.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from acp_bridge.first_session import OpenedSession
from acp_bridge.live_session import LiveSession
from acp_bridge.methods.v1.connection import Connection, not_found, store_failure
from acp_bridge.methods.v1.mcp_servers import server_entries
from acp_bridge.permission.modes import mode_state
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import LoadSessionParams, NewSessionParams, SessionParams, parse
from acp_bridge.translate.v1.options import config_options
from agent_loop.session.store import SessionStoreError


async def new(connection: Connection, params: NewSessionParams, call: Call) -> dict[str, Any]:
    """A fresh session in `cwd`."""
    connection.require_settings()
    _check_directory(params.cwd)
    _check_roots(params)
    live = connection.bridge.new(params.cwd, roots=params.additional_directories)
    return {"sessionId": live.id, **_opened(connection, live, params, call)}


def adopt(connection: Connection, opened: OpenedSession) -> None:
    """Make the session whose `session/new` the light path has answered."""
    params = parse(NewSessionParams, opened.params)
    live = connection.bridge.new(params.cwd, roots=params.additional_directories, session_id=opened.session_id)
    connection.bridge.parts.mcp.open(live.agent, server_entries(params.mcp_servers))
    _advertise(connection, live)


async def load(connection: Connection, params: LoadSessionParams, call: Call) -> dict[str, Any]:
    """The stored session, shown whole before the response; a live one is shown again and goes on."""
    live = await _open(connection, params)
    with live.answering():
        with _failures(params.session_id):
            await live.replay()
        return _opened(connection, live, params, call)


async def resume(connection: Connection, params: LoadSessionParams, call: Call) -> dict[str, Any]:
    """The stored session, of which nothing is shown; a live one goes on."""
    live = await _open(connection, params)
    with live.answering():
        return _opened(connection, live, params, call)


async def fork(connection: Connection, params: LoadSessionParams, call: Call) -> dict[str, Any]:
    """A new session in `cwd` that begins with the ended turns of another; nothing is shown, the other is not touched.

    Unstable: there only when switched on (setting `unstable.fork`).
    """
    if not connection.fork:
        raise RpcError(METHOD_NOT_FOUND, "Method not found: session/fork (set unstable.fork to switch it on)")
    connection.require_settings()
    _check_directory(params.cwd)
    _check_roots(params)
    call.on_cancel(_finish)
    with _failures(params.session_id):
        live = await connection.bridge.fork(params.session_id, params.cwd, roots=params.additional_directories)
    return {"sessionId": live.id, **_opened(connection, live, params, call)}


async def close(connection: Connection, params: SessionParams, call: Call) -> dict[str, Any]:
    """End a live session: its prompts answer `cancelled` first. It stays stored. Raises −32002 when it is not live."""
    call.on_cancel(_finish)
    if not await connection.bridge.close(params.session_id):
        raise not_found(params.session_id)
    return {}


async def delete(connection: Connection, params: SessionParams, call: Call) -> dict[str, Any]:
    """Remove a session for good, live or stored; one that does not exist is removed already."""
    connection.require_settings()
    call.on_cancel(_finish)
    with _failures(params.session_id):
        await connection.bridge.delete(params.session_id)
    return {}


async def _open(connection: Connection, params: LoadSessionParams) -> LiveSession:
    connection.require_settings()
    if not os.path.isabs(params.cwd):
        raise _bad_directory("cwd", params.cwd, "is not an absolute path")
    _check_roots(params)
    with _failures(params.session_id):
        return await connection.bridge.open(params.session_id, params.cwd, roots=params.additional_directories)


def _opened(connection: Connection, live: LiveSession, params: NewSessionParams, call: Call) -> dict[str, Any]:
    connection.bridge.parts.mcp.open(live.agent, server_entries(params.mcp_servers))
    call.after_response(lambda: _advertise(connection, live))
    return {"modes": mode_state(live.choice.mode), "configOptions": config_options(live.offer, live.choice)}


@contextmanager
def _failures(session_id: str) -> Generator[None]:
    try:
        yield
    except SessionStoreError as error:
        raise store_failure(error, session_id) from error


def _finish() -> None:
    """A `$/cancel_request` comes too late: half a session is of no use to anybody."""


def _advertise(connection: Connection, live: LiveSession) -> None:
    commands: list[dict[str, Any]] = [
        {"name": row["name"], "description": row["description"]}
        | ({"input": {"hint": row["hint"]}} if row["hint"] is not None else {})
        for row in connection.bridge.parts.commands.advertised()
    ]
    live.notify({"sessionUpdate": "available_commands_update", "availableCommands": commands})
    # the client knows the session now, so a turn of its own can be shown
    connection.bridge.parts.loops.begin(live.id)


def _check_directory(path: str, *, name: str = "cwd") -> None:
    if not os.path.isabs(path):
        raise _bad_directory(name, path, "is not an absolute path")
    if not os.path.isdir(path):
        raise _bad_directory(name, path, "is not an existing directory")


def _check_roots(params: NewSessionParams) -> None:
    for path in params.additional_directories:
        _check_directory(path, name="additionalDirectories")


def _bad_directory(name: str, path: str, what: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Invalid params: {name} {path!r:.200} {what}")
