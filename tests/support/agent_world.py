"""An agent with everything real about it, except the model: registry, sessions in memory, bus, virtual clock."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_loop.agent import Agent, AgentOptions, InboxMessage
from agent_loop.hooks import Hooks
from agent_loop.llm.service import LlmService
from agent_loop.prompt import PromptSection
from agent_loop.registry import AgentRegistry
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.events import SessionEvent
from agent_loop.session.live import LiveSessions
from agent_loop.session.memory import MemorySessionStore
from agent_loop.session.store import SessionStore
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import AllowAll, PermissionPolicy
from agent_loop.vocabulary import Source, text_block
from bash_exec.secrets import SecretRegistry
from tests.support.scripted_adapter import ScriptedAdapter

MODEL = "scripted-1"
CWD = "/project"
OPTIONS = AgentOptions(provider="test", model=MODEL, system_prompt=(PromptSection("role", 0, "You are a test."),))
PLUGIN: Source = {"kind": "plugin", "plugin": "loop"}
USER: Source = {"kind": "user"}
# far above anything that these tests wait for; a hang fails instead of blocking the run
LIMIT_SECONDS = 20


@dataclass
class World:
    """What a test may touch. `heard` are the bus's agent notifications as (name, argument…), `events` the logs."""

    tasks: TaskGroup
    hooks: Hooks
    runtime: VirtualRuntime
    store: SessionStore
    sessions: LiveSessions
    adapter: ScriptedAdapter
    llm: LlmService
    tools: ToolRegistry
    registry: AgentRegistry
    secrets: SecretRegistry
    events: dict[str, list[SessionEvent]] = field(default_factory=dict)
    heard: list[tuple[Any, ...]] = field(default_factory=list)
    errors: list[tuple[str, Exception]] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    def agent(self, *, cwd: str = CWD, **changes: Any) -> Agent:
        """A new agent."""
        return self.registry.create(replace(OPTIONS, **changes), cwd=cwd)

    def message(self, text: str, source: Source = USER) -> InboxMessage:
        """A message with a fresh id."""
        return InboxMessage(f"msg-{next(self.numbers)}", [text_block(text)], source)

    async def prompt(self, agent: Agent, text: str = "hello") -> None:
        """Send a prompt and wait until the agent is idle."""
        agent.followup(self.message(text))
        await agent.when_idle()

    def log(self, agent: Agent, *, chunks: bool = False) -> list[SessionEvent]:
        """The log without headers, and without chunks unless wanted."""
        hidden = {"request/header"} if chunks else {"request/header", "assistant/chunk"}
        return [event for event in self.events[agent.id] if event.type not in hidden]

    def types(self, agent: Agent, *, chunks: bool = False) -> list[str]:
        """The types of `log`."""
        return [event.type for event in self.log(agent, chunks=chunks)]

    def of(self, agent: Agent, event_type: str) -> list[Any]:
        """The data of every event of a type."""
        return [event.data for event in self.events[agent.id] if event.type == event_type]

    def reasons(self, agent: Agent) -> list[Any]:
        """How the turns ended."""
        return [data["reason"] for data in self.of(agent, "turn/end")]

    def texts(self, agent: Agent) -> list[str]:
        """What was said to the model, in order."""
        said = ("user/message", "context/message")
        return [event.data["content"][0]["text"] for event in self.events[agent.id] if event.type in said]

    def names(self) -> list[str]:
        """The notifications heard, by name."""
        return [name for name, *_ in self.heard]


HEARD = (
    "agent/created",
    "agent/disposed",
    "agent/status",
    "agent/error",
    "agent/turn-start",
    "agent/turn-end",
    "agent/step-start",
    "agent/step-end",
    "agent/inbox/inserted",
    "agent/inbox/claimed",
    "agent/inbox/discarded",
    "tools/output",
)


@asynccontextmanager
async def agent_world(
    *answers: Any,
    fallback: Any = None,
    policy: PermissionPolicy | None = None,
    runtime: VirtualRuntime | None = None,
    store: Callable[[VirtualRuntime], SessionStore] | None = None,
    **limits: float,
) -> AsyncIterator[World]:
    """Everything is disposed at the end, within a limit."""
    runtime = runtime or VirtualRuntime()
    errors: list[tuple[str, Exception]] = []
    hooks = Hooks(lambda name, error: errors.append((name, error)))
    kept = store(runtime) if store else MemorySessionStore()
    secrets = SecretRegistry()
    sessions = LiveSessions(kept, hooks, runtime, secrets=secrets)
    llm = LlmService(hooks, runtime)
    adapter = ScriptedAdapter(*answers, fallback=fallback)
    llm.register_adapter([MODEL], adapter)
    tools = ToolRegistry(hooks)
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as tasks:
            registry = AgentRegistry(
                task_group=tasks,
                sessions=sessions,
                llm=llm,
                tools=tools,
                policy=policy or AllowAll(),
                hooks=hooks,
                runtime=runtime,
                **limits,
            )
            world = World(tasks, hooks, runtime, kept, sessions, adapter, llm, tools, registry, secrets, errors=errors)
            hooks.on("session/event", lambda session, event: world.events.setdefault(session.id, []).append(event))
            for name in HEARD:
                hooks.on(name, lambda _agent, *args, name=name: world.heard.append((name, *args)))
            try:
                yield world
            finally:
                # a test may have cancelled the group: its failed assertion must not drown in that cancellation
                with anyio.move_on_after(LIMIT_SECONDS, shield=True):
                    await registry.dispose_all()
            assert adapter.open_streams == 0, "a stream was left open"
        await sessions.aclose()
