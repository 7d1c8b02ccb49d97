"""The rules between frames: who may say what when (contract snapshots.md §4; acp.md §1, §3).

May not know: the agent under test, definitions of single frames. Invariant: one pass over the wire in its order; each
violation is one line that names the session, card or request.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject, as_object, encode
from acp_bridge.testing.normalise import update_of

_OPENING = {"session/load", "session/resume"}
_STATUS_ORDER = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}
# what may still come after a turn was answered as cancelled: it tells the session's state, not the turn
_STATE_UPDATES = {
    "available_commands_update",
    "session_info_update",
    "usage_update",
    "config_option_update",
    "current_mode_update",
}
_CLIENT_CAPABILITY: Mapping[str, tuple[str, ...]] = {
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/": ("terminal",),
    "elicitation/": ("elicitation",),
}


@dataclass(slots=True)
class _Session:
    cards: dict[str, str] = field(default_factory=dict[str, str])  # toolCallId → status
    modes: set[str] = field(default_factory=set[str])
    cancelled: bool = False


class Conversation:
    """Feed it both sides of one wire; `initialize` begins a new connection."""

    def __init__(self) -> None:
        self._capabilities: JsonObject = {}
        self._asked: dict[str, tuple[str, str]] = {}  # request id → (method, session id)
        self._sessions: dict[str, _Session] = {}

    def violations(self, entries: Iterable[Entry]) -> list[str]:
        """Everything that broke a rule."""
        found: list[str] = []
        for entry in entries:
            if entry.sender == "client":
                self._client(entry.frame)
            else:
                found += self._agent(entry.frame)
        return found + [f"{method} (request {key}) was never answered" for key, (method, _) in self._asked.items()]

    def _client(self, frame: JsonObject) -> None:
        method, params = frame.get("method"), as_object(frame.get("params")) or {}
        session_id = str(params.get("sessionId", ""))
        if method == "initialize":
            self._capabilities = params.get("clientCapabilities") or {}
            self._sessions = {}
        if method in _OPENING:
            # history comes before the response
            self._sessions[session_id] = _Session()
        if method == "session/prompt" and session_id in self._sessions:
            self._sessions[session_id].cancelled = False
        if method is not None and "id" in frame:
            self._asked[encode(frame["id"])] = (method, session_id)

    def _agent(self, frame: JsonObject) -> Iterator[str]:
        if "method" not in frame:
            yield from self._response(frame)
            return
        method: str = frame["method"]
        for prefix, path in _CLIENT_CAPABILITY.items():
            if method.startswith(prefix) and not self._advertised(path):
                yield f"{method}, though the client did not advertise it"
        params = as_object(frame.get("params")) or {}
        if "sessionId" not in params:
            return
        session = self._sessions.get(params["sessionId"])
        if session is None:
            yield f"{method} for session {params['sessionId']}, which the client does not know (yet)"
        elif update := update_of(frame):
            yield from _update(session, update)

    def _advertised(self, path: tuple[str, ...]) -> bool:
        value: object = self._capabilities
        for key in path:
            value = (as_object(value) or {}).get(key)
        return bool(value)

    def _response(self, frame: JsonObject) -> Iterator[str]:
        request_id = encode(frame.get("id"))
        if request_id not in self._asked:
            if request_id != "null":
                yield f"a response to no open request: {request_id} (answered twice?)"
            return
        method, session_id = self._asked.pop(request_id)
        result = as_object(frame.get("result")) or {}
        if method == "session/new" and "sessionId" in result:
            session_id = str(result["sessionId"])
            if session_id in self._sessions:
                yield f"session id {session_id} was handed out twice"
            self._sessions[session_id] = _Session()
        session = self._sessions.get(session_id)
        if session is None:
            return
        if method == "session/prompt":
            session.cancelled = result.get("stopReason") == "cancelled"
            yield from (f"card {card} is still {status} when its prompt is answered" for card, status in _open(session))
        modes = as_object(result.get("modes"))
        if modes is not None:
            session.modes = {mode["id"] for mode in modes["availableModes"]}
            if modes["currentModeId"] not in session.modes:
                yield f"mode {modes['currentModeId']} is not among those available"


def _update(session: _Session, update: JsonObject) -> Iterator[str]:
    kind = update.get("sessionUpdate")
    if session.cancelled and kind not in _STATE_UPDATES:
        yield f"{kind} after the cancelled turn was answered"
    if kind == "current_mode_update" and session.modes and update.get("currentModeId") not in session.modes:
        yield f"mode {update.get('currentModeId')} is not among those available"
    if kind in {"agent_message_chunk", "agent_thought_chunk"} and update["content"].get("text") == "":
        yield f"{kind} with an empty text"
    if kind not in {"tool_call", "tool_call_update"}:
        return
    card, status = str(update["toolCallId"]), update.get("status")
    before = session.cards.get(card)
    if kind == "tool_call" and before is not None:
        yield f"card {card} was announced twice"
    if kind == "tool_call_update" and before is None:
        yield f"card {card} was updated before it was announced"
    if before is not None and status is not None and _STATUS_ORDER[status] < _STATUS_ORDER[before]:
        yield f"card {card} went from {before} back to {status}"
    session.cards[card] = status or before or "pending"


def _open(session: _Session) -> list[tuple[str, str]]:
    return [
        (card, status) for card, status in session.cards.items() if _STATUS_ORDER[status] < _STATUS_ORDER["completed"]
    ]
