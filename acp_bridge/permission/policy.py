"""Who may do what: modes, standing rules, and the question to the editor's user (acp.md §4).

May not know: how the question reaches the editor (it is given `send`), where rules are kept. Invariant: deny by default
— only an allowing option that was offered, selected in answer to this very request, lets a call run; a rule that
forbids wins over every mode and every rule that allows; no waiter outlives its turn.
"""

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from acp_bridge.permission.modes import AUTO_EDIT, FULL, READ_ONLY
from acp_bridge.permission.rule_book import RuleBook
from acp_bridge.permission.rules import (
    Case,
    Rule,
    RuleEffect,
    Target,
    allowing,
    forbidding,
    grant_json,
)
from acp_bridge.permission.wording import covered, option_name, prohibitions, proposals, scope_of
from acp_bridge.schema import PermissionAnswer, SchemaProblem, parse
from agent_loop.abort import AbortController, AbortSignal
from agent_loop.runtime import Runtime
from agent_loop.tools.arguments import parse_arguments
from agent_loop.tools.seam import Allow, Ask, Decision, Deny, PermissionPolicy, Subject, Tool, ToolCall, Verdict

ALLOW_ONCE: Final = {"optionId": "allow_once", "name": "Allow this call", "kind": "allow_once"}
REJECT_ONCE: Final = {"optionId": "reject_once", "name": "Reject this call", "kind": "reject_once"}

UNPROMPTED_MS: Final = 60_000

SendAsk = Callable[[str, ToolCall, Iterable[dict[str, str]], AbortSignal], Awaitable[dict[str, Any] | None]]
"""Ask the client (session id, call, options, withdraw signal) and return its result; None when it gave none."""


_Offer = tuple[dict[str, str], tuple[Rule, ...]]


def digest_of(call: ToolCall, cwd: str) -> str:
    """sha256 over the canonical arguments and the working directory: what an answer is bound to."""
    canonical = json.dumps([call.name, call.arguments, cwd], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(slots=True)
class _OpenAsk:
    """A question on the screen; the first `settle` decides and withdraws it."""

    judge: Callable[[], Verdict]
    withdraw: AbortController = field(default_factory=AbortController)
    decision: Decision | None = None

    def settle(self, decision: Decision) -> None:
        if self.decision is None:
            self.decision = decision
            self.withdraw.abort(decision.by)


class EditorPolicy(PermissionPolicy):
    """Asks the editor's user. `prompt_owns(session_id)`: a prompt waits for the present turn.

    `unprompted`: the clock by which a question of any other turn may stand for `UNPROMPTED_MS`; None = there is none.
    """

    def __init__(
        self,
        *,
        default_mode: str,
        send: SendAsk,
        prompt_owns: Callable[[str], bool],
        book: RuleBook,
        unprompted: Runtime | None = None,
    ) -> None:
        self.default_mode = default_mode
        self._send = send
        self._prompt_owns = prompt_owns
        self._book = book
        self._unprompted = unprompted
        self._modes: dict[str, str] = {}
        self._open: dict[str, list[_OpenAsk]] = {}

    def mode(self, session_id: str) -> str:
        """The mode of a session; the default until it was set."""
        return self._modes.get(session_id, self.default_mode)

    def set_mode(self, session_id: str, mode: str) -> None:
        """Change the mode, also in the middle of a turn: an open ask that it would not make is settled by it."""
        self._modes[session_id] = mode
        for waiting in self._open.get(session_id, []):
            if isinstance(waiting.judge(), Allow):
                waiting.settle(Decision("allow", "policy"))

    def forget(self, session_id: str) -> None:
        """The session has ended; whoever opens it again sets its mode again."""
        self._modes.pop(session_id, None)
        self._open.pop(session_id, None)
        self._book.forget(session_id)

    def evaluate(self, session_id: str, tool: Tool, call: ToolCall, cwd: str, roots: tuple[str, ...]) -> Verdict:
        """First what is forbidden, then what the mode asks about, then what a rule allows."""
        subject = tool.subject(call.arguments, cwd)
        if tool.effect == "none":
            return Allow(subject=subject)
        case = _case(tool, call, subject, roots, digest_of(call, cwd))
        standing = self._book.standing(session_id, case.roots[0])
        forbidden = forbidding(standing, case)
        if isinstance(forbidden, Rule):
            what = covered((forbidden.target,), case.roots[0])
            return Deny(f"the user has forbidden {what}", case.digest, grant_json((forbidden,)))
        mode = self.mode(session_id)
        sure = forbidden is None and self._book.is_whole(session_id, case.roots[0])
        if not _asks(mode, case) and (sure or tool.effect == "read"):
            return Allow(subject=subject)
        if mode != READ_ONLY and (rules := allowing(standing, case)):
            return Allow(case.digest, grant_json(rules), subject)
        return Ask(case.digest, subject=subject, roots=roots)

    async def ask(self, session_id: str, tool: Tool, call: ToolCall, ask: Ask, signal: AbortSignal) -> Decision:
        """Wait only in a turn that a prompt waits for: nobody looks at another, and it must not hang on a click."""
        owned = self._prompt_owns(session_id)
        clock = None if owned else self._unprompted
        if not owned and clock is None:
            return Decision("reject", "policy")
        case = _case(tool, call, ask.subject, ask.roots, ask.digest)
        offered = self._offers(session_id, call, case)
        waiting = _OpenAsk(lambda: self.evaluate(session_id, tool, call, ask.roots[0], ask.roots))
        asks = self._open.setdefault(session_id, [])
        asks.append(waiting)
        remove = signal.on_abort(lambda: waiting.settle(Decision("cancelled", "abort")))
        give_up = _nothing
        if clock is not None:
            late = Decision("reject", "policy")
            give_up = clock.call_at(clock.now_ms() + UNPROMPTED_MS, lambda: waiting.settle(late))
        try:
            answer = await self._send(session_id, call, [row for row, _ in offered.values()], waiting.withdraw.signal)
        finally:
            remove()
            give_up()
            asks.remove(waiting)
        if waiting.decision:
            return waiting.decision
        chosen = _chosen(answer)
        if chosen not in offered:
            return Decision("reject", "client" if chosen is None else "user")
        rules = offered[chosen][1]
        grant = grant_json(self._book.add(session_id, case.roots[0], rules)) if rules else None
        return Decision("allow" if chosen.startswith("allow") else "reject", "user", grant)

    def _offers(self, session_id: str, call: ToolCall, case: Case) -> dict[str, _Offer]:
        """The options in their order, each with the rules that it would make."""
        project = case.roots[0]
        # a secret in the arguments must not get into the words of an option, nor into a saved rule
        told = parse_arguments(call.raw) == call.arguments
        targets = proposals(case, self._book.standing(session_id, project)) if told else ()
        offers: dict[str, _Offer] = {"allow_once": (ALLOW_ONCE, ())}
        if targets and self.mode(session_id) != READ_ONLY:
            offers["allow_always"] = _always("allow", targets, project)
        offers["reject_once"] = (REJECT_ONCE, ())
        offers["reject_always"] = _always("deny", prohibitions(case, targets, tellable=told), project)
        return offers


def _nothing() -> None:
    """No limit is set."""


def _case(tool: Tool, call: ToolCall, subject: Subject, roots: tuple[str, ...], digest: str) -> Case:
    return Case(call.name, tool.effect, subject, tuple(os.path.realpath(root) for root in roots), digest)


def _asks(mode: str, case: Case) -> bool:
    if mode == FULL:
        return False
    if case.effect == "read":
        return not all(case.is_inside(path) for path in case.subject.paths)
    return not (mode == AUTO_EDIT and case.effect == "edit" and case.inside and not case.protected)


def _always(effect: RuleEffect, targets: tuple[Target, ...], project: str) -> tuple[dict[str, str], tuple[Rule, ...]]:
    kind = "allow_always" if effect == "allow" else "reject_always"
    scope = scope_of(targets[0])
    row = {"optionId": kind, "name": option_name(effect, targets, scope, project), "kind": kind}
    return row, tuple(Rule(effect, target, scope) for target in targets)


def _chosen(answer: dict[str, Any] | None) -> str | None:
    """The option that the client says was selected; None when it says none."""
    try:
        outcome = parse(PermissionAnswer, answer).outcome
    except SchemaProblem:
        return None
    # `cancelled` without session/cancel is a "no" to the one call; with it the abort has decided already
    return None if outcome.outcome == "cancelled" else outcome.option_id
