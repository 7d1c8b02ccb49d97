"""What the page of a session is told, made from its log event by event.

May not know: files, connections. Invariant: pure but for the fold; every text is escaped or JSON; of a log of any
length a bounded number of entries is kept and sent.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from acp_bridge.cli.about import about_session
from acp_bridge.cli.entries import Entry, TurnStarted
from acp_bridge.cli.html import entry_html
from acp_bridge.cli.transcript import Transcript
from acp_bridge.cli.visible import one_line, visible
from acp_bridge.translate.v1.cards import FindTool
from acp_bridge.ui.frames import frame
from agent_loop.loops.projection import loop_projection
from agent_loop.session.events import KnownEvent, SessionEvent, SessionHeader
from agent_loop.vocabulary import JsonObject

KEPT_ENTRIES: Final = 400
"""Of a log that is read from its beginning so many entries are shown, the last ones."""


class LiveView:
    """`feed` every event in order; `frames` tells what has changed since it was last called.

    `moment` writes epoch ms; `warn` hears of records of loops that cannot be read.
    """

    def __init__(
        self,
        header: SessionHeader,
        find_tool: FindTool,
        *,
        moment: Callable[[int], str],
        warn: Callable[[str], None],
        kept: int = KEPT_ENTRIES,
    ) -> None:
        self._header = header
        self._moment = moment
        self._transcript = Transcript(find_tool, cwd=header.cwd)
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._fed = 0
        self._growing = ""
        self._title: str | None = None
        self._projection = loop_projection(warn)
        self._loops: JsonObject = self._projection.init
        self._told_title: str | None = None
        self._told_loops: JsonObject | None = None
        self._began = False

    def feed(self, event: SessionEvent) -> None:
        """The next event."""
        entries = self._transcript.feed(event)
        self._entries += entries
        self._fed += len(entries)
        # a fork inherits no loops
        if event.seq >= (self._header.seed_length or 0):
            self._loops = self._projection.apply(self._loops, event)
        if isinstance(event, KnownEvent) and event.type == "session/title":
            self._title = event.data["title"]

    def frames(self) -> list[bytes]:
        """Events for the browser, in order."""
        changed: list[bytes] = []
        begins, self._began = not self._began, True
        if begins:
            facts = about_session(self._header, None, self._moment).facts
            changed.append(frame("begin", {"facts": facts}))
        if begins or self._title != self._told_title:
            self._told_title = self._title
            changed.append(frame("title", one_line(self._title or "")))
        if self._loops is not self._told_loops:
            self._told_loops = self._loops
            changed.append(frame("loops", {"loops": [_shown(loop) for loop in self._loops["loops"]]}))
        if self._fed:
            left_out = self._fed - len(self._entries)
            changed.append(frame("entries", {"html": "".join(map(self._html, self._entries)), "leftOut": left_out}))
            self._entries.clear()
            self._fed = 0
        growing = "".join(map(self._html, self._transcript.growing()))
        if growing != self._growing:
            self._growing = growing
            changed.append(frame("growing", growing))
        return changed

    def _html(self, entry: Entry) -> str:
        return entry_html(entry, moment=self._moment(entry.time) if isinstance(entry, TurnStarted) else "")


def _shown(loop: dict[str, Any]) -> dict[str, Any]:
    return {**loop, "prompt": visible(loop["prompt"])}
