"""One live ACP session: its agent, what the client is shown of it, and the prompts that wait for it.

May not know: which method asked. Invariant: a prompt settles exactly once, after every update of the turn that claimed
its message was queued; what is shown comes from events, except live terminal bytes and the notice that the log itself
cannot be written.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from acp_bridge.catalogue import Choice, Offer
from acp_bridge.client_terminal import ClientTerminal
from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from acp_bridge.schema import ClientCapabilities
from acp_bridge.terminal_output import CallLater, TerminalOutput
from acp_bridge.translate.v1.cards import FindTool, Update, opened
from acp_bridge.translate.v1.chunk_frames import ChunkFrames
from acp_bridge.translate.v1.replay import Replay
from acp_bridge.translate.v1.stops import Failed, Stopped, stop_of
from acp_bridge.translate.v1.updates import UpdateRenderer, text_update
from acp_bridge.wire import Wire
from agent_loop.abort import AbortSignal
from agent_loop.agent import Agent
from agent_loop.compaction import COMPACTION_FAILED
from agent_loop.errors import HarnessError
from agent_loop.hooks import Hooks, Scope
from agent_loop.inbox import InboxMessage
from agent_loop.session.attachments import refs_in
from agent_loop.session.events import SessionEvent
from agent_loop.tools.seam import ToolCall
from agent_loop.vocabulary import USER, Block, JsonObject, TurnEndReason

MAX_QUEUED = 32
_BLIND = {
    "severity": "warning",
    "title": "This model cannot see images",
    "description": "It is told that there was one. A model that takes images can be chosen and asked again.",
}
AT_ONCE = "cancel_request"


def _nothing(*_args: object) -> None:
    return


@dataclass(slots=True)
class PromptInFlight:
    """A prompt that waits. `turn` is the turn that claimed its message; `withdrawn`: it never will be.

    `on_claim` is called when a turn claims it, `on_end` when that turn has ended, before it is answered: what is logged
    there is shown before the answer. `answer` is called once, in the order of what is shown: behind every update of
    that turn, before every one of the next.
    """

    message_id: str
    turn: int | None = None
    withdrawn: bool = False
    persisted: bool = True
    on_claim: Callable[[], None] = _nothing
    on_end: Callable[[TurnEndReason], None] = _nothing
    answer: Callable[[Stopped | Failed], None] = _nothing


class LiveSession:
    """Made for a new or loaded agent; `close` ends what it registered.

    `terminal_environment`: foreground commands run in terminals of the client's own, with this beside what those have
    anyway; None = they run elsewhere.
    `notices`: the data of `session/notice` events that are logged when the next turn starts.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        wire: Wire,
        hooks: Hooks,
        capabilities: ClientCapabilities,
        find_tool: FindTool,
        offer: Offer,
        call_later: CallLater,
        terminal_environment: Mapping[str, str] | None = None,
    ) -> None:
        self.agent = agent
        self.capabilities = capabilities
        self._terminal_environment = terminal_environment
        self.offer = offer
        self.notices: list[JsonObject] = []
        self._wire = wire
        self._find_tool = find_tool
        self._renderer = self._make_renderer(live=True)
        self._renderer.go_on(self.choice, agent.session.spent)
        self._chunk_frames = ChunkFrames(agent.id)
        self._output = TerminalOutput(self._show_output, call_later, secrets=agent.session.secrets)
        self._prompts: dict[str, PromptInFlight] = {}
        self._previews: dict[str, JsonObject | None] = {}  # of the calls that are asked about
        self._call_later = call_later
        self._holds = 0
        self._held: list[Callable[[], None]] = []
        self._replayed = anyio.Event()
        self._replayed.set()
        self._in_flight = 0
        self._on_answered: list[Callable[[], None]] = []
        agent.congested = lambda: wire.congested
        self._scope = Scope()
        self._scope.own(agent.session.subscribe(self._on_event))
        listeners: dict[str, Callable[..., Any]] = {
            "agent/inbox/claimed": self._on_claimed,
            "agent/inbox/discarded": self._on_discarded,
            "agent/turn-start": self._on_turn_start,
            "agent/turn-end": self._on_turn_end,
            "agent/status": self._on_status,
            "agent/flow": self._on_flow,
            "tools/output": self._on_output,
        }
        for name, listener in listeners.items():
            hooks.on(name, listener, agent=agent.id, scope=self._scope)

    @property
    def id(self) -> str:
        """The session id."""
        return self.agent.id

    @property
    def prompt_owns_turn(self) -> bool:
        """A prompt of the client waits for the turn that runs."""
        turn = self.agent.active_turn
        return turn is not None and any(prompt.turn == turn for prompt in self._prompts.values())

    def client_terminal(self, call_id: str) -> ClientTerminal | None:
        """What runs the foreground command of a call, when that is a terminal of the client."""
        if self._terminal_environment is None:
            return None
        return ClientTerminal(
            self._wire,
            session_id=self.id,
            environment=self._terminal_environment,
            show=lambda terminal_id: self._show_terminal(call_id, terminal_id),
            call_later=self._call_later,
            secrets=self.agent.session.secrets,
        )

    @property
    def choice(self) -> Choice:
        """What the session has of what it can choose, by its log."""
        return self.offer.restored(self.agent.session.mode, self.agent.session.config)

    def window(self) -> int | None:
        """The context window of the model in tokens, None when unknown."""
        model = self.offer.catalogue.find(f"{self.agent.options.provider}/{self.agent.options.model}")
        return model and model.window

    def notify(self, update: Update) -> None:
        """Queue one `session/update`."""
        self._wire.notify("session/update", {"sessionId": self.id, "update": update})

    def enqueue(self, message_id: str, blocks: list[Block], *, compaction: str | None = None) -> PromptInFlight:
        """Send a prompt to the agent; `compaction`: the wish for one, with these instructions.

        What it calls is set before the next await. Raises `HarnessError` (`BUSY`) when too many wait already.
        """
        if sum(prompt.turn is None for prompt in self._prompts.values()) >= MAX_QUEUED:
            raise HarnessError(f"{MAX_QUEUED} prompts wait already; let one end or cancel", "BUSY")
        prompt = self._prompts[message_id] = PromptInFlight(message_id)
        self.agent.send(InboxMessage(message_id, blocks, USER, compaction), "next-turn", wakeup=True)
        self._in_flight += 1
        return prompt

    async def settled(self, prompt: PromptInFlight) -> Stopped | Failed:
        """Wait for how a prompt ends, whose `answer` this is.

        The next turn is not shown before the answer was queued, which the caller does without another await.
        """
        ended: list[Stopped | Failed] = []
        done = anyio.Event()

        def answer(end: Stopped | Failed) -> None:
            self._holds += 1
            ended.append(end)
            done.set()

        prompt.answer = answer
        await done.wait()
        self._call_later(0, self._release)
        return ended[0]

    @contextmanager
    def answering(self) -> Generator[None]:
        """Around the handling of a request about this session, up to its answer."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._answer_queued()

    async def answered(self) -> None:
        """Return when no request is being handled: every answer, and what was shown before it, was queued."""
        while self._in_flight:
            queued = anyio.Event()
            self._on_answered.append(queued.set)
            await queued.wait()

    def cancel_prompt(self, prompt: PromptInFlight) -> None:
        """`$/cancel_request` for one prompt: a queued one is withdrawn, the running one's turn is aborted."""
        if not self.agent.withdraw(prompt.message_id, AT_ONCE):
            self.agent.cancel(AT_ONCE)

    async def ask_permission(
        self, call: ToolCall, options: Iterable[dict[str, str]], withdraw: AbortSignal
    ) -> dict[str, Any] | None:
        """`session/request_permission` for a card that is on the screen; None when the client gave no answer."""
        _card, update = opened(
            self._find_tool,
            call.id,
            call.name,
            call.raw,
            cwd=self.agent.cwd,
            terminals=self.capabilities.terminal_output and self._terminal_environment is None,
            status="pending",
            preview=self._previews.get(call.id),
        )
        del update["sessionUpdate"]
        update["_meta"] = {"tool_name": call.name}
        params = {"sessionId": self.id, "toolCall": update, "options": list(options)}
        try:
            return await self._wire.request("session/request_permission", params, signal=withdraw)
        except (RpcError, ConnectionClosed):
            return None

    async def replay(self) -> None:
        """Show the whole transcript so far; what happens meanwhile is shown after it, in order."""
        await self._replayed.wait()
        self._replayed = anyio.Event()
        self._holds += 1
        end = self.agent.session.next_seq
        renderer = self._make_renderer(live=False)
        replay = Replay(renderer, self.agent.session.refused_turns)
        try:
            async with aclosing(self.agent.session.events()) as events:
                async for event in events:
                    # an event that is younger than this replay is held, and shown behind it
                    if event.seq < end:
                        renderer.attachments = await self._attachments(event)
                        await self._show_all(replay.feed(event))
            await self._show_all(replay.finish())
            self._renderer.take_over(renderer)
        finally:
            self._release()
            self._replayed.set()

    def tell_failure(self, error: Exception) -> None:
        """The log cannot be written: say it, on the screen only (agent-loop.md §4). Told once per turn."""
        text = f"This conversation may be lost: {error}\n"
        self.notify(text_update("agent_message_chunk", text, f"n{self.agent.session.next_seq}"))

    def close(self) -> None:
        """Show nothing more; a prompt whose turn would not end is answered now."""
        self._scope.dispose()
        self._output.stop()
        for prompt in tuple(self._prompts.values()):
            self._settle(prompt, Stopped("cancelled"))

    def _make_renderer(self, *, live: bool) -> UpdateRenderer:
        return UpdateRenderer(
            self._find_tool,
            self.capabilities,
            cwd=self.agent.cwd,
            window=self.window,
            live=live,
            client_terminals=self._terminal_environment is not None,
            offer=self.offer,
        )

    async def _attachments(self, event: SessionEvent) -> dict[str, bytes]:
        found = {ref: await self.agent.session.attachment(ref) for ref in refs_in(event)}
        return {ref: data for ref, data in found.items() if data is not None}

    async def _show_all(self, updates: list[Update]) -> None:
        for update in updates:
            self.notify(update)
        if self._wire.congested:
            await self._wire.drained()

    def _on_event(self, event: SessionEvent) -> None:
        if event.type == "permission/request":
            self._previews[event.data["callId"]] = event.data.get("preview")
        elif event.type == "permission/decision":
            self._previews.pop(event.data["callId"], None)
        if self._holds:
            self._held.append(partial(self._show, event))
        else:
            self._show(event)

    def _release(self) -> None:
        self._holds -= 1
        while self._held and not self._holds:
            self._held.pop(0)()

    def _show(self, event: SessionEvent) -> None:
        if event.type == "assistant/chunk" and not self._renderer.compactions.open:
            frame = self._chunk_frames.frame(event.data)
            if frame is not None:
                self._wire.notify_encoded(frame)
                return
        elif event.type == "tool/result":
            meta: dict[str, Any] = event.data.get("meta") or {}
            self._output.end(event.data["callId"], show_rest="outputDropped" in meta)
        for update in self._renderer.render(event):
            self.notify(update)

    def _on_output(self, _agent: Agent, call_id: str, data: bytes) -> None:
        if self.capabilities.terminal_output:
            self._output.feed(call_id, data)

    def _show_output(self, call_id: str, text: str) -> None:
        if not self._holds:
            for update in self._renderer.live_output(call_id, text):
                self.notify(update)

    def _show_terminal(self, call_id: str, terminal_id: str) -> None:
        # while a replay is shown its card is not this one's: the result will show the stored output
        if not self._holds:
            self.notify(self._renderer.client_terminal(call_id, terminal_id))

    async def _on_flow(self, _agent: Agent, signal: AbortSignal) -> None:
        async with anyio.create_task_group() as group:
            remove = signal.on_abort(group.cancel_scope.cancel)
            try:
                await self._wire.drained()
            finally:
                remove()

    def _on_turn_start(self, _agent: Agent, _turn: int) -> None:
        while self.notices:
            self.agent.session.append("session/notice", self.notices.pop(0))

    def _on_claimed(self, _agent: Agent, message: InboxMessage, turn: int) -> None:
        if prompt := self._prompts.get(message.id):
            prompt.turn = turn
            prompt.on_claim()
        if not self.agent.options.images and any(block["type"] == "image" for block in message.content):
            self.agent.session.append("session/notice", _BLIND)

    def _on_discarded(self, _agent: Agent, message: InboxMessage, reason: str) -> None:
        prompt = self._prompts.get(message.id)
        if prompt is None:
            return
        prompt.withdrawn = True
        if reason == AT_ONCE or self.agent.active_turn is None:
            self._settle(prompt, Stopped("cancelled"))

    def _on_turn_end(self, _agent: Agent, turn: int, reason: TurnEndReason, persisted: bool) -> None:  # noqa: FBT001 - the bus is positional
        if reason["kind"] == "error" and not self._told(turn, reason):
            failed = {"severity": "error", "title": "A turn without a prompt failed", "description": reason["message"]}
            self.agent.session.append("session/notice", failed)
        for prompt in tuple(self._prompts.values()):
            if prompt.turn == turn:
                prompt.persisted = persisted
                prompt.on_end(reason)
                self._settle(prompt, stop_of(reason))
            elif prompt.withdrawn:
                self._settle(prompt, Stopped("cancelled"))

    def _told(self, turn: int, reason: TurnEndReason) -> bool:
        """The answer to a prompt, or a notice, tells of the failure."""
        return reason.get("code") == COMPACTION_FAILED or any(prompt.turn == turn for prompt in self._prompts.values())

    def _on_status(self, _agent: Agent, status: str) -> None:
        if status != "idle":
            return
        for prompt in tuple(self._prompts.values()):
            # watchdog: a pending message would keep the agent running, so nobody will ever answer this one
            details = "the agent went idle without taking the prompt"
            self._settle(
                prompt, Failed(f"Internal error: turn failed: {details}", {"reason": "lost", "details": details})
            )

    def _settle(self, prompt: PromptInFlight, answer: Stopped | Failed) -> None:
        """Answer once, in the order of what is shown: behind everything held, before everything later."""
        del self._prompts[prompt.message_id]
        if self._holds:
            self._held.append(partial(self._give, prompt, answer))
        else:
            self._give(prompt, answer)

    def _give(self, prompt: PromptInFlight, answer: Stopped | Failed) -> None:
        prompt.answer(answer)
        self._answer_queued()

    def _answer_queued(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            waiting, self._on_answered = self._on_answered, []
            for callback in waiting:
                callback()
