"""Agents with loops: everything real but the model, the clock, and, where a test wants, the delivery edge."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from anyio.lowlevel import checkpoint

from agent_loop.abort import AbortController
from agent_loop.agent import Agent
from agent_loop.loops.service import LoopService
from agent_loop.session.log import Session
from agent_loop.tools.seam import ToolCall, ToolContext, ToolOutcome
from tests.support.agent_world import CWD, World, agent_world
from tests.support.scripted_adapter import Gate
from tests.support.spy_agent import SpyAgent, spied


async def settled() -> None:
    """Let everything happen that needs neither the clock nor a thread: with a store in memory that is all there is."""
    for _ in range(200):
        await checkpoint()


@dataclass
class Disk:
    """What a flush does: `gates` are waited at in order, then `fails` says how often it fails."""

    gates: list[Gate] = field(default_factory=list)
    fails: int = 0
    flushes: int = 0

    async def flush(self, _session: Session) -> bool:
        self.flushes += 1
        if self.gates:
            await self.gates.pop(0).wait()
        if self.fails:
            self.fails -= 1
            return False
        return True


@dataclass
class LoopWorld:
    """`failures` are the drives that were reported."""

    agents: World
    loops: LoopService
    disk: Disk
    failures: list[Exception] = field(default_factory=list)

    async def call(self, agent: Agent, name: str, **arguments: Any) -> ToolOutcome:
        """Run a tool of an agent as its dispatch would."""
        context = ToolContext(agent.id, CWD, AbortController().signal)
        return await self.agents.tools.execute(ToolCall("c", name, arguments, ""), context, agent=agent.id)

    async def create(self, agent: Agent, prompt: str = "look", seconds: float = 1) -> str:
        """Make a loop; its id."""
        outcome = await self.call(agent, "loop_create", prompt=prompt, time_in_seconds=seconds)
        assert outcome.meta is not None, outcome
        await settled()
        return outcome.meta["loops"][0]["id"]

    async def listed(self, agent: Agent) -> list[Any]:
        """The LoopViews."""
        outcome = await self.call(agent, "loop_list")
        assert outcome.meta is not None, outcome
        return outcome.meta["loops"]

    async def advance(self, ms: int) -> None:
        """Move the clock and let everything happen."""
        self.agents.runtime.advance(ms)
        await settled()

    async def due(self, ms: int = 1000) -> Gate:
        """Move the clock to where a loop is due: the gate that the flush before its heartbeat has come to."""
        gate = Gate()
        self.disk.gates.append(gate)
        self.agents.runtime.advance(ms)
        await gate.reached.wait()
        return gate

    def changes(self, agent: Agent) -> list[str]:
        """The operations of the `loop/change` events."""
        logged = self.agents.events.get(agent.id, [])
        return [event.data["operation"] for event in logged if event.type == "loop/change"]


@asynccontextmanager
async def loop_world(*answers: Any, queue_seconds: float = 20, **options: Any) -> AsyncIterator[LoopWorld]:
    """As `agent_world`."""
    async with agent_world(*answers, **options) as agents:
        disk = Disk()
        agents.hooks.on("session/flush", disk.flush)
        loops = LoopService(
            agents.registry,
            agents.tools,
            hooks=agents.hooks,
            runtime=agents.runtime,
            start=agents.tasks.start_soon,
            queue_seconds=queue_seconds,
        )
        world = LoopWorld(agents, loops, disk)
        agents.hooks.on("loop/error", lambda _agent, error: world.failures.append(error))
        yield world


@asynccontextmanager
async def looping_agent(**options: Any) -> AsyncIterator[tuple[LoopWorld, SpyAgent]]:
    """A `loop_world` with one agent, whose delivery edge the test plays."""
    async with loop_world(**options) as world:
        yield world, spied(world.agents.agent())
