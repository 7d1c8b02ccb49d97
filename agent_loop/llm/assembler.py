"""Stream chunks in, blocks out (contract llm.md §3).

May not know: providers, sessions, time. Invariant: pure state over chunks; whatever order or damage they come in, a
known chunk never raises, and there is at most one block per index, in first-seen order.
"""

from typing import assert_never

from agent_loop.vocabulary import Block, FinishReason, Message, StreamChunk, Usage


class _Slot:
    """One index: its type, what its deltas brought so far, and the block that closed it."""

    __slots__ = ("block_type", "call_id", "closed", "name", "parts")

    def __init__(self, block_type: str) -> None:
        self.block_type = block_type
        self.parts: list[str] = []
        self.call_id = ""
        self.name = ""
        self.closed: Block | None = None

    def block(self, index: int) -> Block:
        """The authoritative block when closed, else what the deltas add up to."""
        if self.closed is not None:
            return self.closed
        text = "".join(self.parts)
        if self.block_type == "tool-call":
            return {"type": "tool-call", "id": self.call_id or f"call-{index}", "name": self.name, "arguments": text}
        return {"type": self.block_type, "text": text}


class BlockAssembler:
    """Assembles one model answer. Feed it every chunk with `add`; read it at any time.

    `usage` is the last one reported (None: none yet), `finish` the last reason (`stop` until one came).
    """

    __slots__ = ("_flushed", "_slots", "finish", "usage")

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}
        self._flushed = 0
        self.usage: Usage | None = None
        self.finish: FinishReason = {"kind": "stop"}

    def add(self, chunk: StreamChunk) -> None:
        """Take one chunk. O(1). A type outside the closed union raises `AssertionError`."""
        if chunk["type"] == "text-delta":
            self._append(chunk["index"], "text", chunk["text"])
        elif chunk["type"] == "reasoning-delta":
            self._append(chunk["index"], "reasoning", chunk["text"])
        elif chunk["type"] == "tool-call-delta":
            slot = self._append(chunk["index"], "tool-call", chunk["argumentsDelta"])
            if slot is not None:
                slot.call_id = chunk["id"] or slot.call_id
                slot.name = chunk.get("name") or slot.name
        elif chunk["type"] == "block-start":
            self._slot(chunk["index"], chunk["blockType"])
        elif chunk["type"] == "block-end":
            slot = self._slot(chunk["index"], chunk["block"]["type"])
            if slot.closed is None:
                slot.closed = chunk["block"]
        elif chunk["type"] == "usage":
            self.usage = chunk["usage"]
        elif chunk["type"] == "finish":
            self.finish = chunk["reason"]
        else:
            assert_never(chunk)

    def blocks(self) -> list[Block]:
        """Every block seen so far, closed or not, in first-seen order. Repeatable."""
        return [slot.block(index) for index, slot in self._slots.items()]

    def message(self) -> Message:
        """The assistant message of `blocks()`. Repeatable."""
        return {"role": "assistant", "content": self.blocks()}

    def flush_ready(self) -> list[Block]:
        """Once each: the closed blocks that no open block precedes."""
        ready: list[Block] = []
        for slot in list(self._slots.values())[self._flushed :]:
            if slot.closed is None:
                break
            ready.append(slot.closed)
        self._flushed += len(ready)
        return ready

    def flush_remaining(self) -> list[Block]:
        """Once each: everything that `flush_ready` has not given; the two together equal `blocks()`."""
        remaining = self.blocks()[self._flushed :]
        self._flushed += len(remaining)
        return remaining

    def _slot(self, index: int, block_type: str) -> _Slot:
        slot = self._slots.get(index)
        if slot is None:
            slot = self._slots[index] = _Slot(block_type)
        return slot

    def _append(self, index: int, block_type: str, text: str) -> _Slot | None:
        # a straggler after the close and a delta of another type than its block are both ignored
        slot = self._slot(index, block_type)
        if slot.closed is not None or slot.block_type != block_type:
            return None
        slot.parts.append(text)
        return slot
