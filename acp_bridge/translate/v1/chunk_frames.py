"""The frame of a streamed delta, without building what is the same in all of them (acp.md §3, §1).

May not know: peers, time. Invariant: byte for byte the frame that `UpdateRenderer` and the wire would make of the same
event; an answer of 20,000 deltas is 20,000 of these, and nothing but their text differs.
"""

from acp_bridge.rpc.json_text import encode
from acp_bridge.rpc.messages import notification_frame
from acp_bridge.translate.v1.cards import TEXT_LIMIT
from acp_bridge.translate.v1.updates import text_update
from agent_loop.vocabulary import JsonObject

_KINDS = {"text-delta": ("agent_message_chunk", "m"), "reasoning-delta": ("agent_thought_chunk", "t")}
_MARK = "\x00"


class ChunkFrames:
    """For one session: remembers what stands around the text in the frames of the message that is being streamed."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._message: tuple[str, int, int] | None = None
        self._before = b""
        self._after = b""
        # by kind: the line up to its text, from there up to the number of its message, and from there on
        self._lines: dict[str, tuple[bytes, bytes, bytes]] = {}

    def frame(self, data: JsonObject) -> bytes | None:
        """The line for the data of an `assistant/chunk`; None for one that is not exactly one frame."""
        chunk = data["chunk"]
        kind: str = chunk["type"]
        if kind not in _KINDS:
            return None
        text: str = chunk["text"]
        if not 0 < len(text) <= TEXT_LIMIT:
            return None
        message = (kind, data["turn"], data["step"])
        if message != self._message:
            self._remember(message)
        return self._before + encode(text) + self._after

    def _remember(self, message: tuple[str, int, int]) -> None:
        kind, turn, step = message
        self._before, between, end = self._lines.get(kind) or self._line(kind)
        self._after = b"%b%d.%d%b" % (between, turn, step, end)
        self._message = message

    def _line(self, kind: str) -> tuple[bytes, bytes, bytes]:
        name, letter = _KINDS[kind]
        update = text_update(name, _MARK, letter + _MARK)
        line = notification_frame("session/update", {"sessionId": self._session_id, "update": update})
        # a session id is text of others: the marks that are meant stand behind the last one it could hold
        rest, _, end = line.rpartition(encode(_MARK)[1:-1])
        before, _, between = rest.rpartition(encode(_MARK))
        self._lines[kind] = before, between, end
        return before, between, end
