"""What is true of every log after a crash, once it was loaded (contract session-log.md §8)."""

from agent_loop.llm.history import normalise
from agent_loop.session.derive import derive_messages
from agent_loop.session.events import SessionEvent
from agent_loop.session.nesting import Nesting
from agent_loop.session.shapes import shape_fault
from agent_loop.vocabulary import Message, text_block

NEXT_PROMPT: Message = {"role": "user", "content": [text_block("go on")]}


def assert_well_formed(events: list[SessionEvent]) -> Nesting:
    """The numbers have no gap, every event has its fields and its place. Returns what is open at the end."""
    nesting = Nesting()
    for seq, event in enumerate(events):
        assert event.seq == seq
        assert shape_fault(event.type, event.data) is None
        nesting.check(event.type, event.data)
        nesting.apply(event.type, event.data)
    return nesting


def unanswered(events: list[SessionEvent]) -> list[str]:
    """The calls that a message asked for, or that were logged, and that have no result."""
    asked: list[str] = []
    for event in events:
        if event.type == "assistant/message":
            asked += [block["id"] for block in event.data["content"] if block["type"] == "tool-call"]
        elif event.type == "tool/call":
            asked.append(event.data["callId"])
    answered = {event.data["callId"] for event in events if event.type == "tool/result"}
    return [call_id for call_id in asked if call_id not in answered]


def assert_repaired(events: list[SessionEvent]) -> None:
    """Nothing is open, every call has its answer, and a provider takes the history with the next prompt as it is."""
    nesting = assert_well_formed(events)
    assert nesting.open_turn is None
    assert unanswered(events) == []
    history = [*derive_messages(events), NEXT_PROMPT]
    assert normalise(history, reasoning="echo", merge_users=False) == history
    nesting.check("turn/start", {"turn": nesting.last_turn + 1})
