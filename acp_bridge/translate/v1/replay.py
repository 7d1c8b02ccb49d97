"""The transcript of a stored session (acp.md §2 `session/load`, §3).

May not know: where the events come from. Invariant: pure; it feeds the same renderer as the live path, then joins the
chunks of one message; what it shows equals what was shown, up to that joining.
"""

from typing import Any

from acp_bridge.translate.v1.cards import Update, cut
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import KnownEvent, SessionEvent
from agent_loop.vocabulary import Block

JOINED_LIMIT = 32 * 1024
"""Characters of one joined chunk frame."""
OUTPUT_LIMIT = 32 * 1024
"""Characters of one call's output on load; more is summarised as head, note, tail."""

_JOINED = frozenset({"agent_message_chunk", "agent_thought_chunk"})


class Replay:
    """Feed every event in order; take what comes out; `finish` at the end.

    The updates of a turn are held until its end: a refused turn is not replayed.
    """

    def __init__(self, renderer: UpdateRenderer) -> None:
        self._renderer = renderer
        self._held: list[Update] = []
        self._texts: list[str] = []  # of the last held update, while it can still grow
        self._size = 0
        self._in_turn = False

    def feed(self, event: SessionEvent) -> list[Update]:
        """The updates that are ready after `event`."""
        for update in self._renderer.render(_summarised(event)):
            self._hold(update)
        if event.type == "turn/start":
            # what stood before the turn is settled, whatever becomes of it
            ready, self._in_turn = self._take(), True
            return ready
        if event.type == "turn/end":
            self._in_turn = False
            if event.data["reason"]["kind"] == "refusal":
                self._held, self._texts = [], []
            return self._take()
        return [] if self._in_turn else self._take()

    def finish(self) -> list[Update]:
        """What is still held (a turn that goes on), and the usage."""
        return [*self._take(), *self._renderer.usage()]

    def _take(self) -> list[Update]:
        self._settle()
        held, self._held = self._held, []
        return held

    def _hold(self, update: Update) -> None:
        joinable = update["sessionUpdate"] in _JOINED
        text: str = update["content"]["text"] if joinable else ""
        if self._texts:
            last = self._held[-1]
            same = joinable and (last["sessionUpdate"], last["messageId"]) == (
                update["sessionUpdate"],
                update["messageId"],
            )
            if same and self._size + len(text) <= JOINED_LIMIT:
                self._texts.append(text)
                self._size += len(text)
                return
        self._settle()
        self._held.append(update)
        if joinable:
            self._texts, self._size = [text], len(text)

    def _settle(self) -> None:
        if len(self._texts) > 1:
            self._held[-1] = {**self._held[-1], "content": {"type": "text", "text": "".join(self._texts)}}
        self._texts = []


def _summarised(event: SessionEvent) -> SessionEvent:
    if not isinstance(event, KnownEvent) or event.type != "tool/result":
        return event
    data = event.data
    shortened: dict[str, Any] = {**data, "content": [_short(block) for block in data["content"]]}
    meta: dict[str, Any] | None = data.get("meta")
    if meta and isinstance(meta.get("output"), str):
        shortened["meta"] = {**meta, "output": _short_output(meta["output"], meta.get("outputDropped", 0))}
    return KnownEvent(event.type, event.seq, event.time, shortened)


def _short_output(output: str, dropped: int) -> str:
    """Stored terminal output as head, note, tail; the note counts what was not stored, too."""
    if len(output) <= OUTPUT_LIMIT:
        return output
    half = OUTPUT_LIMIT // 2
    head, note, tail = output.partition(_gap(dropped))
    if not note:
        head, tail = output[:-half], output[-half:]
    left_out = head[half:] + tail[:-half]
    return f"{head[:half]}{_gap(dropped + len(left_out.encode()))}{tail[-half:]}"


def _gap(count: int) -> str:
    # as stored output has it: the reset ends a colour that the cut went through
    return f"\x1b[0m\n[{count} bytes not shown]\n"


def _short(block: Block) -> Block:
    text: object = block.get("text")
    return {**block, "text": cut(text, OUTPUT_LIMIT)} if isinstance(text, str) else block
