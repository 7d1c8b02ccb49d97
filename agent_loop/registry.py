"""Which agents are alive (contract agent-loop.md §1).

May not know: editors, concrete stores. Invariant: an id names at most one live agent, and a handle is live only while
the registry returns that very object; an agent leaves after its last `turn/end` was flushed and before its session
is let go.
"""

from collections.abc import Iterable

import anyio
from anyio.abc import TaskGroup

from agent_loop.agent import Agent, AgentOptions, AgentServices
from agent_loop.drivers import Drivers
from agent_loop.errors import DuplicateError
from agent_loop.hooks import Hooks
from agent_loop.llm.service import LlmService
from agent_loop.runtime import Runtime
from agent_loop.session.live import LiveSessions
from agent_loop.session.log import Session
from agent_loop.session.store import SessionStoreError, SessionSummary
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import PermissionPolicy


class AgentRegistry:
    """Makes agents, and owns them until they are disposed. Their drivers run as tasks of `task_group`.

    Leave the task group after `dispose_all`. The two limits are those of `AgentServices`.
    """

    def __init__(
        self,
        *,
        task_group: TaskGroup,
        sessions: LiveSessions,
        llm: LlmService,
        tools: ToolRegistry,
        policy: PermissionPolicy,
        hooks: Hooks,
        runtime: Runtime,
        flush_seconds: float = 5.0,
        dispose_seconds: float = 15.0,
    ) -> None:
        self._drivers = Drivers(task_group)
        self._sessions = sessions
        self._hooks = hooks
        self._services = AgentServices(
            llm=llm,
            tools=tools,
            policy=policy,
            hooks=hooks,
            runtime=runtime,
            start=self._drivers.start,
            flush_seconds=flush_seconds,
            dispose_seconds=dispose_seconds,
        )
        self._agents: dict[str, Agent] = {}

    def create(
        self,
        options: AgentOptions,
        *,
        cwd: str,
        roots: Iterable[str] = (),
        session_id: str | None = None,
        owner: str | None = None,
    ) -> Agent:
        """A new agent with a new session; `roots` are directories that belong to its workspace beside `cwd`.

        Raises `DuplicateError` before the session store is touched.
        """
        if session_id is not None:
            self._refuse_duplicate(session_id)
        session = self._sessions.create(session_id=session_id, cwd=cwd)
        return self._enter(session, options, cwd=cwd, roots=roots, owner=owner)

    async def resume(self, options: AgentOptions, *, session_id: str, cwd: str, roots: Iterable[str] = ()) -> Agent:
        """An agent for a stored session, repaired if it was cut. Raises `DuplicateError` and the `SessionStoreError`s.

        The live sessions hold the id from this call on, so nobody else can get it while the log is read.
        """
        self._refuse_duplicate(session_id)
        return self._enter(await self._sessions.load(session_id, cwd), options, cwd=cwd, roots=roots, owner=None)

    async def fork(self, options: AgentOptions, *, parent_id: str, cwd: str, roots: Iterable[str] = ()) -> Agent:
        """An agent for a new session that begins with the ended turns of another, live or stored.

        Raises the `SessionStoreError`s.
        """
        return self._enter(await self._sessions.fork(parent_id, cwd=cwd), options, cwd=cwd, roots=roots, owner=None)

    async def stored(self, cwd: str | None) -> tuple[SessionSummary, ...]:
        """The sessions that could be resumed, last updated first; `cwd` restricts them to one directory.

        Raises `SessionStoreError`.
        """
        return tuple(await self._sessions.store.list(cwd))

    async def delete(self, session_id: str) -> bool:
        """Remove a stored session for good; False when there is none.

        Raises `DuplicateError` while it is live, and the `SessionStoreError`s.
        """
        return await self._sessions.delete(session_id)

    def get(self, agent_id: str) -> Agent | None:
        """The live agent of that id."""
        return self._agents.get(agent_id)

    def list(self) -> tuple[Agent, ...]:
        """All live agents, oldest first."""
        return tuple(self._agents.values())

    def roots(self) -> tuple[Agent, ...]:
        """The live agents without an owner."""
        return tuple(agent for agent in self._agents.values() if agent.owner is None)

    async def dispose_all(self) -> None:
        """Dispose every live agent, side by side; no task of theirs waits for another agent any more."""
        self._drivers.close()
        async with anyio.create_task_group() as tasks:
            for agent in self.list():
                tasks.start_soon(agent.dispose)

    def _refuse_duplicate(self, agent_id: str) -> None:
        if agent_id in self._agents:
            raise DuplicateError("agent", agent_id)

    def _enter(
        self, session: Session, options: AgentOptions, *, cwd: str, roots: Iterable[str], owner: str | None
    ) -> Agent:
        agent = Agent(
            session, options, cwd=cwd, roots=roots, owner=owner, services=self._services, release=self._release
        )
        self._agents[agent.id] = agent
        self._hooks.emit("agent/created", agent, agent=agent.id)
        return agent

    async def _release(self, agent: Agent) -> None:
        del self._agents[agent.id]
        self._hooks.emit("agent/disposed", agent, agent=agent.id)
        try:
            await self._sessions.detach(agent.session)
        except SessionStoreError as error:
            # the agent is gone all the same; what could not be written was said when it happened
            self._hooks.emit("agent/error", agent, error, agent=agent.id)
