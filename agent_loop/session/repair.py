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
_LOST = (
    "Error: the record of this tool call was damaged. Its outcome is unknown: it may or may not have taken effect. "
    "Look at the present state before you repeat it."
)


class CrashFold:
    """What repair needs to know of a log: the open turn and what the open step asked, started and answered."""

    __slots__ = ("_allowed", "_asked", "_named", "_step", "_turn")

    def __init__(self) -> None:
        self._turn: int | None = None
        self._step: int | None = None
        # the calls of the open step by id: those of its message, and any that was logged without one
        self._asked: dict[str, Block] = {}
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
                self._asked.clear()
                for ids in (self._allowed, *self._named.values()):
                    ids.clear()
            case "step/end":
                self._step = None
            case "assistant/message":
                self._asked.update((block["id"], block) for block in data["content"] if block["type"] == "tool-call")
            case "tool/call":
                self._named["tool/call"].add(data["callId"])
                self._asked.setdefault(data["callId"], data)
            case "tool/result" | "permission/request":
                self._named[event.type].add(data["callId"])
            case "permission/decision":
                self._allowed.update([data["callId"]] if data["outcome"] == "allow" else [])
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
        return [*self.close_step(), ("turn/end", {"turn": self._turn, "reason": {"kind": "interrupted"}})]

    def close_step(self, *, lines_lost: bool = False) -> list[tuple[str, JsonObject]]:
        """The events that close the open step: empty when none is open.

        `lines_lost`: of this step there was more than what was fed; so that a call which was never seen may have run.
        """
        answers = self.answers(lines_lost=lines_lost)
        return answers if self._step is None else [*answers, ("step/end", self._place())]

    def answers(self, *, lines_lost: bool = False) -> list[tuple[str, JsonObject]]:
        """The events that answer the open step's unanswered calls, in the order in which they were asked for."""
        if self._step is None:
            return []
        answered = self._named["tool/result"]
        return [
            event
            for call_id in self._asked
            if call_id not in answered
            for event in (*self.lost_call(call_id), self._answer(call_id, lines_lost=lines_lost))
        ]

    def lost_call(self, call_id: str) -> list[tuple[str, JsonObject]]:
        """The `tool/call` that the open step's message asks for and that was never logged; empty when there is none."""
        block = self._asked.get(call_id)
        if block is None or call_id in self._named["tool/call"]:
            return []
        call = {"callId": call_id, "name": block["name"], "arguments": block["arguments"]}
        return [("tool/call", {**self._place(), **call})]

    def _place(self) -> JsonObject:
        return {"turn": self._turn, "step": self._step}

    def _answer(self, call_id: str, *, lines_lost: bool) -> tuple[str, JsonObject]:
        started = call_id in self._named["tool/call"]
        if call_id in self._named["permission/request"] and call_id not in self._allowed:
            started = False
        unknown = started or lines_lost
        text = _LOST if lines_lost else _UNKNOWN_OUTCOME if started else _NOT_STARTED
        return (
            "tool/result",
            {
                **self._place(),
                "callId": call_id,
                "content": [text_block(text)],
                "isError": True,
                "error": {
                    "name": "InterruptedError",
                    "code": "tool-outcome-unknown" if unknown else "tool-not-started",
                },
            },
        )
