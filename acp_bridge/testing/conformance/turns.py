"""A prompt turn of the agent under test, as the checks drive and read it.

May not know: which rule asks. Invariant: every wait ends; a wait for what the model should have caused ends with the
prompt's response, as not provoked.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import Answer, MakeAnswer, shell_tool
from acp_bridge.testing.conformance.verdicts import Broken, NotProvoked
from acp_bridge.testing.editor import EditorError
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode

STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
# what a turn shows; the rest tells the state of the session and may come at any time
TURN_UPDATES = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
PERMISSION = "session/request_permission"
FOREVER = "exec sleep 300"
REOPENINGS = (("session/load", "loadSession"), ("session/resume", "sessionCapabilities.resume"))
"""The methods that open a stored session, and what advertises them."""
_FINAL = {"completed", "failed"}
_POLL_SECONDS = 0.01

Check = Callable[[Lab], None]


def require(met: object, text: str) -> None:
    """Raises `Broken` with `text` unless `met`."""
    if not met:
        raise Broken(text)


def provoked(met: object, text: str) -> None:
    """Raises `NotProvoked` with `text` unless `met`."""
    if not met:
        raise NotProvoked(text)


def should(lab: Lab, met: object, text: str) -> None:
    """Note a shortcoming unless `met`: it breaks no MUST."""
    if not met:
        lab.warn(text)


def shown(value: Any) -> str:
    """`value` as JSON, short enough for a message."""
    return encode(value)[:300]


def line(frame: JsonObject) -> bytes:
    """A frame as bytes, newline included."""
    return (encode({"jsonrpc": "2.0", **frame}) + "\n").encode()


def prompt_frame(request_id: Any, session: str, text: str) -> JsonObject:
    """A session/prompt request."""
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"id": request_id, "method": "session/prompt", "params": params}


def cancel_frame(session: str) -> JsonObject:
    """A session/cancel notification."""
    return {"method": "session/cancel", "params": {"sessionId": session}}


def body_of(frame: JsonObject) -> JsonObject:
    """The result or error of a response."""
    return {key: value for key, value in frame.items() if key in {"result", "error"}}


def stop_reason(frame: JsonObject) -> Any:
    """The stop reason of a prompt's response, None when it is an error."""
    return (as_object(frame.get("result")) or {}).get("stopReason")


def is_settled(frame: JsonObject) -> bool:
    """Whether a prompt was answered with one of the five stop reasons, or an error."""
    return "error" in frame or stop_reason(frame) in STOP_REASONS


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt that was sent: the id of its request, and the number of entries before it."""

    agent: LabAgent
    session: str
    id: Any
    since: int

    def end(self, *, seconds: float | None = None) -> JsonObject:
        """The response frame."""
        return self.agent.response(self.id, seconds=seconds, since=self.since)

    def completed(self) -> None:
        """Raises `Broken` unless it ends with `end_turn`."""
        frame = self.end()
        require(stop_reason(frame) == "end_turn", f"the prompt ended with {shown(body_of(frame))}, not end_turn")

    def cancel(self) -> None:
        """Send session/cancel."""
        self.agent.cancel(self.session)

    def cancelled(self, when: str, *, seconds: float | None = None) -> None:
        """Raises `Broken` unless it ends with `cancelled`."""
        frame = self.end(seconds=seconds)
        require(stop_reason(frame) == "cancelled", f"session/cancel {when}: the prompt got {shown(body_of(frame))}")

    def until(self, matches: Callable[[JsonObject], bool], what: str) -> JsonObject:
        """The first frame that `matches`. Raises `NotProvoked` when the prompt is answered first."""

        def fits(frame: JsonObject) -> bool:
            return matches(frame) or self._is_response(frame)

        frame = self.agent.wait(fits, since=self.since, what=what)[1]
        provoked(matches(frame), f"the prompt was answered with {shown(body_of(frame))} before any {what}")
        return frame

    def text(self) -> JsonObject:
        """The frame of its first text."""
        return self.until(lambda frame: kind_of(frame) == "agent_message_chunk", "text of the model")

    def asked(self) -> JsonObject:
        """The permission request."""
        return self.until(lambda frame: frame.get("method") == PERMISSION, "permission request")

    def file(self, path: Path, *, seconds: float = 10.0) -> None:
        """Return when `path` exists: a command makes it to say that it runs."""
        deadline = time.monotonic() + seconds
        while not path.exists():
            provoked(not self.is_answered(), f"the prompt was answered before its command made {path.name}")
            provoked(time.monotonic() < deadline, f"no command made {path.name}")
            time.sleep(_POLL_SECONDS)  # a file of another process: there is no event for it everywhere

    def updates(self, *kinds: str) -> list[JsonObject]:
        """The session's updates since the prompt, of these kinds (none named: all)."""
        found = self.agent.updates(self.session, since=self.since)
        return [update for update in found if not kinds or update.get("sessionUpdate") in kinds]

    def shown_text(self) -> str:
        """The model's text so far."""
        return joined(self.updates("agent_message_chunk"))

    def cards(self) -> dict[str, list[JsonObject]]:
        """Its tool calls. Raises `NotProvoked` when there is none."""
        found = cards(self.updates())
        provoked(found, "no tool call was shown")
        return found

    def permissions(self) -> list[JsonObject]:
        """The permission requests so far. Raises `NotProvoked` when there is none."""
        entries = tuple(self.agent.entries)[self.since :]
        found = [entry.frame for entry in entries if entry.frame.get("method") == PERMISSION]
        provoked(found, "the agent asked for no permission")
        return found

    def is_answered(self) -> bool:
        """Whether the response has come."""
        entries = tuple(self.agent.entries)[self.since :]
        return any(self._is_response(entry.frame) for entry in entries)

    def _is_response(self, frame: JsonObject) -> bool:
        return "method" not in frame and frame.get("id") == self.id


def begin(lab: Lab, agent: LabAgent, session: str, *answers: Answer | MakeAnswer, text: str = "go on") -> Turn:
    """Script the model, send a prompt."""
    lab.model.script(*answers)
    since = len(agent.entries)
    return Turn(agent, session, agent.send_prompt(session, text), since)


def needs_shell(lab: Lab) -> None:
    """Raises `NotProvoked` when the model was called already, and never with a tool that runs commands."""
    bodies = [request.body for request in lab.model.requests]
    provoked(not bodies or any(map(shell_tool, bodies)), "no tool that runs commands is offered")


def ran(lab: Lab, agent: LabAgent, session: str, *answers: Answer | MakeAnswer, text: str = "go on") -> Turn:
    """The same, and the prompt has been answered with one of the stop reasons."""
    turn = begin(lab, agent, session, *answers, text=text)
    frame = turn.end()
    require(stop_reason(frame) in STOP_REASONS, f"the prompt was answered with {shown(body_of(frame))}")
    return turn


def opening(lab: Lab, session: str) -> JsonObject:
    """The params that open a stored session of the lab's directory."""
    return {"sessionId": session, "cwd": str(lab.cwd), "mcpServers": []}


def load(lab: Lab, agent: LabAgent, session: str) -> tuple[JsonObject, list[JsonObject]]:
    """Load a session of the lab's directory: the result, and the updates that came before it."""
    provoked(agent.advertises("loadSession"), "the agent does not load sessions")
    since = len(agent.entries)
    result = agent.call("session/load", opening(lab, session))
    frames = agent.frames_since(since)
    end = next(index for index, frame in enumerate(frames) if frame.get("result") is result)
    said_of = [frame["params"] for frame in frames[:end] if kind_of(frame)]
    return result, [params["update"] for params in said_of if params.get("sessionId") == session]


def replays(lab: Lab, agent: LabAgent, session: str) -> list[list[JsonObject]]:
    """The updates of one session/load; empty for an agent that does not load sessions."""
    return [load(lab, agent, session)[1]] if agent.advertises("loadSession") else []


def kind_of(frame: JsonObject) -> Any:
    """The kind of update that a frame carries, None when it is no update."""
    params = as_object(frame.get("params")) or {}
    return (as_object(params.get("update")) or {}).get("sessionUpdate")


def joined(updates: Iterable[JsonObject]) -> str:
    """The text of chunks."""
    return "".join(str((as_object(update.get("content")) or {}).get("text", "")) for update in updates)


def cards(updates: Iterable[JsonObject]) -> dict[str, list[JsonObject]]:
    """toolCallId → everything that was said about it."""
    found: dict[str, list[JsonObject]] = {}
    for update in updates:
        if update.get("sessionUpdate") in {"tool_call", "tool_call_update"}:
            found.setdefault(str(update.get("toolCallId")), []).append(update)
    return found


def statuses(card: Iterable[JsonObject]) -> list[str]:
    """The statuses of a card in their order; one that is announced without is pending."""
    found: list[str] = []
    for update in card:
        if status := update.get("status"):
            found.append(status)
        elif update.get("sessionUpdate") == "tool_call":
            found.append("pending")
    return found


def is_final(card: Iterable[JsonObject]) -> bool:
    """Whether a card is completed or failed."""
    return (statuses(card) or ["pending"])[-1] in _FINAL


def contents(card: Iterable[JsonObject], kind: str) -> list[JsonObject]:
    """Every content block of one type in a card, in the order in which they came."""
    found: list[JsonObject] = []
    for update in card:
        blocks = [as_object(block) or {} for block in as_list(update.get("content")) or []]
        found += [block for block in blocks if block.get("type") == kind]
    return found


def permit(request: JsonObject, kind: str) -> JsonObject:
    """The answer to a permission request that takes the option of `kind`; `cancelled` when it was not offered."""
    if request["method"] != PERMISSION:
        return {"error": {"code": -32601, "message": f"this client has no {request['method']}"}}
    offered = {option.get("kind"): option.get("optionId") for option in request["params"]["options"]}
    if kind not in offered:
        return {"result": {"outcome": {"outcome": "cancelled"}}}
    return {"result": {"outcome": {"outcome": "selected", "optionId": offered[kind]}}}


def commands(agent: LabAgent, session: str, *, since: int = 0) -> list[JsonObject] | None:
    """The advertised commands, None when none are said within two seconds."""
    try:
        update = agent.wait_update(session, "available_commands_update", since=since, seconds=2.0)
    except EditorError:
        return None
    return as_list(update.get("availableCommands"))


def gone(pids: Iterable[int], agent: LabAgent, *, seconds: float) -> set[int]:
    """Wait for these children of the agent to end; returns those alive after `seconds`."""
    wanted, deadline = set(pids), time.monotonic() + seconds
    while (alive := agent.children() & wanted) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)  # children of the agent, not ours to wait for
    return alive
