"""The tools of a session.

May not know: models, the editor. Invariant: what can be shown of a tool's calls is the same with and without an
executor: cards are pure.
"""

from collections.abc import Callable
from functools import cache
from typing import cast

from agent_loop.loops.runtime import LoopRuntime
from agent_loop.loops.tools import loop_tools
from agent_loop.tools.ask_user import AskUserTool
from agent_loop.tools.bash import BashKillTool, BashOutputTool, BashTool, ChooseRunner
from agent_loop.tools.files.edit import EditTool
from agent_loop.tools.files.glob import GlobTool
from agent_loop.tools.files.grep import GrepTool
from agent_loop.tools.files.listing import ListTool
from agent_loop.tools.files.read import ReadTool
from agent_loop.tools.files.write import WriteTool
from agent_loop.tools.plan import TodoWriteTool
from agent_loop.tools.seam import AskUser, Tool
from bash_exec.seam import BashExecutor


@cache
def shown_tools() -> dict[str, Tool]:
    """The tools as far as their cards go: without an executor, none of these can run anything."""
    executor, ask = cast("BashExecutor", None), cast("AskUser", None)
    tools = make_tools(executor, lambda _session, _text: None, ask=ask)
    return {tool.name: tool for tool in (*tools, *loop_tools(cast("LoopRuntime", None)))}


def make_tools(
    executor: BashExecutor,
    notify: Callable[[str, str], None],
    *,
    ask: AskUser,
    runner: ChooseRunner | None = None,
) -> tuple[BashTool, *tuple[Tool, ...]]:
    """Every tool that all sessions have; `notify(session_id, text)` tells the model of one something.

    `runner` chooses who runs a foreground command; None = always `executor`.
    """
    return (
        BashTool(executor, notify=notify, runner=runner),
        BashOutputTool(executor),
        BashKillTool(executor),
        TodoWriteTool(),
        AskUserTool(ask),
        ReadTool(),
        WriteTool(),
        EditTool(),
        ListTool(),
        GlobTool(),
        GrepTool(),
    )
