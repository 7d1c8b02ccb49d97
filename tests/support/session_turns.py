"""Parts of session logs as (type, data) pairs, in the order in which a turn logs them."""

from typing import Any

from agent_loop.session.events import SessionEvent, make_event

Pair = tuple[str, dict[str, Any]]
USER = {"kind": "user"}


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": value}]


def turn_start(turn: int) -> Pair:
    return "turn/start", {"turn": turn, "trigger": {"kind": "message", "source": USER}}


def turn_end(turn: int, kind: str = "completed") -> Pair:
    return "turn/end", {"turn": turn, "reason": {"kind": kind}}


def user(value: str) -> Pair:
    return "user/message", {"content": text(value), "source": USER}


def step_start(turn: int, step: int) -> Pair:
    return "step/start", {"turn": turn, "step": step}


def step_end(turn: int, step: int) -> Pair:
    return "step/end", {"turn": turn, "step": step}


def delta(turn: int, step: int, value: str) -> Pair:
    return "assistant/chunk", {"turn": turn, "step": step, "chunk": {"type": "text-delta", "index": 0, "text": value}}


def call_delta(turn: int, step: int, call_id: str) -> Pair:
    chunk = {"type": "tool-call-delta", "index": 0, "id": call_id, "argumentsDelta": "{}"}
    return "assistant/chunk", {"turn": turn, "step": step, "chunk": chunk}


def call_block(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "tool-call", "id": call_id, "name": "bash", "arguments": arguments}


def answer(turn: int, step: int, *blocks: dict[str, Any], usage: dict[str, int] | None = None) -> Pair:
    data: dict[str, Any] = {"turn": turn, "step": step, "content": list(blocks)}
    return "assistant/message", data | ({"usage": usage} if usage else {})


def call(turn: int, step: int, call_id: str) -> Pair:
    return "tool/call", {"turn": turn, "step": step, "callId": call_id, "name": "bash", "arguments": "{}"}


def result(turn: int, step: int, call_id: str, value: str = "done") -> Pair:
    return "tool/result", {
        "turn": turn,
        "step": step,
        "callId": call_id,
        "content": text(value),
        "isError": False,
    }


def text_turn(turn: int, prompt: str = "hello", reply: str = "hi") -> list[Pair]:
    """A whole turn of one step."""
    return [
        turn_start(turn),
        user(prompt),
        step_start(turn, 1),
        delta(turn, 1, reply),
        answer(turn, 1, *text(reply), usage={"inputTokens": 1, "outputTokens": 1}),
        step_end(turn, 1),
        turn_end(turn),
    ]


def tool_turn(turn: int, call_id: str) -> list[Pair]:
    """A whole turn of two steps, the first of which calls a tool."""
    return [
        turn_start(turn),
        user("run it"),
        step_start(turn, 1),
        call_delta(turn, 1, call_id),
        answer(turn, 1, call_block(call_id)),
        call(turn, 1, call_id),
        result(turn, 1, call_id),
        step_end(turn, 1),
        step_start(turn, 2),
        answer(turn, 2, *text("it ran")),
        step_end(turn, 2),
        turn_end(turn),
    ]


def events_of(pairs: list[Pair], *, time: int = 1000) -> list[SessionEvent]:
    """The events of a log that begins with `pairs`; each a millisecond after the one before."""
    return [make_event(event_type, seq, time + seq, data) for seq, (event_type, data) in enumerate(pairs)]
