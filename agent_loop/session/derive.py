"""The model's history, derived from the log (contract session-log.md §6).

May not know: files, providers, editors. Invariant: pure and deterministic — the same events give the same messages,
fed at once or one by one — and decoupled: no message shares a list or an object with an event.
"""

from collections.abc import Iterable
from typing import NamedTuple, assert_never

from agent_loop.session.events import KnownEvent, SessionEvent
from agent_loop.session.json_check import copy_json
from agent_loop.vocabulary import Block, JsonObject, Message, text_block


class Entry(NamedTuple):
    """A message of the history and the event that it is of. `prompt`: somebody said it, so that a turn begins there."""

    seq: int
    message: Message
    prompt: bool = False


class History:
    """The incremental fold: O(1) per event, O(what goes) for a refusal, O(history) for a compaction."""

    __slots__ = ("_entries", "_turn_start")

    def __init__(self) -> None:
        self._entries: list[Entry] = []  # ascending
        self._turn_start = 0  # the seq of the last turn/start

    def feed(self, event: SessionEvent) -> None:
        """Take the next event of the log."""
        if not isinstance(event, KnownEvent):
            return
        if event.type == "turn/start":
            self._turn_start = event.seq
        elif event.type == "turn/end":
            if event.data["reason"].get("kind") == "refusal":
                self._forget_from(self._turn_start)
        elif event.type == "history/compacted":
            self._compact(event.data["fromSeq"], event.data["toSeq"], event.data["summary"])
        else:
            message = _message(event)
            if message is not None:
                self._entries.append(Entry(event.seq, message, event.type == "user/message"))

    def messages(self) -> list[Message]:
        """A new list of the messages so far; the messages in it are shared with later calls: do not change them."""
        return [entry.message for entry in self._entries]

    def entries(self) -> list[Entry]:
        """The messages with their places in the log."""
        return [*self._entries]

    def _forget_from(self, seq: int) -> None:
        while self._entries and self._entries[-1].seq >= seq:
            self._entries.pop()

    def _compact(self, first: int, last: int, summary: str) -> None:
        before = [entry for entry in self._entries if entry.seq < first]
        after = [entry for entry in self._entries if entry.seq > last]
        # it stands where its range began: a later compaction can swallow it in turn, and the refusal of a turn that was
        # summarised while it ran does not take along what was said before that turn
        self._entries = [*before, Entry(first, _context("compaction", [text_block(summary)])), *after]


def derive_messages(events: Iterable[SessionEvent]) -> list[Message]:
    """The history of a whole log."""
    history = History()
    for event in events:
        history.feed(event)
    return history.messages()


def _message(event: KnownEvent) -> Message | None:
    data = event.data
    match event.type:
        case "user/message":
            return {"role": "user", "content": copy_json(data["content"])}
        case "assistant/message":
            return {"role": "assistant", "content": copy_json(data["content"])} if data["content"] else None
        case "tool/result":
            return {"role": "user", "content": [_result_block(data)]}
        case "context/message" | "steering/message":
            return _context(str(data["source"].get("kind", "unknown")), data["content"])
        case (
            "turn/start"
            | "turn/end"
            | "step/start"
            | "step/end"
            | "assistant/chunk"
            | "tool/call"
            | "request/header"
            | "permission/request"
            | "permission/decision"
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
        ):
            return None
        case _:
            assert_never(event.type)


def _result_block(data: JsonObject) -> Block:
    block: Block = {"type": "tool-result", "toolCallId": data["callId"], "content": copy_json(data["content"])}
    if data["isError"]:
        block["isError"] = True
    return block


def _context(kind: str, content: list[Block]) -> Message:
    opening, closing = text_block(f"<context source={kind}>"), text_block("</context>")
    return {"role": "user", "content": [opening, *copy_json(content), closing]}
