"""`session/set_mode` and `session/set_config_option` (acp.md §2).

May not know: what an option does. Invariant: idle or in mid-turn; the updates of a change precede the response; what is
not offered is −32602 and changes nothing; the answer to an option is the complete list.
"""

from typing import Any

from acp_bridge.bridge import NotOfferedError
from acp_bridge.live_session import LiveSession
from acp_bridge.methods.v1.connection import Connection
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INVALID_PARAMS
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import SetConfigOptionParams, SetModeParams
from acp_bridge.translate.v1.options import config_options


async def set_mode(connection: Connection, params: SetModeParams, _call: Call) -> dict[str, Any]:
    """Change the mode."""
    live = await connection.require(params.session_id)
    _choose(connection, live, "mode", params.mode_id, said="modeId")
    return {}


async def set_config_option(connection: Connection, params: SetConfigOptionParams, _call: Call) -> dict[str, Any]:
    """Change an option; every option is a select, so a boolean is no value of any."""
    live = await connection.require(params.session_id)
    ids = [option["id"] for option in config_options(live.offer, live.choice)]
    if params.config_id not in ids:
        known = ", ".join(ids)
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: configId {params.config_id!r:.60} is unknown; use one of {known}"
        )
    _choose(connection, live, params.config_id, params.value, said="value")
    return {"configOptions": config_options(live.offer, live.choice)}


def _choose(connection: Connection, live: LiveSession, config_id: str, value: str | bool, *, said: str) -> None:  # noqa: FBT001 - the protocol's own union
    try:
        connection.bridge.choose(live, config_id, value)
    except NotOfferedError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {said} {error}") from error
