"""Which event may follow which (contract session-log.md §4), as a state machine of constant size and cost.

May not know: where events come from or go. Invariant: a refused event changes nothing; after every accepted one
`open_turn`, `open_step` and `last_turn` say what the log says.
"""

from agent_loop.errors import HarnessError
from agent_loop.vocabulary import JsonObject

_IN_STEP = frozenset({"assistant/chunk", "assistant/message", "tool/call", "tool/result"})
_IN_TURN = frozenset({"user/message", "context/message", "steering/message"})


class NestingError(HarnessError):
    """An event that may not stand here; nothing was logged."""

    def __init__(self, event_type: str, what: str) -> None:
        super().__init__(f"event {event_type!r} may not stand here: {what}", "NESTING")
        self.event_type = event_type


class Nesting:
    """Feed every event of one log, in order. Turn and step numbers count from 1; 0 = there was none yet."""

    __slots__ = ("_calls", "last_step", "last_turn", "open_step", "open_turn")

    def __init__(self) -> None:
        self.open_turn: int | None = None
        self.open_step: int | None = None
        self.last_turn = 0
        self.last_step = 0
        self._calls: set[str] = set()

    def check(self, event_type: str, data: JsonObject) -> None:
        """Raise `NestingError` when such an event may not come next. The data has its shape (`shapes`)."""
        # the most frequent events first
        if event_type in _IN_STEP:
            if data["step"] != self.open_step or data["turn"] != self.open_turn:
                self._check_step_is_open(event_type, data)
            if event_type == "tool/result" and data["callId"] not in self._calls:
                raise NestingError(event_type, f"call {data['callId']!r} was not logged in this step")
        elif event_type in _IN_TURN:
            if self.open_turn is None:
                raise NestingError(event_type, "no turn is open")
            if event_type == "steering/message":
                self._check_turn_is_open(event_type, data)
        else:
            self._check_boundary(event_type, data)

    def apply(self, event_type: str, data: JsonObject) -> None:
        """Note an event that passed `check`."""
        if event_type == "tool/call":
            self._calls.add(data["callId"])
        elif event_type == "step/start":
            self.open_step = self.last_step = data["step"]
            self._calls.clear()
        elif event_type == "step/end":
            self.open_step = None
        elif event_type == "turn/start":
            self.open_turn = self.last_turn = data["turn"]
            self.last_step = 0
        elif event_type == "turn/end":
            self.open_turn = None

    def _check_boundary(self, event_type: str, data: JsonObject) -> None:
        if event_type == "step/start":
            self._check_turn_is_open(event_type, data)
            self._check_no_step_is_open(event_type)
            if data["step"] != self.last_step + 1:
                raise NestingError(event_type, f"step {data['step']} follows step {self.last_step}")
        elif event_type == "step/end":
            self._check_step_is_open(event_type, data)
        elif event_type == "turn/start":
            if self.open_turn is not None:
                raise NestingError(event_type, f"turn {self.open_turn} is still open")
            if data["turn"] != self.last_turn + 1:
                raise NestingError(event_type, f"turn {data['turn']} follows turn {self.last_turn}")
        elif event_type == "turn/end":
            self._check_turn_is_open(event_type, data)
            self._check_no_step_is_open(event_type)

    def _check_turn_is_open(self, event_type: str, data: JsonObject) -> None:
        if data["turn"] != self.open_turn:
            open_turn = "none" if self.open_turn is None else f"turn {self.open_turn}"
            raise NestingError(event_type, f"it names turn {data['turn']}, open is {open_turn}")

    def _check_step_is_open(self, event_type: str, data: JsonObject) -> None:
        self._check_turn_is_open(event_type, data)
        if data["step"] != self.open_step:
            open_step = "none" if self.open_step is None else f"step {self.open_step}"
            raise NestingError(event_type, f"it names step {data['step']}, open is {open_step}")

    def _check_no_step_is_open(self, event_type: str) -> None:
        if self.open_step is not None:
            raise NestingError(event_type, f"step {self.open_step} is still open")
