"""How the log of a crashed process is closed (contract session-log.md §8): a pure function of its events.

May not know: files, processes. Invariant: only ever adds events; with no turn open it adds none, so a repaired log
needs no repair. The fold holds one step at most.
"""

from typing import assert_never

from agent_loop.session.events import KnownEvent, SessionEvent
from agent_loop.vocabulary import Block, JsonObject, text_block

_NOT_STARTED = "Error: the agent was interrupted before this tool call was started. It did not run."
_UNKNOWN_OUTCOME = (
    "Error: the agent was interrupted while this tool call was running. Its outcome is unknown: it may or may not have "
    "taken effect. Look at the present state before you repeat it."
)


class CrashFold:
    """What repair needs to know of a log: the open turn and what the open step asked, started and answered."""

    __slots__ = ("_allowed", "_asked", "_named", "_step", "_turn")

    def __init__(self) -> None:
        self._turn: int | None = None
        self._step: int | None = None
        self._asked: list[Block] = []
        self._allowed: set[str] = set()
        # which call ids the events of each of these types named in the open step
        self._named: dict[str, set[str]] = {"tool/call": set(), "tool/result": set(), "permission/request": set()}

    def feed(self, event: SessionEvent) -> None:
        """Take the next event of the log."""
        if not isinstance(event, KnownEvent):
            return
        data = event.data
        match event.type:
            case "turn/start":
                self._turn = data["turn"]
            case "turn/end":
                self._turn = None
            case "step/start":
                self._step = data["step"]
                self._asked = []
                for ids in (self._allowed, *self._named.values()):
                    ids.clear()
            case "step/end":
                self._step = None
            case "assistant/message":
                self._asked = [block for block in data["content"] if block["type"] == "tool-call"]
            case "tool/call" | "tool/result" | "permission/request":
                self._named[event.type].add(data["callId"])
            case "permission/decision":
                if data["outcome"] == "allow":
                    self._allowed.add(data["callId"])
            case (
                "user/message"
                | "context/message"
                | "steering/message"
                | "request/header"
                | "command/run"
                | "command/done"
                | "session/title"
                | "session/notice"
                | "plan/update"
                | "mode/change"
                | "config/change"
                | "llm/retry"
                | "history/compacted"
                | "loop/change"
                | "assistant/chunk"
            ):
                return
            case _:
                assert_never(event.type)

    def repair(self) -> list[tuple[str, JsonObject]]:
        """The events, as (type, data), that close the log in order; empty when no turn is open."""
        if self._turn is None:
            return []
        closing: list[tuple[str, JsonObject]] = []
        if self._step is not None:
            at: JsonObject = {"turn": self._turn, "step": self._step}
            for block in self._asked:
                if block["id"] not in self._named["tool/result"]:
                    closing += self._answer(at, block)
            closing.append(("step/end", dict(at)))
        closing.append(("turn/end", {"turn": self._turn, "reason": {"kind": "interrupted"}}))
        return closing

    def _answer(self, at: JsonObject, block: Block) -> list[tuple[str, JsonObject]]:
        call_id = block["id"]
        answer: list[tuple[str, JsonObject]] = []
        started = call_id in self._named["tool/call"]
        if not started:
            call = {"callId": call_id, "name": block["name"], "arguments": block["arguments"]}
            answer.append(("tool/call", {**at, **call}))
        if call_id in self._named["permission/request"] and call_id not in self._allowed:
            started = False
        result: JsonObject = {
            "callId": call_id,
            "content": [text_block(_UNKNOWN_OUTCOME if started else _NOT_STARTED)],
            "isError": True,
            "error": {
                "name": "InterruptedError",
                "code": "tool-outcome-unknown" if started else "tool-not-started",
            },
        }
        answer.append(("tool/result", {**at, **result}))
        return answer
