"""Log lines about what a client sends, at a rate that no client can drive up.

May not know: structlog, the meaning of an event. Invariant: at most `LINES` lines per event name in `WINDOW` seconds;
the first line after a pause says how many were left out (contract acp.md §1: floods are logged at a bounded rate).
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

LINES = 5
WINDOW = 10.0


class WireLog(Protocol):
    """The part of a structlog logger that the wire needs."""

    def debug(self, event: str, **details: Any) -> Any:
        """Log for those who look closely."""

    def warning(self, event: str, **details: Any) -> Any:
        """Log for everybody."""


class BoundedLog:
    """A `WireLog` with a budget per event name. `clock` gives monotonic seconds."""

    def __init__(self, log: WireLog, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        # event name → (start of its window, lines asked for since then)
        self._asked: dict[str, tuple[float, int]] = {}

    def debug(self, event: str, **details: Any) -> None:
        """Log at debug level, budget permitting."""
        self._within_budget(self._log.debug, event, details)

    def warning(self, event: str, **details: Any) -> None:
        """Log at warning level, budget permitting."""
        self._within_budget(self._log.warning, event, details)

    def _within_budget(self, write: Callable[..., Any], event: str, details: dict[str, Any]) -> None:
        now = self._clock()
        started, asked = self._asked.get(event, (now, 0))
        if now - started >= WINDOW:
            if asked > LINES:
                details = {**details, "left_out": asked - LINES}
            started, asked = now, 0
        self._asked[event] = (started, asked + 1)
        if asked < LINES:
            write(event, **details)
