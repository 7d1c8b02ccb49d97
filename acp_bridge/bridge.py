"""The live ACP sessions of one connection (acp.md §2).

May not know: method names' parameters, JSON-RPC ids. Invariant: what is live here has an agent and a subscription; a
session that is being opened or ended is so once, and whoever names it meanwhile waits for it.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from acp_bridge.catalogue import Offer
from acp_bridge.client_files import ClientFiles
from acp_bridge.live_session import LiveSession
from acp_bridge.permission.modes import MODE_IDS
from acp_bridge.permission.policy import EditorPolicy
from acp_bridge.schema import ClientCapabilities
from acp_bridge.terminal_output import CallLater
from acp_bridge.wire import Wire
from agent_loop.abort import AbortSignal
from agent_loop.agent import Agent, AgentOptions
from agent_loop.commands.choose import Choosable
from agent_loop.commands.registry import CommandRegistry
from agent_loop.hooks import Hooks
from agent_loop.loops.service import LoopService
from agent_loop.mcp.host import McpHost
from agent_loop.registry import AgentRegistry
from agent_loop.runtime import Runtime
from agent_loop.session.log import Session
from agent_loop.session.projection import ProjectionRegistry
from agent_loop.session.store import PersistenceError
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import ToolCall, ToolContext
from agent_loop.vocabulary import JsonObject
from bash_exec.seam import BashExecutor, CommandRunner
from bash_exec.secrets import SecretRegistry

MakeOptions = Callable[[str], AgentOptions]
"""Agent options for a working directory."""
MakeOffer = Callable[[str], tuple[Offer, list[JsonObject]]]
"""What a session in a working directory can choose, and what its user must be told of it (`session/notice` data)."""


class NotOfferedError(Exception):
    """An option, or a value of one, that the session does not offer. The message names what it does."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The concrete parts that `composition` made, behind their seams.

    `terminal_environment`: foreground commands run in terminals of the client's own, if it has any, with this beside
    what those have anyway; None = they run here.
    """

    registry: AgentRegistry
    tools: ToolRegistry
    commands: CommandRegistry
    executor: BashExecutor
    mcp: McpHost
    loops: LoopService
    projections: ProjectionRegistry
    policy: EditorPolicy
    hooks: Hooks
    runtime: Runtime
    options: MakeOptions
    offer: MakeOffer
    secrets: SecretRegistry
    terminal_environment: Mapping[str, str] | None = None


class Bridge:
    """Opens, finds and ends live sessions. A session that is to end has `quiet_seconds` for its turn to do so."""

    def __init__(self, parts: Parts, wire: Wire, call_later: CallLater, *, quiet_seconds: float = 10.0) -> None:
        self.parts = parts
        self.capabilities = ClientCapabilities()
        self._wire = wire
        self._call_later = call_later
        self._quiet_seconds = quiet_seconds
        self._live: dict[str, LiveSession] = {}
        self._changing: dict[str, anyio.Event] = {}
        parts.hooks.on("session/write-failed", self._on_write_failed)

    def new(self, cwd: str, *, roots: Iterable[str] = (), session_id: str | None = None) -> LiveSession:
        """A fresh session; nothing is on disk until its first turn. `session_id`: what the client calls it already.

        `roots`: directories that belong to the workspace beside `cwd`; they are never stored.
        """
        options = self.parts.options(cwd)
        return self._enter(self.parts.registry.create(options, cwd=cwd, roots=roots, session_id=session_id))

    async def open(self, session_id: str, cwd: str, *, roots: Iterable[str] = ()) -> LiveSession:
        """The stored or live session; of a live one the roots are these from now on.

        Raises the `SessionStoreError` family.
        """
        live = await self.find(session_id)
        if live is None:
            with self._change(session_id):
                options = self.parts.options(cwd)
                agent = await self.parts.registry.resume(options, session_id=session_id, cwd=cwd, roots=roots)
                live = self._enter(agent)
        else:
            live.agent.use_roots(roots)
        return live

    async def fork(self, parent_id: str, cwd: str, *, roots: Iterable[str] = ()) -> LiveSession:
        """A new session that begins with the ended turns of another. Raises the `SessionStoreError` family."""
        # a parent that is being closed or deleted settles first
        await self.find(parent_id)
        options = self.parts.options(cwd)
        return self._enter(await self.parts.registry.fork(options, parent_id=parent_id, cwd=cwd, roots=roots))

    async def close(self, session_id: str) -> bool:
        """End a live session; it stays stored. False when it is not live."""
        live = await self.find(session_id)
        if live is None:
            return False
        with self._change(session_id):
            await self._end(live, "session/close")
        return True

    async def delete(self, session_id: str) -> None:
        """Remove a session for good, live or stored, if there is one. Raises the `SessionStoreError` family."""
        live = await self.find(session_id)
        with self._change(session_id):
            if live is not None:
                await self._end(live, "session/delete")
            await self.parts.registry.delete(session_id)

    async def find(self, session_id: str) -> LiveSession | None:
        """The live session of that id, waiting for one that is being opened or ended; None when there is none."""
        while changing := self._changing.get(session_id):
            await changing.wait()
        return self._live.get(session_id)

    def present(self, session_id: str) -> LiveSession | None:
        """The live session of that id, now; None while it is being ended."""
        return None if session_id in self._changing else self._live.get(session_id)

    async def ask(
        self, session_id: str, call: ToolCall, options: Iterable[dict[str, str]], withdraw: AbortSignal
    ) -> dict[str, Any] | None:
        """Ask the session's user; None when there is no answer."""
        live = self._live.get(session_id)
        return await live.ask_permission(call, options, withdraw) if live else None

    def prompt_owns_turn(self, session_id: str) -> bool:
        """A prompt of the client waits for the turn that this session runs."""
        live = self._live.get(session_id)
        return live is not None and live.prompt_owns_turn

    def session(self, session_id: str) -> LiveSession:
        """The live session whose turn runs a tool: it is here until its agent has ended."""
        return self._live[session_id]

    def command_runner(self, context: ToolContext) -> CommandRunner:
        """Who runs the foreground command of a call."""
        return self.session(context.session_id).client_terminal(context.call_id) or self.parts.executor

    def choosable(self, session_id: str, config_id: str) -> Choosable | None:
        """An option of a live session; None when it has no such option."""
        live = self.session(session_id)
        offer, choice = live.offer, live.choice
        values = offer.values(config_id, choice)
        if not values:
            return None
        current = {"mode": choice.mode, "model": choice.model}.get(config_id) or str(offer.level(choice))
        described = {mode["id"]: (mode["name"], mode["description"]) for mode in offer.modes}
        described |= {row.value: (row.name, "") for row in offer.catalogue.rows}
        return Choosable(current, tuple((value, *described.get(value, (value, ""))) for value in values))

    def choose_for(self, session_id: str, config_id: str, value: str) -> None:
        """As `choose`, for the live session of that id."""
        self.choose(self.session(session_id), config_id, value)

    def choose(self, live: LiveSession, config_id: str, value: object) -> None:
        """Change an option, also in the middle of a turn; the updates are queued on return.

        A model and a thinking level are taken up by the next turn. Raises `NotOfferedError`; nothing has changed then.
        """
        offered = live.offer.values(config_id, live.choice)
        if not isinstance(value, str) or value not in offered:
            raise NotOfferedError(f"{value!r:.60} is not offered; use one of {', '.join(offered)}")
        if config_id == "mode":
            live.agent.session.append("mode/change", {"modeId": value})
            self.parts.policy.set_mode(live.id, value)
        elif live.agent.session.config.get(config_id) != value:
            live.agent.session.append("config/change", {"configId": config_id, "value": value})
            _use(live)

    async def shutdown(self) -> None:
        """Settle every prompt as cancelled after its turn has quiesced; end every agent."""
        for live in self._live.values():
            live.agent.cancel("shutdown")
        await self.parts.registry.dispose_all()
        for live in self._live.values():
            live.close()
        self._live.clear()

    async def _end(self, live: LiveSession, reason: str) -> None:
        """Its prompts are answered, its processes gone and its log let go when this returns."""
        await self.parts.loops.stop(live.id)
        live.agent.cancel(reason)
        # the turn ends for this reason, not for the disposal that follows
        with anyio.move_on_after(self._quiet_seconds):
            await live.agent.when_idle()
            await live.answered()
        await live.agent.dispose()
        async with anyio.create_task_group() as ending:
            ending.start_soon(self.parts.executor.release, live.id)
            ending.start_soon(self.parts.mcp.release, live.id)
        live.close()
        await live.answered()
        self.parts.policy.forget(live.id)
        # a shutdown may have been faster
        self._live.pop(live.id, None)

    @contextmanager
    def _change(self, session_id: str) -> Generator[None]:
        changed = self._changing[session_id] = anyio.Event()
        try:
            yield
        finally:
            del self._changing[session_id]
            changed.set()

    def _enter(self, agent: Agent) -> LiveSession:
        reads, writes = self.capabilities.read_files, self.capabilities.write_files
        if reads or writes:
            agent.files = ClientFiles(self._wire, agent.id, reads=reads, writes=writes)
        offer, notices = self.parts.offer(agent.cwd)
        live = LiveSession(
            agent,
            wire=self._wire,
            hooks=self.parts.hooks,
            capabilities=self.capabilities,
            find_tool=lambda name: self.parts.tools.get(name, agent.id),
            offer=offer,
            call_later=self._call_later,
            terminal_environment=self.parts.terminal_environment if self.capabilities.terminals else None,
        )
        self._live[agent.id] = live
        live.notices += [*notices, *_lost_model(live)]
        _use(live)
        # a log may name a mode of another version; such a session starts in the default one
        if agent.session.mode in MODE_IDS:
            self.parts.policy.set_mode(agent.id, agent.session.mode)
        return live

    def _on_write_failed(self, session: Session, error: PersistenceError) -> None:
        if live := self._live.get(session.id):
            live.tell_failure(error)


def _use(live: LiveSession) -> None:
    row = live.offer.row(live.choice)
    live.agent.use_model(
        provider=row.provider,
        model=row.id,
        reasoning=row.reasoning,
        merge_users=row.merge_users,
        effort=live.offer.effort(live.choice),
        window=row.window,
        images=row.images,
    )


def _lost_model(live: LiveSession) -> list[JsonObject]:
    """A notice when the session's model is not configured any more."""
    stored = live.agent.session.config.get("model")
    if stored is None or live.offer.catalogue.find(stored):
        return []
    used = live.offer.row(live.choice).value
    return [
        {
            "severity": "warning",
            "title": f"The model {stored} of this session is not configured any more",
            "description": f"It goes on with {used}.",
        }
    ]
