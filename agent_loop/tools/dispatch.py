"""Runs the tool calls of one step: order, policy, durability, abort (contract agent-loop.md §3 "Tools", "On abort").

May not know: the model, any concrete tool, who asks the user. Invariant: when `run` ends, whichever way, every call of
the message stands in the log as one `tool/call` and one `tool/result`; no body starts before its call is on the disk.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import anyio

from agent_loop.abort import AbortController, AbortSignal, cancel_on_abort
from agent_loop.errors import HarnessError
from agent_loop.runtime import Runtime
from agent_loop.session.log import Session
from agent_loop.session.store import PersistenceError
from agent_loop.tools.arguments import parse_arguments
from agent_loop.tools.files.seam import FileBackend
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import (
    Allow,
    Ask,
    Decision,
    Deny,
    PermissionPolicy,
    Tool,
    ToolCall,
    ToolContext,
    ToolOutcome,
    Verdict,
)
from agent_loop.vocabulary import Block, JsonObject

POOL_SIZE: Final = 4
# a body that ignores the abort is cancelled then: the answer to a cancel is due within 10 s
GRACE_SECONDS: Final = 8.0

_NOT_STARTED = ToolOutcome.failed(
    "the turn ended before this call was started; it did not run",
    name="AbortError",
    code="aborted-before-dispatch",
)
_WHY: Final = {
    "user": "the user refused this call",
    "policy": "this call needs permission, and nobody could be asked: the user has not started this turn",
}
_STOPPED = ToolOutcome.failed(
    "the call was stopped before it could report a result; what it did until then stays done",
    name="AbortError",
    code="aborted",
)


@dataclass(slots=True, eq=False)
class _Call:
    """One tool-call block on its way. `ready` is the call with its parsed arguments, or why they are unreadable."""

    id: str
    name: str
    raw: str
    ready: ToolCall | str
    tool: Tool | None
    logged: bool = False
    started: bool = False
    answered: bool = False
    outcome: ToolOutcome | None = None
    asked: str | None = None  # the digest of the question that is open in the log
    permitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Judged:
    """A call that can run, and what the policy says to it."""

    tool: Tool
    call: ToolCall
    verdict: Verdict


class ToolDispatch:
    """Runs the calls of every step of one turn. `on_output(call_id, data)` gets live output bytes.

    `roots`: the directories of the workspace, the first is `cwd`.
    """

    def __init__(
        self,
        *,
        session: Session,
        cwd: str,
        roots: tuple[str, ...],
        tools: ToolRegistry,
        policy: PermissionPolicy,
        runtime: Runtime,
        signal: AbortSignal,
        on_output: Callable[[str, bytes], None],
        files: FileBackend,
    ) -> None:
        self._session = session
        self._cwd = cwd
        self._roots = roots
        self._files = files
        self._tools = tools
        self._policy = policy
        self._runtime = runtime
        self._signal = signal
        self._on_output = on_output
        self._open_ask: AbortController | None = None
        self._turn = 0
        self._step = 0

    def withdraw_ask(self, reason: str) -> None:
        """Settle the open permission request as not given; the turn goes on. Nothing when none is open."""
        if self._open_ask:
            self._open_ask.abort(reason)

    async def run(self, blocks: list[Block], *, turn: int, step: int, exact: Mapping[str, str]) -> None:
        """Run the tool-call blocks of a message in model order and log their results.

        `exact`: by call id, the arguments that a call runs with, where those of its block are redacted.
        Raises `PersistenceError` when the log cannot be made durable, and what a policy raises.
        """
        self._turn, self._step = turn, step
        calls = [self._prepare(block, exact.get(block["id"], block["arguments"])) for block in blocks]
        try:
            await self._run_in_order(calls)
        finally:
            for call in calls:
                self._answer(call)

    def _prepare(self, block: Block, written: str) -> _Call:
        call_id, name, raw = block["id"], block["name"], block["arguments"]
        arguments = parse_arguments(written)
        return _Call(
            id=call_id,
            name=name,
            raw=raw,
            ready=arguments if isinstance(arguments, str) else ToolCall(call_id, name, arguments, raw),
            tool=self._tools.get(name, self._session.id),
        )

    async def _run_in_order(self, calls: list[_Call]) -> None:
        index = 0
        while index < len(calls) and not self._signal.aborted:
            group = self._concurrent(calls[index:])
            if group:
                await self._run_group(group)
                index += len(group)
            else:
                await self._run_alone(calls[index])
                index += 1

    def _concurrent(self, calls: list[_Call]) -> list[_Call]:
        """The leading calls that may run side by side: declared so, and nobody has to be asked."""
        group: list[_Call] = []
        for call in calls:
            if not (call.tool and call.tool.concurrency_safe):
                break
            judged = self._judge(call)
            if judged and not isinstance(judged.verdict, Allow):
                break
            self._log_allowed(call, judged)
            group.append(call)
        return group

    def _judge(self, call: _Call) -> _Judged | None:
        """What the policy says; a call that cannot run (no such tool, wrong arguments) needs no leave."""
        if call.tool is None or isinstance(call.ready, str) or self._tools.refusal(call.ready, self._session.id):
            return None
        return self._judged(call.tool, call.ready)

    def _judged(self, tool: Tool, call: ToolCall) -> _Judged:
        return _Judged(tool, call, self._policy.evaluate(self._session.id, tool, call, self._cwd, self._roots))

    async def _run_group(self, group: list[_Call]) -> None:
        for call in group:
            self._log_call(call)
        await make_durable(self._session)
        pool = anyio.Semaphore(POOL_SIZE)

        async def run_pooled(call: _Call) -> None:
            async with pool:
                await self._run_body(call)

        async with anyio.create_task_group() as tasks:
            for call in group:
                tasks.start_soon(run_pooled, call)
        for call in group:
            self._answer(call)

    async def _run_alone(self, call: _Call) -> None:
        judged = self._judge(call)
        if judged is None or isinstance(judged.verdict, Allow):
            self._log_allowed(call, judged)
            self._log_call(call)
            await self._run_now(call)
        elif isinstance(judged.verdict, Deny):
            denied = Decision("reject", "rule", judged.verdict.grant)
            self._log_decision(call, judged.verdict.digest, denied)
            self._log_call(call)
            call.outcome = _refused(denied, judged.verdict.reason)
        else:
            await self._run_asked(call, judged)
        self._answer(call)

    async def _run_now(self, call: _Call) -> None:
        await make_durable(self._session)
        await self._run_body(call)

    async def _run_asked(self, call: _Call, judged: _Judged) -> None:
        decision = await self._decide(call, judged)
        if call.asked is not None:
            self._log_decision(call, call.asked, decision)
        if self._signal.aborted or call.outcome:
            return
        if decision.outcome == "allow":
            await self._run_now(call)
        else:
            call.outcome = _refused(decision)

    async def _decide(self, call: _Call, judged: _Judged) -> Decision:
        release = AbortController()
        forget = self._signal.on_abort(lambda: release.abort(self._signal.reason or ""))
        self._open_ask = release
        decision = Decision("cancelled", "abort")
        try:
            with cancel_on_abort(release):
                decision = await self._ask_until_current(call, judged, release.signal)
        finally:
            self._open_ask = None
            forget()
        # an answer that arrives in the tick of the release is late
        return Decision("cancelled", "abort") if release.aborted else decision

    async def _ask_until_current(self, call: _Call, judged: _Judged, signal: AbortSignal) -> Decision:
        """Ask; again when what was shown is no longer so by the time of the yes (acp.md §4)."""
        while isinstance(ask := judged.verdict, Ask):
            # a preview may show the person what the model may not read yet
            context = replace(self._context(call, signal), permitted=ask.subject.paths)
            preview = await self._tools.prepare(judged.call, context, agent=self._session.id)
            if isinstance(preview, ToolOutcome):
                call.outcome = preview
                return Decision("cancelled", "tool")
            self._log_request(call, ask.digest, preview)
            decision = await self._policy.ask(
                self._session.id, judged.tool, judged.call, replace(ask, preview=preview), signal
            )
            if decision.outcome != "allow":
                return decision
            now = await self._tools.prepare(judged.call, context, agent=self._session.id)
            if isinstance(now, ToolOutcome):
                call.outcome = now
                return decision
            if now == preview and judged.tool.subject(judged.call.arguments, self._cwd) == ask.subject:
                call.permitted = ask.subject.paths
                return decision
            self._log_decision(call, ask.digest, decision, outcome="outdated")
            judged = self._judged(judged.tool, judged.call)
        if isinstance(ask, Allow):
            call.permitted = ask.subject.paths
        return Decision("allow" if isinstance(ask, Allow) else "reject", "rule", ask.grant)

    def _context(self, call: _Call, signal: AbortSignal) -> ToolContext:
        return ToolContext(
            session_id=self._session.id,
            cwd=self._cwd,
            signal=signal,
            on_output=partial(self._on_output, call.id),
            call_id=call.id,
            record=self._session.append,
            permitted=call.permitted,
            roots=self._roots,
            files=self._files,
        )

    async def _run_body(self, call: _Call) -> None:
        if self._signal.aborted:
            return
        if isinstance(call.ready, str):
            call.outcome = ToolOutcome.failed(call.ready, name="InvalidArgumentsError", code="INVALID_ARGS")
            return
        call.started = True
        context = self._context(call, self._signal)
        async with anyio.create_task_group() as tasks:
            # started now, not on the abort: that may come from a callback of the loop, where no task can be started
            tasks.start_soon(self._cancel_late, tasks.cancel_scope)
            call.outcome = await self._tools.execute(call.ready, context, agent=self._session.id)
            tasks.cancel_scope.cancel()

    async def _cancel_late(self, body: anyio.CancelScope) -> None:
        """Cancel a body that has ignored the abort for too long."""
        await self._signal.wait()
        await self._runtime.sleep(GRACE_SECONDS)
        body.cancel()

    def _log_call(self, call: _Call) -> None:
        call.logged = True
        self._session.append(
            "tool/call",
            {
                "turn": self._turn,
                "step": self._step,
                "callId": call.id,
                "name": call.name,
                "arguments": call.raw,
            },
        )

    def _log_request(self, call: _Call, digest: str, preview: JsonObject | None) -> None:
        shown: JsonObject = {} if preview is None else {"preview": preview}
        call.asked = digest
        self._session.append("permission/request", {"callId": call.id, "digest": digest} | shown)
        if not call.logged:
            self._log_call(call)

    def _log_allowed(self, call: _Call, judged: _Judged | None) -> None:
        """A standing rule that lets a call run is named in the log; that a mode asks about nothing is not."""
        if judged and isinstance(judged.verdict, Allow):
            call.permitted = judged.verdict.subject.paths
            if judged.verdict.grant is not None:
                self._log_decision(call, judged.verdict.digest, Decision("allow", "rule", judged.verdict.grant))

    def _log_decision(
        self, call: _Call, digest: str, decision: Decision, *, outcome: Literal["outdated"] | None = None
    ) -> None:
        """`outdated`: the yes came too late for what was shown."""
        call.asked = None
        granted: JsonObject = {} if decision.grant is None else {"grant": decision.grant}
        told = {"callId": call.id, "digest": digest, "outcome": outcome or decision.outcome, "by": decision.by}
        self._session.append("permission/decision", told | granted)

    def _answer(self, call: _Call) -> None:
        """Log the result once; a call without an outcome was stopped, or never started."""
        if call.answered:
            return
        if not call.logged:
            self._log_call(call)
        call.answered = True
        outcome = call.outcome or (_STOPPED if call.started else _NOT_STARTED)
        try:
            self._log_result(call, outcome)
        except HarnessError as error:
            # a tool's result that is not JSON is the tool's fault; the call still gets its one result
            self._log_result(call, ToolOutcome.failed(str(error), name=type(error).__name__, code=error.code))

    def _log_result(self, call: _Call, outcome: ToolOutcome) -> None:
        data: JsonObject = {
            "turn": self._turn,
            "step": self._step,
            "callId": call.id,
            "content": outcome.content,
            "isError": outcome.is_error,
        }
        if outcome.error is not None:
            data["error"] = outcome.error
        if outcome.meta is not None:
            data["meta"] = outcome.meta
        self._session.append("tool/result", data)


async def make_durable(session: Session) -> None:
    """Flush the log. Raises `PersistenceError` when that fails."""
    if not await session.flush():
        raise session.failure or PersistenceError(session.id, "it could not be flushed to the disk")


def _refused(decision: Decision, reason: str | None = None) -> ToolOutcome:
    who = _WHY.get(decision.by, "permission for this call was not given")
    return ToolOutcome.failed(
        f"{reason or who}; it did not run. Do not try it again in another form: go on without it, or ask what to do "
        "instead",
        name="PermissionError",
        code="rejected",
    )
