"""The local page with its concrete parts.

May not know: what is on it. Invariant: only who asks for the page imports its server.
"""

import sys
from collections.abc import Mapping
from typing import Final

from acp_bridge.cli.parts import Streams

_EXTRA: Final = frozenset({"starlette", "uvicorn"})
_MISSING: Final = "dsh-acp-agent ui needs the libraries of its page: install `dsh-acp-agent[ui]`"


def serve_page(argv: list[str], environment: Mapping[str, str], streams: Streams) -> int:
    """Carry out what follows the word `ui`. Returns the exit code; Ctrl-C raises `KeyboardInterrupt`."""
    try:
        from acp_bridge.ui.serving import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        streams.say(_MISSING)
        return 1
    from acp_bridge.composition.toolset import shown_tools
    from agent_loop.runtime import SystemRuntime
    from agent_loop.session.jsonl import JsonlSessionStore

    runtime = SystemRuntime()
    tools = shown_tools()
    return run(
        argv,
        environment,
        streams,
        open_store=lambda root: JsonlSessionStore(root, runtime),
        find_tool=tools.get,
        runtime=runtime,
        platform=sys.platform,
    )
