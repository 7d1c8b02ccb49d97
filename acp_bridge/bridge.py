"""The live ACP sessions of one connection (acp.md §2).

May not know: method names' parameters, JSON-RPC ids. Invariant: what is live here has an agent and a subscription;
a session that is being opened is opened once, and whoever names it meanwhile waits for it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anyio

from acp_bridge.live_session import LiveSession, Wire
from acp_bridge.permission.policy import EditorPolicy
from acp_bridge.schema import ClientCapabilities
from acp_bridge.terminal_output import CallLater
from agent_loop.abort import AbortSignal
from agent_loop.agent import Agent, AgentOptions
from agent_loop.commands.registry import CommandRegistry
from agent_loop.hooks import Hooks
from agent_loop.registry import AgentRegistry
from agent_loop.runtime import Runtime
from agent_loop.session.log import Session
from agent_loop.session.store import PersistenceError
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import ToolCall
from bash_exec.seam import BashExecutor
from bash_exec.secrets import SecretRegistry

MakeOptions = Callable[[str], AgentOptions]
"""Agent options for a working directory."""
Window = Callable[[str], int | None]
"""The context window of a model in tokens, None when unknown."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The concrete parts that `main` made, behind their seams."""

    registry: AgentRegistry
    tools: ToolRegistry
    commands: CommandRegistry
    executor: BashExecutor
    policy: EditorPolicy
    hooks: Hooks
    runtime: Runtime
    options: MakeOptions
    window: Window
    secrets: SecretRegistry


class Bridge:
    """Opens, finds and ends live sessions."""

    def __init__(self, parts: Parts, wire: Wire, call_later: CallLater) -> None:
        self.parts = parts
        self.capabilities = ClientCapabilities()
        self._wire = wire
        self._call_later = call_later
        self._live: dict[str, LiveSession] = {}
        self._opening: dict[str, anyio.Event] = {}
        parts.hooks.on("session/write-failed", self._on_write_failed)

    def new(self, cwd: str) -> LiveSession:
        """A fresh session; nothing is on disk until its first turn."""
        return self._enter(self.parts.registry.create(self.parts.options(cwd), cwd=cwd))

    async def load(self, session_id: str, cwd: str) -> LiveSession:
        """The stored or live session with its transcript shown. Raises the `SessionStoreError` family."""
        while opening := self._opening.get(session_id):
            await opening.wait()
        live = self._live.get(session_id)
        if live is None:
            opened = self._opening[session_id] = anyio.Event()
            try:
                agent = await self.parts.registry.resume(self.parts.options(cwd), session_id=session_id, cwd=cwd)
                live = self._enter(agent)
                if agent.session.mode is not None:
                    self.parts.policy.set_mode(session_id, agent.session.mode)
            finally:
                del self._opening[session_id]
                opened.set()
        await live.replay()
        return live

    async def find(self, session_id: str) -> LiveSession | None:
        """The live session of that id, waiting for one that is being opened; None when there is none."""
        while opening := self._opening.get(session_id):
            await opening.wait()
        return self._live.get(session_id)

    def present(self, session_id: str) -> LiveSession | None:
        """The live session of that id, now."""
        return self._live.get(session_id)

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

    async def shutdown(self) -> None:
        """Settle every prompt as cancelled after its turn has quiesced; end every agent."""
        for live in self._live.values():
            live.agent.cancel("shutdown")
        await self.parts.registry.dispose_all()
        for live in self._live.values():
            live.close()
        self._live.clear()

    def _enter(self, agent: Agent) -> LiveSession:
        live = LiveSession(
            agent,
            wire=self._wire,
            hooks=self.parts.hooks,
            capabilities=self.capabilities,
            find_tool=lambda name: self.parts.tools.get(name, agent.id),
            window=lambda: self.parts.window(agent.options.model),
            call_later=self._call_later,
        )
        self._live[agent.id] = live
        return live

    def _on_write_failed(self, session: Session, error: PersistenceError) -> None:
        if live := self._live.get(session.id):
            live.tell_failure(error)
