"""The host of the MCP servers that clients name.

May not know: what a client names. Invariant: servers get the environment of commands, never ours; they run outside the
sandbox, since it is the user's editor that chose them.
"""

from collections.abc import Mapping

import platformdirs
from anyio.abc import TaskGroup

from acp_bridge.composition.start import Start
from acp_bridge.config_file import APP
from agent_loop.hooks import Hooks
from agent_loop.mcp.host import McpHost
from agent_loop.mcp.seam import Limits
from agent_loop.mcp.session_servers import McpParts
from agent_loop.tools.registry import ToolRegistry
from bash_exec.service import Services

_FIRST_CALL_WAITS = 5.0  # seconds from the opening: most programs are there by the time that a person has typed


def make_mcp(
    start: Start, environment: Mapping[str, str], tasks: TaskGroup, *, hooks: Hooks, tools: ToolRegistry
) -> McpHost:
    """Programs get `environment`. The tools belong to what is recorded: a recording and its replay wait for all."""
    limits = start.settings.config.mcp
    parts = McpParts(
        hooks=hooks,
        tools=tools,
        services=Services(environment=environment),
        secrets=start.secrets,
        log_root=str(platformdirs.user_log_path(APP) / "mcp"),
        limits=Limits(
            connect=limits.timeout_seconds,
            call=limits.call_timeout_seconds,
            first_call_waits=limits.timeout_seconds if start.settings.snapshot else _FIRST_CALL_WAITS,
        ),
    )
    return McpHost(parts, tasks)
