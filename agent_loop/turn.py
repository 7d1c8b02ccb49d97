"""One turn: from the messages that it claimed to its `turn/end` (contract agent-loop.md §3, §4).

May not know: who sends, other turns. Invariant: once `turn/start` is in the log, exactly one `step/end` per open step
and one `turn/end` follow, whatever raises; this is the wall behind which adapters, tools, hooks and the disk may fail.
"""

from collections.abc import Callable, Iterable
from typing import Final

import anyio

from agent_loop.abort import cancel_on_abort
from agent_loop.compaction import Cause, CompactionError, Plan, compact, not_summarised, plan_compaction, plan_room
from agent_loop.errors import HarnessError, LlmError
from agent_loop.inbox import COMPACTION, Inbox, Pending
from agent_loop.step import StepOutcome, TurnContext, run_step
from agent_loop.tools.dispatch import make_durable
from agent_loop.vocabulary import JsonObject, Trigger, TurnEndReason

_CONTINUATION: Final = "agent/turn-continuation"


class Turn:
    """Runs once. `owned` says whether a person's message is among those that it claimed."""

    def __init__(
        self, context: TurnContext, inbox: Inbox, *, disposed: Callable[[], bool], flush_seconds: float
    ) -> None:
        self._context = context
        self._session = context.session
        self._inbox = inbox
        self._disposed = disposed
        self._flush_seconds = flush_seconds
        self._step = 0
        self._extended_for_plugins = False
        self._overflowed = False
        self._shortening_failed = False
        self.number = context.session.last_turn + 1
        self.owned = False

    async def run(self, claimed: list[Pending], trigger: Trigger) -> None:
        """Never raises, except the cancellation of its own task; the turn is closed then as well."""
        # what stands when neither a result nor a failure comes: the task itself was cancelled, its host goes down
        reason: TurnEndReason = {"kind": "disposed"}
        try:
            self._session.append("turn/start", {"turn": self.number, "trigger": trigger})
            self._context.notify("agent/turn-start", self.number)
            self._log(claimed)
            reason = await (self._run_steps() if trigger != COMPACTION else self._summarise(claimed))
        except Exception as error:  # noqa: BLE001 - the turn wall
            reason = self._failure(error)
        finally:
            if self._session.open_turn == self.number:
                await self._close(reason)
            else:
                self._discard(claimed)

    async def _run_steps(self) -> TurnEndReason:
        context, signal = self._context, self._context.signal
        cut: TurnEndReason | None = None
        while not signal.aborted:
            self._step += 1
            if self._session.failure:
                # it may have passed since: another try tells
                await make_durable(self._session)
            outcome = await self._run_step()
            self._end_step()
            if outcome.finish in ("aborted", "refusal"):
                return {"kind": outcome.finish}
            if outcome.finish == "max-tokens":
                cut = {"kind": "max-tokens"}
            if not await self._continues(ran_tools=outcome.ran_tools):
                return cut or {"kind": "completed"}
            if self._step >= context.options.max_steps:
                return cut or {"kind": "max-steps"}
            if not self._shortening_failed and (plan := await plan_room(self._session, context.options)):
                await self._shorten(plan)
            self._log(self._inbox.claim_step())
        return {"kind": "aborted"}

    async def _run_step(self) -> StepOutcome:
        """The next step; one that the model refuses because the conversation is too long is tried again, shorter."""
        context = self._context
        try:
            return await run_step(context, turn=self.number, step=self._step)
        except LlmError as error:
            if error.code != "CONTEXT_OVERFLOW" or self._overflowed or context.options.compact_at is None:
                raise
            self._overflowed = True
            self._end_step()
            plan = plan_compaction(await self._session.entries(), context.options, cause="overflow")
            if plan is None:
                raise
            self._step += 1
            try:
                done = await compact(context, plan, turn=self.number, step=self._step, cause="overflow")
            except LlmError as failure:
                both = f"{error.message}; it could not be summarised either: {failure.message}"
                raise LlmError(both, error.code) from failure
            if not done:
                return StepOutcome("aborted")
            self._end_step()
            self._step += 1
            return await run_step(context, turn=self.number, step=self._step)

    async def _shorten(self, plan: Plan) -> None:
        """Summarise what came before in the middle of a turn; when that fails, the turn goes on as it is."""
        self._step += 1
        try:
            await compact(self._context, plan, turn=self.number, step=self._step, cause="threshold")
        except LlmError as failure:
            self._shortening_failed = True
            self._session.append("session/notice", not_summarised(failure))
        self._end_step()

    async def _summarise(self, claimed: list[Pending]) -> TurnEndReason:
        """A turn of its own: a command asked for it, and says itself how it went, or the context runs full."""
        cause: Cause = "command" if claimed else "threshold"
        instructions = "".join(item.message.compaction or "" for item in claimed)
        plan = plan_compaction(await self._session.entries(), self._context.options, cause=cause)
        if plan is None:
            return {"kind": "completed"}
        self._step = 1
        try:
            done = await compact(
                self._context, plan, turn=self.number, step=self._step, cause=cause, instructions=instructions
            )
        except LlmError as failure:
            if claimed:
                raise
            self._session.append("session/notice", not_summarised(failure))
            raise CompactionError(failure.message) from failure
        self._end_step()
        return {"kind": "completed"} if done else {"kind": "aborted"}

    async def _continues(self, *, ran_tools: bool) -> bool:
        wanted = ran_tools or self._inbox.turn_kept_open
        if not wanted and self._inbox.step_waits and not self._extended_for_plugins:
            self._extended_for_plugins = wanted = True
        if not self._context.wrapped(_CONTINUATION):
            return wanted
        with cancel_on_abort(self._context.signal):
            return await self._context.through(_CONTINUATION, wanted)
        return False

    def _log(self, claimed: Iterable[Pending]) -> None:
        """Log claimed messages, then tell of every one of them, also when one could not be logged."""
        items = list(claimed)
        self.owned = self.owned or any(item.message.source.get("kind") == "user" for item in items)
        try:
            for item in items:
                if item.message.compaction is None:
                    data: JsonObject = {"content": item.message.content, "source": item.message.source}
                    self._session.append("context/message" if item.context else "user/message", data)
        finally:
            for item in items:
                self._context.notify("agent/inbox/claimed", item.message, self.number)

    def _failure(self, error: Exception) -> TurnEndReason:
        if not self._context.signal.aborted:
            self._context.notify("agent/error", error)
        step = max(self._step, 1)
        if isinstance(error, HarnessError):
            return {"kind": "error", "step": step, "message": error.message, "code": error.code}
        # the text of an unforeseen error may hold anything, keys too: it goes to the agent's own log only
        name = type(error).__name__
        message = f"unexpected {name} inside the agent; its own log has the details"
        return {"kind": "error", "step": step, "message": message, "code": "INTERNAL"}

    def _end_step(self) -> None:
        self._session.append("step/end", {"turn": self.number, "step": self._step})
        self._context.notify("agent/step-end", self.number, self._step)

    async def _close(self, reason: TurnEndReason) -> None:
        signal = self._context.signal
        if self._session.open_step is not None:
            self._end_step()
        if self._disposed():
            reason = {"kind": "disposed"}
        elif signal.aborted:
            reason = {"kind": "aborted", "reason": signal.reason}
        elif reason["kind"] != "error":
            self._inbox.postpone_plugins()
        end = self._session.append("turn/end", {"turn": self.number, "reason": reason})
        persisted = False
        # a disk that hangs must not keep the driver, and with it the answer to a cancel, for ever
        with anyio.move_on_after(self._flush_seconds, shield=True):
            persisted = await self._session.flush()
        self._context.notify("agent/turn-end", self.number, end.data["reason"], persisted)

    def _discard(self, claimed: list[Pending]) -> None:
        """The turn could not even start: nothing was logged, so the senders are told that their messages are gone."""
        for item in claimed:
            self._context.notify("agent/inbox/discarded", item.message, "error")
