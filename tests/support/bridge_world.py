"""A client on real pipes in front of the whole bridge; only the model is a double."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from acp_bridge.bridge import Bridge, Parts
from acp_bridge.catalogue import Catalogue, Choice, ModelRow, Offer
from acp_bridge.composition.exports import write_markdown
from acp_bridge.credential_file import CredentialFile
from acp_bridge.credential_store import CredentialStore
from acp_bridge.credentials import Credentials
from acp_bridge.methods.v1.connection import Connection
from acp_bridge.methods.v1.initialize import SignIn
from acp_bridge.methods.v1.table import V1Dispatcher
from acp_bridge.permission.ledger import Ledger
from acp_bridge.permission.modes import MODES
from acp_bridge.permission.policy import EditorPolicy
from acp_bridge.permission.rule_book import RuleBook, configured_rules
from acp_bridge.testing.editor import Entry
from agent_loop.commands.choose import choice_commands
from agent_loop.commands.compact import CompactCommand
from agent_loop.commands.export import ExportCommand
from agent_loop.commands.help import HelpCommand
from agent_loop.commands.loop import LoopCommand
from agent_loop.commands.permissions import PermissionsCommand
from agent_loop.commands.registry import CommandRegistry
from agent_loop.commands.status import StatusCommand
from agent_loop.commands.title import TitleCommand
from agent_loop.loops.service import LoopService
from agent_loop.mcp.host import McpHost
from agent_loop.mcp.seam import Limits
from agent_loop.mcp.session_servers import McpParts
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.projection import ProjectionRegistry
from agent_loop.session.store import SessionStore
from agent_loop.titles import install_titles
from bash_exec.fake import FakeBashExecutor, FakeCommand
from bash_exec.service import Services
from tests.support.agent_world import MODEL, OPTIONS, World, agent_world
from tests.support.official import referee, schema_referee
from tests.support.wire_client import WireClient, wire

WINDOW = 1000
MCP_LIMITS = Limits(connect=20, call=20, first_call_waits=20)


@dataclass
class BridgeWorld:
    """`client` writes and reads lines; `updates` keeps every `session/update` that was read, in order."""

    agents: World
    client: WireClient
    connection: Connection
    bridge: Bridge
    policy: EditorPolicy
    executor: FakeBashExecutor
    cwd: str
    updates: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    _next_id: int = 0

    async def send_frames(self, *frames: dict[str, Any]) -> None:
        """Send frames in one write."""
        whole = [{"jsonrpc": "2.0", **frame} for frame in frames]
        self.entries += [Entry("client", frame) for frame in whole]
        await self.client.send(*whole)

    async def send(self, method: str, **params: Any) -> int:
        """Send a request; returns its id."""
        self._next_id += 1
        await self.send_frames({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    async def notify(self, method: str, **params: Any) -> None:
        await self.send_frames({"method": method, "params": params})

    async def next(self) -> dict[str, Any]:
        """The next frame of the agent, kept in `entries` and, by kind, in `updates` or `requests`."""
        frame = await self.client.frame()
        self.entries.append(Entry("agent", {"jsonrpc": "2.0", **frame}))
        if frame.get("method") == "session/update":
            self.updates.append((frame["params"]["sessionId"], frame["params"]["update"]))
        elif "method" in frame:
            self.requests.append(frame)
        return frame

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read frames until one is `wanted`."""
        while not wanted(frame := await self.next()):
            pass
        return frame

    async def answer(self, request_id: int) -> dict[str, Any]:
        """Read frames until the response to `request_id`."""
        return await self.until(lambda frame: frame.get("id") == request_id and "method" not in frame)

    async def update(self, kind: str) -> dict[str, Any]:
        """Read frames until an update of that kind."""
        frame = await self.until(
            lambda frame: frame.get("method") == "session/update" and frame["params"]["update"]["sessionUpdate"] == kind
        )
        return frame["params"]["update"]

    async def request(self, method: str) -> dict[str, Any]:
        """Read frames until the agent asks for `method`."""
        return await self.until(lambda frame: frame.get("method") == method)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send, read until the response, return its result."""
        frame = await self.answer(await self.send(method, **params))
        assert "result" in frame, frame
        return frame["result"]

    async def error(self, method: str, **params: Any) -> dict[str, Any]:
        """Send, read until the response, return its error."""
        frame = await self.answer(await self.send(method, **params))
        assert "error" in frame, frame
        return frame["error"]

    async def new_session(self, **params: Any) -> str:
        result = await self.call("session/new", **{"cwd": self.cwd, "mcpServers": [], **params})
        await self.update("available_commands_update")
        return result["sessionId"]

    async def prompt(self, session_id: str, text: str = "hello") -> dict[str, Any]:
        return await self.call("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}])

    async def send_prompt(self, session_id: str, text: str = "hello") -> int:
        return await self.send("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}])

    def kinds(self) -> list[str]:
        """The kinds of the updates read so far."""
        return [update["sessionUpdate"] for _session, update in self.updates]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """The joined text of the updates of a kind."""
        return "".join(update["content"]["text"] for _id, update in self.updates if update["sessionUpdate"] == kind)


@asynccontextmanager
async def bridge_world(
    *answers: Sequence[Any],
    cwd: Path,
    fallback: Any = None,
    capabilities: dict[str, Any] | None = None,
    initialized: bool = True,
    mode: str = "ask",
    key: str | None = "k",
    problem: str | None = None,
    high_water: int = 1 << 20,
    shell: Mapping[str, FakeCommand] | None = None,
    terminal_environment: Mapping[str, str] | None = None,
    store: Callable[[VirtualRuntime], SessionStore] | None = None,
    quiet_seconds: float = 10.0,
    fork: bool = False,
    images: bool = False,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    offer: Offer | None = None,
    notices: Sequence[dict[str, Any]] = (),
    asks_unprompted: bool = False,
    **limits: float,
) -> AsyncIterator[BridgeWorld]:
    """A connection that has been initialised with `capabilities` (unless told not to)."""

    async def ask(*asked: Any) -> dict[str, Any] | None:
        return await world.bridge.ask(*asked)

    async def export(session_id: str, given: str) -> str:
        session = world.bridge.session(session_id).agent.session
        return await write_markdown(session, given, find_tool=lambda name: world.agents.tools.get(name, session_id))

    def prompt_owns(session_id: str) -> bool:
        return world.bridge.prompt_owns_turn(session_id)

    async def end() -> None:
        await world.bridge.shutdown()
        await world.bridge.parts.mcp.dispose()

    def tell(session_id: str, title: str, description: str) -> None:
        notice = {"severity": "warning", "title": title, "description": description}
        world.bridge.parts.registry.get(session_id).session.append("session/notice", notice)

    ledger = Ledger(cwd.parent / f"{cwd.name}-permissions")
    book = RuleBook(ledger, tell=tell, configured=configured_rules(allow=allow, deny=deny))
    clock = VirtualRuntime()
    policy = EditorPolicy(
        default_mode=mode,
        send=ask,
        prompt_owns=prompt_owns,
        book=book,
        unprompted=clock if asks_unprompted else None,
    )
    async with (
        agent_world(*answers, fallback=fallback, policy=policy, store=store, runtime=clock, **limits) as agents,
        wire(on_eof=end, high_water=high_water) as client,
    ):
        commands = CommandRegistry(agents.hooks)
        commands.register(HelpCommand(commands))
        commands.register(StatusCommand())
        commands.register(TitleCommand())
        commands.register(CompactCommand())
        commands.register(PermissionsCommand(book))
        commands.register(LoopCommand(agents.tools, agents.runtime))
        install_titles(agents.hooks)
        catalogue = Catalogue((ModelRow("test", MODEL, MODEL, window=WINDOW, reasoning="echo"),))
        executor = FakeBashExecutor(shell or {}, task_group=agents.tasks)
        services = Services(environment=dict(os.environ))
        mcp_parts = McpParts(agents.hooks, agents.tools, services, agents.secrets, f"{cwd}/mcp-logs", limits=MCP_LIMITS)
        mcp = McpHost(mcp_parts, agents.tasks)
        parts = Parts(
            registry=agents.registry,
            tools=agents.tools,
            commands=commands,
            executor=executor,
            mcp=mcp,
            loops=LoopService(
                agents.registry,
                agents.tools,
                hooks=agents.hooks,
                runtime=agents.runtime,
                start=agents.tasks.start_soon,
            ),
            projections=ProjectionRegistry(agents.hooks),
            policy=policy,
            hooks=agents.hooks,
            runtime=agents.runtime,
            options=lambda _cwd: replace(OPTIONS),
            offer=lambda _cwd: (offer or Offer(MODES, catalogue, Choice(mode, catalogue.rows[0].value)), list(notices)),
            secrets=agents.secrets,
            terminal_environment=terminal_environment,
        )
        bridge = Bridge(parts, client.peer, asyncio.get_running_loop().call_later, quiet_seconds=quiet_seconds)
        credentials = Credentials(
            variables={OPTIONS.provider: "TEST_KEY"},
            environment={"TEST_KEY": key} if key else {},
            configured={},
            store=CredentialStore(CredentialFile(str(cwd / ".keys" / "credentials.json"))),
            secrets=agents.secrets,
        )
        sign_in = SignIn(OPTIONS.provider, "TEST_KEY", ("/bin/dsh", "--model", "m"), {"DSH_MODEL": "n"})
        connection = Connection(bridge, credentials, sign_in, problem, fork=fork, images=images)
        for command in (*choice_commands(bridge), ExportCommand(export)):
            commands.register(command)
        client.dispatcher = V1Dispatcher(connection)  # type: ignore[assignment]
        client.before_write = agents.sessions.write_pending
        world = BridgeWorld(agents, client, connection, bridge, policy, executor, str(cwd))
        if initialized:
            await world.call("initialize", protocolVersion=1, clientCapabilities=capabilities or {})
        yield world
    official = schema_referee() if "session" in (capabilities or {}) else referee()
    assert official.violations(world.entries) == [], "every frame that was read is valid"
