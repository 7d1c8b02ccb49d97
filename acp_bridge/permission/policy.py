"""Who may do what: the modes, and the ask (acp.md §4, first form: `ask` and `full`, allow once, reject once).

May not know: how the question reaches the editor (it is given `send`). Invariant: deny by default — only the one
option `allow_once`, selected in answer to this very request, lets a call run — and no waiter outlives its turn.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from acp_bridge.permission.modes import AUTO_EDIT, FULL
from acp_bridge.schema import PermissionAnswer, SchemaProblem, parse
from agent_loop.abort import AbortController, AbortSignal
from agent_loop.tools.seam import Allow, Ask, Decision, PermissionPolicy, Tool, ToolCall, Verdict

OPTIONS: Final = (
    {"optionId": "allow_once", "name": "Allow this call", "kind": "allow_once"},
    {"optionId": "reject_once", "name": "Reject this call", "kind": "reject_once"},
)

SendAsk = Callable[[str, ToolCall, Iterable[dict[str, str]], AbortSignal], Awaitable[dict[str, Any] | None]]
"""Ask the client (session id, call, options, withdraw signal) and return its result; None when it gave none."""


def digest_of(call: ToolCall, cwd: str) -> str:
    """sha256 over the canonical arguments and the working directory: what an answer is bound to."""
    canonical = json.dumps([call.name, call.arguments, cwd], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(slots=True)
class _OpenAsk:
    """A question on the screen; the first `settle` decides and withdraws it."""

    effect: str
    withdraw: AbortController = field(default_factory=AbortController)
    decision: Decision | None = None

    def settle(self, decision: Decision) -> None:
        if self.decision is None:
            self.decision = decision
            self.withdraw.abort(decision.by)


class EditorPolicy(PermissionPolicy):
    """Asks the editor's user. `prompt_owns(session_id)`: a prompt waits for the present turn."""

    def __init__(self, *, default_mode: str, send: SendAsk, prompt_owns: Callable[[str], bool]) -> None:
        self.default_mode = default_mode
        self._send = send
        self._prompt_owns = prompt_owns
        self._modes: dict[str, str] = {}
        self._open: dict[str, list[_OpenAsk]] = {}

    def mode(self, session_id: str) -> str:
        """The mode of a session; the default until it was set."""
        return self._modes.get(session_id, self.default_mode)

    def set_mode(self, session_id: str, mode: str) -> None:
        """Change the mode, also in the middle of a turn: an open ask that it would not make is settled by it."""
        self._modes[session_id] = mode
        for waiting in self._open.get(session_id, []):
            if not self._asks(session_id, waiting.effect):
                waiting.settle(Decision("allow", "policy"))

    def forget(self, session_id: str) -> None:
        """The session has ended; whoever opens it again sets its mode again."""
        self._modes.pop(session_id, None)
        self._open.pop(session_id, None)

    def _asks(self, session_id: str, effect: str) -> bool:
        mode = self.mode(session_id)
        return mode != FULL and effect in {"edit", "execute"} and not (mode == AUTO_EDIT and effect == "edit")

    def evaluate(self, session_id: str, tool: Tool, call: ToolCall, cwd: str, roots: tuple[str, ...]) -> Verdict:  # noqa: ARG002 - rules come next
        subject = tool.subject(call.arguments, cwd)
        if self._asks(session_id, tool.effect):
            return Ask(digest_of(call, cwd), subject=subject)
        return Allow(subject=subject)

    async def ask(self, session_id: str, tool: Tool, call: ToolCall, ask: Ask, signal: AbortSignal) -> Decision:  # noqa: ARG002 - the digest is logged by the step
        if not self._prompt_owns(session_id):
            # nobody looks at a turn that no prompt started: it must not wait for a click
            return Decision("reject", "policy")
        waiting = _OpenAsk(tool.effect)
        asks = self._open.setdefault(session_id, [])
        asks.append(waiting)
        remove = signal.on_abort(lambda: waiting.settle(Decision("cancelled", "abort")))
        try:
            answer = await self._send(session_id, call, OPTIONS, waiting.withdraw.signal)
        finally:
            remove()
            asks.remove(waiting)
        return waiting.decision or _decision(answer)


def _decision(answer: dict[str, Any] | None) -> Decision:
    if answer is None:
        return Decision("reject", "client")
    try:
        outcome = parse(PermissionAnswer, answer).outcome
    except SchemaProblem:
        return Decision("reject", "client")
    if outcome.outcome == "cancelled":
        # without session/cancel this is a "no" to the one call; with it the abort has decided already
        return Decision("reject", "client")
    return Decision("allow" if outcome.option_id == "allow_once" else "reject", "user")
