"""Live terminal output, gathered (acp.md §3 "Terminal card").

May not know: peers, events. Invariant: a call's text is given out in order, once, at most every 50 ms, without secrets
(also those that only the removed control sequences had parted); what a result frame will carry is not given out at all.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

from agent_loop.tools.terminal_text import TerminalText
from bash_exec.secrets import Redactor, SecretRegistry

INTERVAL = 0.05
"""Seconds between two updates of one session."""


class Timer(Protocol):
    """A pending `call_later`."""

    @abstractmethod
    def cancel(self) -> None:
        """Never call back."""


CallLater = Callable[[float, Callable[[], None]], Timer]


class TerminalOutput:
    """Collects bytes of running calls; `show(call_id, text)` is called with what is new."""

    def __init__(self, show: Callable[[str, str], None], call_later: CallLater, *, secrets: SecretRegistry) -> None:
        self._show = show
        self._call_later = call_later
        self._secrets = secrets
        self._texts: dict[str, tuple[TerminalText, Redactor]] = {}
        self._waiting: dict[str, list[str]] = {}
        self._timer: Timer | None = None

    def feed(self, call_id: str, data: bytes) -> None:
        """Raw output of a call."""
        if call_id not in self._texts:
            self._texts[call_id] = TerminalText(), Redactor(self._secrets)
        terminal, redactor = self._texts[call_id]
        text = redactor.feed(terminal.feed(data))
        if text:
            self._waiting.setdefault(call_id, []).append(text)
            if self._timer is None:
                self._timer = self._call_later(INTERVAL, self._due)

    def end(self, call_id: str, *, show_rest: bool) -> None:
        """The call's result comes now; `show_rest`: it does not carry what was not shown yet."""
        _terminal, redactor = self._texts.pop(call_id, (None, None))
        rest = "".join(self._waiting.pop(call_id, ()))
        if redactor is not None:
            rest += redactor.finish()
        if rest and show_rest:
            self._show(call_id, rest)

    def stop(self) -> None:
        """Nothing is shown any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for call_id, texts in waiting.items():
            self._show(call_id, "".join(texts))
