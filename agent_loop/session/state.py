"""Everything a live session knows of its log, as one fold (contracts session-log.md §4–§6, agent-loop.md §3).

May not know: where the events come from: an append, a seed, a file. Invariant: `feed` accepts exactly the events that
may follow, in constant time, and a refused event changes nothing.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, assert_never

from agent_loop.session.derive import History
from agent_loop.session.events import KnownEvent, SessionEvent, make_event
from agent_loop.session.json_check import InvalidEventError
from agent_loop.session.nesting import Nesting
from agent_loop.session.shapes import shape_fault
from agent_loop.session.spending import Spent, add_usage
from agent_loop.vocabulary import CONTEXT_TOKENS, JsonObject, Usage


@dataclass(frozen=True, slots=True)
class RequestParts:
    """The optional parts of the last `request/header`, each as it was last logged; None = never."""

    system: str | None = None
    tools: list[JsonObject] | None = None
    parameters: JsonObject | None = None


class LogState:
    """The folds of one log. `next_seq` = how many events were fed, `last_time` = epoch ms of the last.

    `config` is what was last chosen of each option; `spent` the tokens of all calls by (provider, model).
    `first_seqs`: where each known type stands first, chunks apart: who reads a log for rare events begins there.

    `history` is None while nobody has asked for that of a stored log: it holds every text of the conversation.
    """

    __slots__ = (
        "_call_ids",
        "_model",
        "_streamed_ids",
        "compacted_turn",
        "config",
        "context_size",
        "first_seqs",
        "history",
        "last_request",
        "last_time",
        "last_usage",
        "mode",
        "nesting",
        "next_seq",
        "refused",
        "spent",
        "title",
    )

    def __init__(self, history: History | None) -> None:
        self.history = history
        self.nesting = Nesting()
        self.next_seq = 0
        self.last_time = 0
        self.mode: str | None = None
        self.config: dict[str, Any] = {}
        self.spent: Spent = {}
        self._model = ("", "")
        self.title: str | None = None
        self.refused: frozenset[int] = frozenset()
        self.last_usage: Usage | None = None
        self.context_size: int | None = None
        self.compacted_turn: int | None = None
        self.last_request = RequestParts()
        self.first_seqs: dict[str, int] = {}
        self._call_ids: set[str] = set()
        self._streamed_ids: set[str] = set()

    def admit(self, event_type: str, data: Any, *, time: int) -> SessionEvent:
        """The event that comes next, fed. Raises `InvalidEventError` (its fields) or `NestingError` (its place)."""
        fault = shape_fault(event_type, data)
        if fault is not None:
            raise InvalidEventError(event_type, fault)
        self.nesting.check(event_type, data)
        event = make_event(event_type, self.next_seq, time, data)
        self.feed(event)
        return event

    def feed(self, event: SessionEvent) -> None:  # noqa: C901, PLR0912 - one arm per event kind
        """Take the next event of a log that was checked already."""
        self.next_seq = event.seq + 1
        self.last_time = event.time
        if not isinstance(event, KnownEvent):
            return
        data = event.data
        if event.type == "assistant/chunk":
            # most events are chunks, and of these only the ids of calls are kept
            chunk = data["chunk"]
            if chunk["type"] == "tool-call-delta":
                self._streamed_ids.add(chunk["id"])
            return
        self.first_seqs.setdefault(event.type, event.seq)
        self.nesting.apply(event.type, data)
        if self.history is not None:
            self.history.feed(event)
        match event.type:
            case "tool/call":
                self._call_ids.add(data["callId"])
            case "step/end":
                self._call_ids |= self._streamed_ids
                self._streamed_ids.clear()
            case "assistant/message":
                self._note_usage(data.get("usage"))
            case "history/compacted":
                self.context_size, self.compacted_turn = None, self.nesting.open_turn
            case "mode/change":
                self.mode = data["modeId"]
            case "config/change":
                self.config[data["configId"]] = data.get("value")
            case "session/title":
                self.title = data["title"]
            case "request/header":
                self._model = (data["provider"], data["model"])
                parts = self.last_request
                self.last_request = RequestParts(
                    data.get("system", parts.system),
                    data.get("tools", parts.tools),
                    data.get("parameters", parts.parameters),
                )
            case "turn/end":
                if data["reason"].get("kind") == "refusal":
                    self.refused |= {data["turn"]}
            case (
                "turn/start"
                | "step/start"
                | "user/message"
                | "context/message"
                | "steering/message"
                | "tool/result"
                | "permission/request"
                | "permission/decision"
                | "command/run"
                | "command/done"
                | "session/notice"
                | "plan/update"
                | "llm/retry"
                | "loop/change"
            ):
                return
            case _:
                assert_never(event.type)

    def _note_usage(self, usage: Usage | None) -> None:
        if usage is not None:
            self.last_usage = usage
            self.spent = add_usage(self.spent, self._model, usage)
            self.context_size = sum(usage.get(key, 0) for key in CONTEXT_TOKENS)

    def call_ids(self) -> AbstractSet[str]:
        """The ids of all tool calls of the log.

        Those that were only streamed (their step failed before it called) join at `step/end`: within a step the set
        grows by logged calls alone, so that a call is no repeat of its own chunks.
        """
        return self._call_ids
