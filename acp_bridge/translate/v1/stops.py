"""How a turn's end reads on the wire (acp.md §2 `session/prompt`).

May not know: requests, sessions. Invariant: pure and total — every reason, known or not, gives exactly one answer.
"""

from dataclasses import dataclass
from typing import Any, Literal

from agent_loop.vocabulary import TurnEndReason

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]

CANCEL_REASONS = frozenset({"session/cancel", "cancel_request", "session/close", "session/delete", "shutdown"})
"""Aborts that the client asked for: only these answer `cancelled`."""

_PLAIN: dict[str, StopReason] = {
    "completed": "end_turn",
    "max-tokens": "max_tokens",
    "max-steps": "max_turn_requests",
    "refusal": "refusal",
}


@dataclass(frozen=True, slots=True)
class Stopped:
    """A result: the prompt's stop reason."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class Failed:
    """An error −32603: `message` for people, `data {reason, details}` for programs."""

    message: str
    data: dict[str, Any]


def stop_of(reason: TurnEndReason) -> Stopped | Failed:
    """The answer of the prompt whose turn ended for `reason`."""
    kind = reason["kind"]
    if kind in _PLAIN:
        return Stopped(_PLAIN[kind])
    if kind == "disposed":
        return Stopped("cancelled")
    if kind == "aborted":
        why = reason.get("reason", "")
        if why in CANCEL_REASONS:
            return Stopped("cancelled")
        return _failed("aborted", f"aborted: {why}")
    if kind == "error":
        return _failed(str(reason.get("code", "error")).lower(), str(reason.get("message", "")))
    return _failed(kind, f"the turn ended: {kind}")


def _failed(symbol: str, details: str) -> Failed:
    return Failed(f"Internal error: turn failed: {details}", {"reason": symbol, "details": details})
