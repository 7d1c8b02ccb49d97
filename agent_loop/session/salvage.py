"""What can be kept of a damaged log (contract session-log.md §9): a pure function of its lines.

May not know: files, locks. Invariant: what is kept is a well-formed log — `seq` without gaps, valid nesting, every
tool call answered — and every part of a line that is not kept is handed out with its place. The order in the file is
believed, the numbers are not: a damaged log has lost lines, and its numbers have gaps where those were.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final

from agent_loop.session.codec import Envelope, encode_event
from agent_loop.session.events import make_event
from agent_loop.session.glued import parts_of
from agent_loop.session.migrations import Migration
from agent_loop.session.nesting import Nesting, NestingError
from agent_loop.session.repair import CrashFold
from agent_loop.session.store import Quarantined
from agent_loop.vocabulary import JsonObject

Keep = Callable[[bytes], None]
"""Takes the next line of the new log, its line end included."""
Reject = Callable[[Quarantined, bytes], None]
"""Takes a part of the damaged log that is not in the new one, verbatim; no bytes: all that stood there stays."""

_IN_STEP: Final = frozenset({"assistant/chunk", "assistant/message", "tool/call", "request/header", "llm/retry"})
_UNKNOWN: Final[JsonObject] = {"kind": "unknown"}


class _MisfitError(Exception):
    """An event that cannot stand where it was found; the text says why."""


class LogSalvage:
    """Feed every line behind the header in order, then `finish`; the callbacks take what becomes of them.

    A lost beginning or end of a turn or step is put back when an event tells of it; a result whose call is nowhere
    cannot stay. `kept` counts the events that do, `first_time` is the time of the first (epoch ms), and the first
    `seed_kept` events of the new log stand for the first `seed_length` of the damaged one.
    """

    def __init__(self, keep: Keep, reject: Reject, *, seed_length: int = 0, steps: tuple[Migration, ...] = ()) -> None:
        self._keep = keep
        self._reject = reject
        self._seed_length = seed_length
        self._steps = steps
        self._nesting = Nesting()
        self._crash = CrashFold()
        self._seq = 0
        self._time: int | None = None
        # the numbers that the open turn and step have in the damaged log; None: nothing has told yet
        self._turn: int | None = None
        self._step: int | None = None
        # what the next number may be: behind one that is out of order either way of counting on is right
        self._expected: tuple[int, ...] = (0,)
        # nothing was rejected since the last event that stayed
        self._unbroken = True
        # something that belongs to the open step may be missing
        self._lost = False
        self._seen: set[int] = set()
        # (old seq, new seq) wherever their distance changes, both ascending
        self._moves = [(-1, -1)]
        self.kept = 0
        self.first_time: int | None = None
        self.seed_kept = 0

    def feed(self, line: bytes, number: int, offset: int) -> None:
        """Take line `number` (1-based), which begins at byte `offset`."""
        parts = list(parts_of(line, self._steps))
        if len(parts) > 1 and all(part.event for part in parts):
            self._reject(Quarantined(number, offset, "several records share this line; all of them stay"), b"")
        for at, content, event, fault in parts:
            try:
                if event is None:
                    raise _MisfitError(fault)
                note = self._take(event, content.rstrip(b"\n"))
            except (_MisfitError, NestingError) as misfit:
                self._lost, self._unbroken = True, False
                self._reject(Quarantined(number, offset + at, str(misfit)), content)
            else:
                if note:
                    self._reject(Quarantined(number, offset + at, note), b"")

    def finish(self) -> None:
        """Close what is open, as after a crash."""
        self._close_turn()

    def _take(self, event: Envelope, line: bytes) -> str:
        """Log it; what is to be told about its number. Raises `_MisfitError`, `NestingError`."""
        # no two events are alike to the byte: each has a number of its own
        mark = hash(line)
        if mark in self._seen:
            raise _MisfitError("it repeats an earlier line")
        follows = event.seq in self._expected
        self._lost = self._lost or not follows
        if self._time is None:
            self._time = self.first_time = event.time
        data = self._made_room(event.type, event.data)
        self._nesting.check(event.type, data)
        if event.type == "step/start":
            self._lost = False
        self._seen.add(mark)
        self._note_move(event.seq)
        self._time = event.time
        as_it_was = event.seq == self._seq and data == event.data and not self._steps
        self._add(event.type, data, line=line + b"\n" if as_it_was else None)
        self.kept += 1
        if event.seq < self._seed_length:
            self.seed_kept = self._seq
        note = (
            ""
            if follows or not self._unbroken
            else f"its seq is {event.seq}, {self._expected[0]} was expected; it stays"
        )
        self._expected = (event.seq + 1,) if follows else (event.seq + 1, self._expected[0] + 1)
        self._unbroken = True
        return note

    def _made_room(self, kind: str, data: Any) -> Any:
        """Log what must stand before such an event; its data with the numbers that it has in the new log."""
        if kind in _IN_STEP:
            self._open_step(data["turn"], data["step"])
            return self._renumbered(data)
        match kind:
            case "turn/start":
                return self._start_turn(data)
            case "turn/end":
                if not self._is_open(data["turn"]):
                    raise _MisfitError(f"turn {data['turn']} is not open")
                self._close_step()
            case "step/start":
                return self._start_step(data)
            case "step/end":
                self._require_step(data, f"step {data['step']} of turn {data['turn']} is not open")
                self._log(self._crash.answers(lines_lost=self._lost))
            case "tool/result":
                self._require_step(data, f"its call {data['callId']!r} was lost")
                self._log(self._crash.lost_call(data["callId"]))
            case "user/message" | "context/message":
                if self._nesting.open_turn is None:
                    self._open_turn(None, {"kind": "message", "source": data["source"]})
                return data
            case "steering/message":
                self._open_turn(data["turn"], _UNKNOWN)
            case "history/compacted":
                first, last = self._new_place(data["fromSeq"]), self._new_place(data["toSeq"])
                return data | {"fromSeq": min(first), "toSeq": min(last[0], last[1] - 1)}
            case _:
                return data
        return self._renumbered(data)

    def _start_turn(self, data: JsonObject) -> JsonObject:
        if self._nesting.open_turn is not None and self._turn == data["turn"]:
            raise _MisfitError(f"turn {data['turn']} is open already")
        self._close_turn()
        self._turn, self._step = data["turn"], None
        return data | {"turn": self._nesting.last_turn + 1}

    def _start_step(self, data: JsonObject) -> JsonObject:
        if self._step_is_open(data):
            raise _MisfitError(f"step {data['step']} is open already")
        self._open_turn(data["turn"], _UNKNOWN)
        self._close_step()
        self._step = data["step"]
        return self._renumbered(data) | {"step": self._nesting.last_step + 1}

    def _open_turn(self, name: int | None, trigger: JsonObject) -> None:
        if not self._is_open(name):
            self._close_turn()
            self._log([("turn/start", {"turn": self._nesting.last_turn + 1, "trigger": trigger})])
            self._step = None
        self._turn = name

    def _open_step(self, turn: int, step: int) -> None:
        if not self._step_is_open({"turn": turn, "step": step}):
            self._open_turn(turn, _UNKNOWN)
            self._close_step()
            at = {"turn": self._nesting.open_turn, "step": self._nesting.last_step + 1}
            self._log([("step/start", at)])
            self._step, self._lost = step, True

    def _close_step(self) -> None:
        self._log(self._crash.close_step(lines_lost=self._lost))

    def _close_turn(self) -> None:
        self._close_step()
        self._log(self._crash.repair())

    def _is_open(self, turn: int | None) -> bool:
        return self._nesting.open_turn is not None and self._turn in (None, turn)

    def _step_is_open(self, data: JsonObject) -> bool:
        return self._nesting.open_step is not None and (self._turn, self._step) == (data["turn"], data["step"])

    def _require_step(self, data: JsonObject, otherwise: str) -> None:
        if not self._step_is_open(data):
            raise _MisfitError(otherwise)

    def _renumbered(self, data: JsonObject) -> JsonObject:
        numbers = {"turn": self._nesting.open_turn, "step": self._nesting.open_step}
        return data | {name: number for name, number in numbers.items() if name in data}

    def _log(self, closing: list[tuple[str, JsonObject]]) -> None:
        for event_type, data in closing:
            self._add(event_type, data)

    def _add(self, event_type: str, data: Any, *, line: bytes | None = None) -> None:
        event = make_event(event_type, self._seq, self._time or 0, data)
        self._nesting.apply(event_type, data)
        self._crash.feed(event)
        self._keep(line or encode_event(event))
        self._seq += 1

    def _note_move(self, seq: int) -> None:
        old, new = self._moves[-1]
        if seq > old and seq - old != self._seq - new:
            self._moves.append((seq, self._seq))

    def _new_place(self, seq: int) -> tuple[int, int]:
        """Where an event of the damaged log stands now, if it does; and where the next stretch that stayed begins."""
        at = max(bisect_right(self._moves, (seq, self._seq)) - 1, 0)
        old, new = self._moves[at]
        behind = self._moves[at + 1][1] if at + 1 < len(self._moves) else self._seq
        return new + seq - old, behind
