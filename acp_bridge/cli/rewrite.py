"""Replaces parts of the texts of a log: secrets on the way out, paths on the way in.

May not know: what is looked for. Invariants: the events stay the same in number, order and shape; what is looked for
is found also where it is split over the deltas of a message, and then nothing of it stays in any of them. Memory: the
deltas of one model call, or, of a long one, its last thousands.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

from agent_loop.session.events import NESTED_TYPES, SessionEvent, SessionHeader, make_event

LONGEST: Final = 16 * 1024
"""Characters: nothing that is looked for is longer."""
HELD_EVENTS: Final = 8192

_TEXT_FIELDS: Final = {"text-delta": "text", "reasoning-delta": "text", "tool-call-delta": "argumentsDelta"}


class Edit(NamedTuple):
    """`text[start:stop]` becomes `new`; `what` is how it is counted."""

    start: int
    stop: int
    new: str
    what: str


FindEdits = Callable[[str], Iterable[Edit]]
"""The edits of a text, from the left, none overlapping another, none empty."""

_Stream = tuple[int, str]  # index and type: the deltas that are one text


@dataclass(frozen=True, slots=True)
class _Delta:
    event: SessionEvent
    stream: _Stream
    text: str


class Rewriter:
    """`feed` every event in order and take those that are done; `finish` at the end. `counts`: edits by `what`."""

    def __init__(self, find: FindEdits, *, held_events: int = HELD_EVENTS, longest: int = LONGEST) -> None:
        self.counts: Counter[str] = Counter()
        self._find = find
        self._longest = longest
        self._held: list[SessionEvent | _Delta] = []
        self._limit = self._held_events = held_events
        self._ended: set[int] = set()  # the blocks of the held call to which nothing is added any more

    def text(self, text: str) -> str:
        """A text that stands alone."""
        edits = tuple(self._find(text))
        return self._apply([text], edits)[0] if edits else text

    def json(self, value: Any) -> Any:
        """A JSON value with every text in it rewritten, keys too."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return {self.text(key): self.json(item) for key, item in cast("dict[str, Any]", value).items()}
        if type(value) is list:
            return [self.json(item) for item in cast("list[Any]", value)]
        return value

    def header(self, header: SessionHeader) -> SessionHeader:
        """The header with its working directory rewritten."""
        return header if header.cwd is None else replace(header, cwd=self.text(header.cwd))

    def feed(self, event: SessionEvent) -> list[SessionEvent]:
        """What is done after `event`."""
        if event.type == "assistant/chunk":
            chunk: dict[str, Any] = event.data["chunk"]
            field = _TEXT_FIELDS.get(chunk["type"])
            if field is not None:
                self._held.append(_Delta(event, (chunk["index"], chunk["type"]), chunk[field]))
                return self._overflow() if len(self._held) >= self._limit else []
            if chunk["type"] == "block-end":
                self._ended.add(chunk["index"])
        if not self._held:
            return [self._whole(event)]
        self._held.append(event)
        # what is no part of the call may come in the middle of a word of it
        return self.finish() if event.type in NESTED_TYPES and event.type != "assistant/chunk" else []

    def finish(self) -> list[SessionEvent]:
        """The call is over: all that is held."""
        return self._release(len(self._held))

    def _overflow(self) -> list[SessionEvent]:
        """All but what a text that is looked for may still begin in."""
        end = len(self._held)
        covers: list[tuple[int, int]] = []  # of each edit: the first and the last delta
        for stream, places in self._streams(end).items():
            sizes = [len(self._delta(place).text) for place in places]
            covers += ((places[first], places[last]) for first, last in _covered(sizes, self._edits(places)))
            if stream[0] not in self._ended:
                rest = 0
                while sizes and rest < self._longest:
                    rest += sizes.pop()
                end = min(end, places[len(sizes)])
        for first, last in sorted(covers, reverse=True):
            if first < end <= last:
                end = first
        ready = self._release(end)
        # nothing may be ready: a block that stands still; it is not looked at again for every event
        self._limit = max(self._held_events, 2 * len(self._held))
        return ready

    def _release(self, end: int) -> list[SessionEvent]:
        texts: dict[int, str] = {}
        for places in self._streams(end).values():
            if edits := self._edits(places):
                rewritten = self._apply([self._delta(place).text for place in places], edits)
                texts.update(zip(places, rewritten, strict=True))
        ready = [
            self._rewritten(item, texts.get(place, item.text)) if isinstance(item, _Delta) else self._whole(item)
            for place, item in enumerate(self._held[:end])
        ]
        del self._held[:end]
        if not self._held:
            self._ended.clear()
            self._limit = self._held_events
        return ready

    def _streams(self, end: int) -> dict[_Stream, list[int]]:
        """Where among the first `end` held events the deltas of each text are."""
        streams: dict[_Stream, list[int]] = {}
        for place, item in enumerate(self._held[:end]):
            if isinstance(item, _Delta):
                streams.setdefault(item.stream, []).append(place)
        return streams

    def _delta(self, place: int) -> _Delta:
        return cast("_Delta", self._held[place])

    def _edits(self, places: Sequence[int]) -> tuple[Edit, ...]:
        return tuple(self._find("".join(self._delta(place).text for place in places)))

    def _apply(self, pieces: Sequence[str], edits: Sequence[Edit]) -> list[str]:
        self.counts.update(edit.what for edit in edits)
        return list(_spread(pieces, edits))

    def _rewritten(self, delta: _Delta, text: str) -> SessionEvent:
        event = delta.event
        chunk: dict[str, Any] = event.data["chunk"]
        fields = {_TEXT_FIELDS[chunk["type"]]: text}
        fields |= {name: self.text(chunk[name]) for name in ("id", "name") if name in chunk}
        if all(chunk[name] == value for name, value in fields.items()):
            return event
        return make_event(event.type, event.seq, event.time, {**event.data, "chunk": {**chunk, **fields}})

    def _whole(self, event: SessionEvent) -> SessionEvent:
        return make_event(event.type, event.seq, event.time, self.json(event.data))


def _spread(pieces: Sequence[str], edits: Sequence[Edit]) -> Iterator[str]:
    """The pieces of a text after the edits of the whole: what is new stands where it begins."""
    at = number = 0
    for piece in pieces:
        end = at + len(piece)
        position, parts = at, list[str]()
        while number < len(edits) and edits[number].start < end:
            edit = edits[number]
            if edit.start >= at:
                parts += (piece[position - at : edit.start - at], edit.new)
            position = min(edit.stop, end)
            if edit.stop > end:
                break
            number += 1
        yield "".join((*parts, piece[position - at :]))
        at = end


def _covered(sizes: Sequence[int], edits: Sequence[Edit]) -> Iterator[tuple[int, int]]:
    """The first and the last piece of each edit."""
    piece = at = 0
    for edit in edits:
        while at + sizes[piece] <= edit.start:
            at += sizes[piece]
            piece += 1
        last, end = piece, at + sizes[piece]
        while end < edit.stop:
            last += 1
            end += sizes[last]
        yield piece, last
