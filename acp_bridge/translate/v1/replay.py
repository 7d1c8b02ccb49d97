"""The transcript of a stored session (acp.md §2 `session/load`, §3).

May not know: where the events come from. Invariant: pure; it feeds the same renderer as the live path, then joins the
chunks of one message; what it shows equals what was shown, up to that joining.
"""

from collections.abc import Container
from typing import Any

from acp_bridge.translate.v1.cards import Update, cut
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import NESTED_TYPES, KnownEvent, SessionEvent
from agent_loop.tools.files.diffs import changes_of
from agent_loop.vocabulary import Block

JOINED_LIMIT = 32 * 1024
"""Characters of one joined chunk frame."""
OUTPUT_LIMIT = 32 * 1024
"""Characters of a call's output that are shown whole on load; of more a summary: head, note, tail; of diffs, hunks."""
SUMMARY = 4 * 1024
"""Characters that a summary keeps: a thousand calls with long output stay below 8 MiB of frames."""

_JOINED = frozenset({"agent_message_chunk", "agent_thought_chunk", "compaction_summary_chunk"})


class Replay:
    """Feed every event in order; take what comes out; `finish` at the end.

    `refused`: the numbers of the turns that the model refused; of those only what is not part of the conversation is
    shown (titles, modes, commands). Memory: one joined chunk, whatever the length of a turn.
    """

    def __init__(self, renderer: UpdateRenderer, refused: Container[int] = ()) -> None:
        self._renderer = renderer
        self._refused = refused
        self._skipping = False
        self._growing: Update | None = None  # the last chunk, while it can still grow, with its texts
        self._texts: list[str] = []
        self._size = 0

    def feed(self, event: SessionEvent) -> list[Update]:
        """The updates that are ready after `event`."""
        if event.type == "turn/start":
            self._skipping = event.data["turn"] in self._refused
        if self._skipping and event.type in NESTED_TYPES:
            return []
        ready: list[Update] = []
        for update in self._renderer.render(_summarised(event)):
            self._add(update, ready)
        return ready

    def finish(self) -> list[Update]:
        """What can grow no more, and the usage."""
        return [*self._settled(), *self._renderer.usage()]

    def _add(self, update: Update, ready: list[Update]) -> None:
        if update["sessionUpdate"] not in _JOINED:
            ready += [*self._settled(), update]
            return
        text: str = update["content"]["text"]
        if self._grows(update) and self._size + len(text) <= JOINED_LIMIT:
            self._texts.append(text)
            self._size += len(text)
            return
        ready += self._settled()
        self._growing, self._texts, self._size = update, [text], len(text)

    def _grows(self, update: Update) -> bool:
        last = self._growing
        names = ("sessionUpdate", "messageId", "compactionId")
        return last is not None and all(last.get(name) == update.get(name) for name in names)

    def _settled(self) -> list[Update]:
        last, self._growing = self._growing, None
        return [] if last is None else [{**last, "content": {"type": "text", "text": "".join(self._texts)}}]


def _summarised(event: SessionEvent) -> SessionEvent:
    if not isinstance(event, KnownEvent):
        return event
    if event.type == "tool/result":
        return _short_result(_short_diffs(event, "meta"))
    return _short_diffs(event, "preview") if event.type == "permission/request" else event


def _short_diffs(event: KnownEvent, key: str) -> KnownEvent:
    """The diffs under `key` as hunks when their texts are long."""
    facts: dict[str, Any] = event.data.get(key) or {}
    diffs: list[dict[str, Any]] = facts.get("diffs", [])
    if sum(len(diff["oldText"] or "") + len(diff["newText"]) for diff in diffs) <= OUTPUT_LIMIT:
        return event
    hunks = [
        hunk
        for diff in diffs
        for hunk in changes_of(
            diff["path"], diff["oldText"], diff["newText"], whole=0, room=OUTPUT_LIMIT // len(diffs)
        ).diffs
    ]
    return KnownEvent(event.type, event.seq, event.time, {**event.data, key: {**facts, "diffs": hunks}})


def _short_result(event: KnownEvent) -> KnownEvent:
    data = event.data
    meta: dict[str, Any] = data.get("meta") or {}
    output: object = meta.get("output")
    texts = (output, *(block.get("text") for block in data["content"]))
    if all(len(text) <= OUTPUT_LIMIT for text in texts if isinstance(text, str)):
        return event
    shortened: dict[str, Any] = {**data, "content": [_short(block) for block in data["content"]]}
    if isinstance(output, str):
        shortened["meta"] = {**meta, "output": _short_output(output, meta.get("outputDropped", 0))}
    return KnownEvent(event.type, event.seq, event.time, shortened)


def _short_output(output: str, dropped: int) -> str:
    """Stored terminal output as head, note, tail; the note counts what was not stored, too."""
    if len(output) <= SUMMARY:
        return output
    half = SUMMARY // 2
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
    return {**block, "text": cut(text, SUMMARY)} if isinstance(text, str) else block
