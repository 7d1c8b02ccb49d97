"""Tool-call ids, made unique in the session (contract agent-loop.md §3 "Call ids").

May not know: providers, the log. Invariant: an id of this step is unlike every id of earlier steps and of the step's
other calls; the first use of an id is verbatim, a repeat becomes `<id>#<turn>.<step>` wherever it appears.
"""

from collections.abc import Set as AbstractSet
from itertools import count

from agent_loop.vocabulary import Block, StreamChunk


class CallIds:
    """The ids of one step. `used` are those of the steps before; it is only read."""

    def __init__(self, used: AbstractSet[str], *, turn: int, step: int) -> None:
        self._used = used
        self._suffix = f"#{turn}.{step}"
        self._taken: set[str] = set()
        self._given: dict[tuple[int, str], str] = {}

    def in_chunk(self, chunk: StreamChunk) -> StreamChunk:
        """The chunk itself, or a copy with a unique id. O(1); a blank id stays (the assembler names such a call)."""
        if chunk["type"] == "tool-call-delta":
            unique = self._for_block(chunk["index"], chunk["id"])
            return chunk if unique == chunk["id"] else {**chunk, "id": unique}
        if chunk["type"] == "block-end" and chunk["block"]["type"] == "tool-call":
            block = chunk["block"]
            unique = self._for_block(chunk["index"], block["id"])
            return chunk if unique == block["id"] else {**chunk, "block": {**block, "id": unique}}
        return chunk

    def in_message(self, blocks: list[Block]) -> list[Block]:
        """The blocks with the ids that no chunk carried (or that a layer made up) unique as well."""
        own = self._taken.copy()
        result: list[Block] = []
        for block in blocks:
            if block["type"] != "tool-call":
                result.append(block)
            elif block["id"] in own:
                own.discard(block["id"])
                result.append(block)
            else:
                result.append({**block, "id": self._take(block["id"])})
        return result

    def _for_block(self, index: int, call_id: str) -> str:
        if not call_id:
            return call_id
        key = (index, call_id)
        if key not in self._given:
            self._given[key] = self._take(call_id)
        return self._given[key]

    def _take(self, call_id: str) -> str:
        unique = call_id
        numbers = count(2)
        while unique in self._used or unique in self._taken:
            repeat = call_id + self._suffix
            unique = repeat if unique == call_id else f"{repeat}.{next(numbers)}"
        self._taken.add(unique)
        return unique
