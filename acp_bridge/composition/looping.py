"""The loops of the agents, wired: their schedules, their command, who watches them, and where their failures go.

May not know: editors. Invariant: made before the first agent.
"""

from anyio.abc import TaskGroup

from acp_bridge.logs import Log
from agent_loop.agent import Agent
from agent_loop.commands.loop import LoopCommand
from agent_loop.commands.registry import CommandRegistry
from agent_loop.errors import HarnessError
from agent_loop.hooks import Hooks
from agent_loop.loops.projection import loop_projection
from agent_loop.loops.runtime import ERROR
from agent_loop.loops.service import LoopService
from agent_loop.registry import AgentRegistry
from agent_loop.runtime import Runtime
from agent_loop.session.projection import ProjectionRegistry
from agent_loop.tools.registry import ToolRegistry


def make_loops(
    registry: AgentRegistry,
    tools: ToolRegistry,
    commands: CommandRegistry,
    *,
    hooks: Hooks,
    runtime: Runtime,
    tasks: TaskGroup,
    log: Log,
) -> tuple[LoopService, ProjectionRegistry]:
    """The loops and their projection; `/loop` is registered."""

    def failed(agent: Agent, error: HarnessError) -> None:
        log.warning("loop failed", session=agent.id, code=error.code, error=error.message)

    def unreadable(problem: str) -> None:
        log.warning("loop not shown", problem=problem)

    hooks.on(ERROR, failed)
    projections = ProjectionRegistry(hooks)
    projections.register(loop_projection(unreadable))
    commands.register(LoopCommand(tools, runtime))
    return LoopService(registry, tools, hooks=hooks, runtime=runtime, start=tasks.start_soon), projections
