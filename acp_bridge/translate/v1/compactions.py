"""What a client sees of a compaction (session-log.md §3 `history/compacted`, surface.md §1.4).

May not know: cards, peers, who asked for it. Invariant: pure; a compaction that began is ended, once, by what follows
it in the log: its summary, or whatever shows that there will be none.
"""

from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.cards import Update
from agent_loop.session.events import KnownEvent
from agent_loop.vocabulary import JsonObject

PURPOSE = "compaction"
"""`request/header.purpose` of the call that writes the summary."""
LINE = "Summarising the conversation so far, to make room…\n"
"""What a client sees that does not know compactions."""


class Compactions:
    """One session's compactions, for one client. `open`: the (turn, step) whose call writes a summary now."""

    def __init__(self, capabilities: ClientCapabilities) -> None:
        self._advertised = capabilities.compaction
        self.open: tuple[int, int] | None = None

    def begin(self, event: KnownEvent) -> list[Update]:
        """A `request/header`."""
        data = event.data
        if data.get("purpose") != PURPOSE:
            return []
        self.open = (data["turn"], data["step"])
        if self._advertised:
            return [self._update("in_progress")]
        return [
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": LINE},
                "messageId": f"n{event.seq}",
            }
        ]

    def chunk(self, text: str) -> list[Update]:
        """A piece of the summary."""
        if not self._advertised:
            return []
        content = {"type": "text", "text": text}
        return [{"sessionUpdate": "compaction_summary_chunk", "compactionId": self._id(), "content": content}]

    def complete(self) -> list[Update]:
        """A `history/compacted`."""
        return self._end("completed")

    def stop(self, reason: JsonObject) -> list[Update]:
        """The turn or the step is over; there is no summary if none has come. `reason` is that of the turn, or {}."""
        kind = reason.get("kind", "error")
        status = "failed" if kind == "error" else "cancelled"
        message = reason.get("message")
        return self._end(status, **({"error": message} if message else {}))

    def _end(self, status: str, **fields: str) -> list[Update]:
        updates = [self._update(status, **fields)] if self.open and self._advertised else []
        self.open = None
        return updates

    def _update(self, status: str, **fields: str) -> Update:
        return {"sessionUpdate": "compaction_update", "compactionId": self._id(), "status": status, **fields}

    def _id(self) -> str:
        turn, step = self.open or (0, 0)
        return f"k{turn}.{step}"
