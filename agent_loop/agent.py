"""The agent: an inbox, a session and the driver that turns one into the other (contract agent-loop.md §1, §2).

May not know: editors, protocols, concrete models and tools. Invariant: there is at most one driver, it runs exactly
while `status` is `running`, and no message is lost except by `cancel`, `withdraw` or `dispose`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import anyio

from agent_loop.abort import AbortController
from agent_loop.compaction import plan_room
from agent_loop.composer import Composer
from agent_loop.drivers import Driver
from agent_loop.errors import AgentDisposedError
from agent_loop.hooks import Hooks
from agent_loop.inbox import COMPACTION, Inbox, InboxMessage, Pending, Target
from agent_loop.llm.fingerprint import Scrub
from agent_loop.llm.history import ReasoningPolicy
from agent_loop.llm.service import LlmService
from agent_loop.prompt import roots_section
from agent_loop.runtime import Runtime
from agent_loop.session.log import Session
from agent_loop.step import AgentOptions, TurnContext
from agent_loop.tools.dispatch import ToolDispatch
from agent_loop.tools.files.disk import DiskFiles
from agent_loop.tools.files.seam import FileBackend
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import PermissionPolicy
from agent_loop.turn import Turn
from agent_loop.vocabulary import Trigger

__all__ = ["Agent", "AgentOptions", "AgentServices", "InboxMessage"]

Status = Literal["idle", "running"]


@dataclass(frozen=True, slots=True)
class AgentServices:
    """What all agents share. `start` runs a driver as a task that outlives the caller's.

    `flush_seconds` bounds the flush at the end of a turn; `dispose_seconds` bounds the wait for a turn that was told to
    end: above the tools' grace and that flush, so that only a body which shields itself from cancellation needs more.
    """

    llm: LlmService
    tools: ToolRegistry
    policy: PermissionPolicy
    hooks: Hooks
    runtime: Runtime
    start: Callable[[Driver], None]
    flush_seconds: float
    dispose_seconds: float


def _always() -> bool:
    return True


class Agent:
    """One conversation with a model. Made by `AgentRegistry`; two agents are the same only when they are one object.

    `cwd` is where its tools run, `roots` are the directories of its workspace, `cwd` first; `files` is where its tools
    read and write texts: the disk, unless somebody puts another backend there before the first turn. `owner` is the id
    of the agent that started it, None for a root. `congested` is asked before each chunk of an answer; only then do
    those who listen to `agent/flow` hold it.
    """

    def __init__(
        self,
        session: Session,
        options: AgentOptions,
        *,
        cwd: str,
        roots: Iterable[str],
        owner: str | None,
        services: AgentServices,
        release: Callable[["Agent"], Awaitable[None]],
    ) -> None:
        self.id = session.id
        self.session = session
        self.options = options
        self.cwd = cwd
        self.roots: tuple[str, ...] = ()
        self.use_roots(roots)
        self.files: FileBackend = DiskFiles()
        self.owner = owner
        self.congested: Callable[[], bool] = _always
        self._services = services
        self._release = release
        self._inbox = Inbox()
        scrub = Scrub(cwd=cwd, session_id=session.id, spill_root=options.spill_root)
        self._composer = Composer(scrub=scrub, secrets=session.secrets)
        self._status: Status = "idle"
        self._settled = asyncio.Event()
        self._abort: AbortController | None = None  # of the running turn
        self._turn: Turn | None = None
        self._dispatch: ToolDispatch | None = None
        self._disposal: anyio.Event | None = None

    @property
    def status(self) -> Status:
        """`running` from the wake on until nothing that wakes is queued."""
        return self._status

    @property
    def disposed(self) -> bool:
        """True from the first `dispose` on."""
        return self._disposal is not None

    @property
    def active_turn(self) -> int | None:
        """The number of the turn that is open in the log."""
        return self.session.open_turn

    @property
    def pending(self) -> tuple[InboxMessage, ...]:
        """What waits, in the order in which turns would claim it."""
        return self._inbox.pending

    def use_model(
        self,
        *,
        provider: str,
        model: str,
        reasoning: ReasoningPolicy = "echo",
        merge_users: bool = False,
        effort: str | None = None,
        window: int | None = None,
        images: bool = False,
    ) -> None:
        """Talk to another model, or to the same one with another thinking level, from the next turn on."""
        self.options = replace(
            self.options,
            provider=provider,
            model=model,
            reasoning=reasoning,
            merge_users=merge_users,
            effort=effort,
            window=window,
            images=images,
        )

    def use_roots(self, roots: Iterable[str]) -> None:
        """These directories belong to the workspace beside `cwd`, from the next turn on."""
        self.roots = tuple(dict.fromkeys((self.cwd, *roots)))

    def send(self, message: InboxMessage, target: Target, *, wakeup: bool) -> None:
        """The one way in. Synchronous: on return the message is pending, and the agent runs if it was woken.

        Raises `AgentDisposedError`, and `DuplicateError` for an id that is pending already.
        """
        if self.disposed:
            raise AgentDisposedError(self.id)
        # a wake after the abort belongs to what comes after the aborted turn
        late = wakeup and self._abort is not None and self._abort.aborted
        self._inbox.insert(message, target, wakeup=wakeup, next_turn_only=late)
        self._notify("agent/inbox/inserted", message)
        if self._turn and self._dispatch and not self._turn.owned and message.source.get("kind") == "user":
            # nobody waits for the answer to a question that a heartbeat's turn asked; the person waits for the turn
            self._dispatch.withdraw_ask("prompt")
        self._wake()

    def followup(self, message: InboxMessage) -> None:
        """A turn of its own, behind what is queued."""
        self.send(message, "next-turn", wakeup=True)

    def steer(self, message: InboxMessage) -> None:
        """Into the running turn, at its next step; or a turn of its own."""
        self.send(message, "next-step", wakeup=True)

    def inject(self, message: InboxMessage) -> None:
        """Context for the next step that runs anyway."""
        self.send(message, "next-step", wakeup=False)

    def withdraw(self, message_id: str, reason: str) -> bool:
        """Take back one pending message; False when it is not pending (any more)."""
        message = self._inbox.withdraw(message_id)
        if message is None:
            return False
        self._notify("agent/inbox/discarded", message, reason)
        return True

    def cancel(self, reason: str) -> None:
        """Abort the running turn and drop what people have queued. Idempotent; what is sent later is not touched."""
        dropped = self._inbox.cancel()
        if self._abort:
            self._abort.abort(reason)
        for message in dropped:
            self._notify("agent/inbox/discarded", message, reason)

    async def when_idle(self) -> None:
        """Return once nothing runs, also nothing that was sent while waiting."""
        while self._status == "running":
            await self._settled.wait()

    async def dispose(self) -> None:
        """End the agent: abort, wait for the turn's end and its flush, unregister, close the session. Memoized.

        Every caller awaits the same end; a cancelled one leaves the work to nobody, so the first is shielded and
        bounded. Not to be called from inside the agent's own turn: it would wait for itself.
        """
        if self._disposal is not None:
            await self._disposal.wait()
            return
        self._disposal = anyio.Event()
        try:
            with anyio.move_on_after(self._services.dispose_seconds, shield=True):
                if self._abort:
                    self._abort.abort("disposed")
                for message in self._inbox.clear():
                    self._notify("agent/inbox/discarded", message, "disposed")
                await self.when_idle()
            # bounded by the live sessions themselves
            with anyio.CancelScope(shield=True):
                await self._release(self)
        finally:
            self._disposal.set()

    def _turn_options(self) -> AgentOptions:
        options, further = self.options, self.roots[1:]
        if not further:
            return options
        return replace(options, system_prompt=(*options.system_prompt, roots_section(further)))

    def _notify(self, name: str, *args: Any) -> None:
        self._services.hooks.emit(name, self, *args, agent=self.id)

    def _wake(self) -> None:
        if self._status == "running" or not self._inbox.owes_a_turn:
            return
        self._services.start(self._drive)
        self._status = "running"
        self._settled = asyncio.Event()
        self._notify("agent/status", "running")

    async def _drive(self) -> None:
        try:
            while self._inbox.owes_a_turn:
                # tried once before each turn: what does not help now is no reason not to answer
                if await plan_room(self.session, self.options):
                    await self._run_turn([], COMPACTION)
                if self._inbox.owes_a_turn:
                    await self._run_turn(*self._inbox.claim_turn())
        finally:
            self._status = "idle"
            self._settled.set()
            self._notify("agent/status", "idle")

    async def _run_turn(self, claimed: list[Pending], trigger: Trigger) -> None:
        services, abort = self._services, AbortController()
        self._abort = abort
        self._dispatch = ToolDispatch(
            session=self.session,
            cwd=self.cwd,
            tools=services.tools,
            policy=services.policy,
            runtime=services.runtime,
            signal=abort.signal,
            on_output=lambda call_id, data: self._notify("tools/output", call_id, data),
            roots=self.roots,
            files=self.files,
        )
        context = TurnContext(
            agent=self,
            session=self.session,
            options=self._turn_options(),
            llm=services.llm,
            tools=services.tools,
            dispatch=self._dispatch,
            hooks=services.hooks,
            composer=self._composer,
            signal=abort.signal,
        )
        self._turn = Turn(context, self._inbox, disposed=lambda: self.disposed, flush_seconds=services.flush_seconds)
        try:
            await self._turn.run(claimed, trigger)
        finally:
            self._abort = self._turn = self._dispatch = None
