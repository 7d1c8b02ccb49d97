"""Gives every root agent its loops, and takes them away (contract loops.md §2, §3).

May not know: editors. Invariant: an agent has its loops and their tools from `agent/created` until it is stopped or
disposed; another agent's are out of its reach.
"""

from agent_loop.agent import Agent
from agent_loop.hooks import Hooks, Remover
from agent_loop.loops.runtime import QUEUE_SECONDS, LoopRuntime, Start
from agent_loop.loops.tools import loop_tools
from agent_loop.registry import AgentRegistry
from agent_loop.runtime import Runtime
from agent_loop.tools.registry import ToolRegistry


class LoopService:
    """Made before the first agent. `start` runs a coroutine function as a task that outlives the caller's.

    `queue_seconds` bounds the wait of `stop`.
    """

    def __init__(
        self,
        registry: AgentRegistry,
        tools: ToolRegistry,
        *,
        hooks: Hooks,
        runtime: Runtime,
        start: Start,
        queue_seconds: float = QUEUE_SECONDS,
    ) -> None:
        self._registry = registry
        self._tools = tools
        self._hooks = hooks
        self._runtime = runtime
        self._start = start
        self._queue_seconds = queue_seconds
        self._loops: dict[str, tuple[LoopRuntime, list[Remover]]] = {}
        hooks.on("agent/created", self._attach)
        hooks.on("agent/disposed", self._detach)

    def begin(self, agent_id: str) -> None:
        """The agent's resumed loops may fire now: once, if they are overdue. Before this only new loops make it look.

        For whoever shows a session: no turn should run before it can be shown.
        """
        if found := self._loops.get(agent_id):
            found[0].begin()

    async def stop(self, agent_id: str) -> None:
        """The agent is about to end: send it nothing more, and wait for what is under way."""
        if found := self._loops.get(agent_id):
            await found[0].dispose()

    def _attach(self, agent: Agent) -> None:
        if agent.owner is not None:
            return
        loops = LoopRuntime(
            agent,
            is_live=lambda: self._registry.get(agent.id) is agent and not agent.disposed,
            hooks=self._hooks,
            runtime=self._runtime,
            start=self._start,
            queue_seconds=self._queue_seconds,
        )
        self._loops[agent.id] = (
            loops,
            [self._tools.register(tool, agent=agent.id) for tool in loop_tools(loops)],
        )

    def _detach(self, agent: Agent) -> None:
        if found := self._loops.pop(agent.id, None):
            loops, removers = found
            loops.stop()
            for remove in removers:
                remove()
