"""The queue of prompts of each session of the broken agent.

May not know: other methods. Standard library only. Invariant: prompts of one session run one after another, in the
order of their arrival; each is answered once.
"""

import os
import threading
from collections.abc import Iterable
from typing import Any

from acp_bridge.testing.broken_agent_session import Session, Turn
from acp_bridge.testing.broken_agent_turn import run_turn
from acp_bridge.testing.broken_agent_wire import Cancelled, RpcError, Wire, table
from acp_bridge.testing.json_values import JsonObject, as_list, as_object

_BLOCKS = {"text": "text", "resource_link": "uri", "image": "data", "resource": "resource"}


def accepted(prompt: Any, faults: frozenset[str]) -> list[JsonObject]:
    """The blocks of a prompt. Raises `RpcError` for what is not taken."""
    blocks = [as_object(item) for item in as_list(prompt) or []]
    refused = {"resource_link"} if "refuses-links" in faults else set[str]()
    for block in blocks:
        kind = str(table(block).get("type"))
        if block is None or kind in refused or _BLOCKS.get(kind) not in block:
            if "dies-of-audio" in faults and kind == "audio":
                os._exit(1)
            raise RpcError(-32602, f"a block of this kind is not taken: {kind}")
        if "refuses-blobs" in faults and "blob" in table(block.get("resource")):
            raise RpcError(-32602, "a blob is not taken")
    if not blocks:
        raise RpcError(-32602, "prompt is a list of blocks")
    return [block for block in blocks if block is not None]


class Prompts:
    """Runs them, in a thread per busy session."""

    def __init__(self, faults: frozenset[str], wire: Wire) -> None:
        self._faults = faults
        self._wire = wire
        self._answering = threading.Lock()

    def add(self, session: Session, turn: Turn) -> None:
        """Run it when those before it have been answered."""
        if "cancel-sticks" in self._faults and session.was_cancelled:
            turn.cancel.set()
            session.was_cancelled = False
        with session.lock:
            session.turns.append(turn)
            is_first = len(session.turns) == 1
        if is_first:
            threading.Thread(target=self._work, args=(session,), name="turns", daemon=True).start()

    def _work(self, session: Session) -> None:
        """Run the prompts of a session as long as there are some."""
        is_over = False
        while not is_over:
            turn = session.turns[0]
            self._settle(session, turn)
            with session.lock:
                session.turns.popleft()
                is_over = not session.turns
            turn.settled.set()

    def _settle(self, session: Session, turn: Turn) -> None:
        if "answers-cancel-first" in self._faults:
            turn.cancel.on_set(lambda: self._answer(turn, "cancelled"))
        outcome: str | RpcError
        try:
            outcome = run_turn(session, turn)
        except Cancelled:
            outcome = "cancelled"
        except RpcError as error:
            outcome = error
        session.file.flush()
        is_cancelled = outcome == "cancelled"
        if is_cancelled and not turn.has_shown and "cancel-is-error" in self._faults:
            outcome = RpcError(-32603, "the turn was aborted")
        self._answer(turn, outcome)
        if is_cancelled and "late-updates" in self._faults:
            session.send({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "late"}})

    def _answer(self, turn: Turn, outcome: str | RpcError) -> None:
        """Answer it with a stop reason or an error, unless it has been answered."""
        with self._answering:
            if turn.is_answered:
                return
            turn.is_answered = True
        if isinstance(outcome, RpcError):
            self._wire.refuse(turn.request_id, outcome)
        else:
            self._wire.answer(turn.request_id, {"stopReason": outcome})

    def cancel(self, session: Session) -> None:
        if not session.cancel_all():
            session.was_cancelled = True

    def cancel_request(self, request_id: Any, sessions: Iterable[Session]) -> None:
        if "dies-of-cancel-request" in self._faults and not isinstance(request_id, int):
            os._exit(1)
        for session in sessions:
            with session.lock:
                found = [turn for turn in session.turns if _same(turn.request_id, request_id)]
                queued = [turn for turn in found if turn is not session.turns[0]]
                for turn in queued:
                    session.turns.remove(turn)
            for turn in queued:
                self._answer(turn, "cancelled")
                turn.settled.set()
            for turn in found:
                turn.cancel.set()
            if found and "cancels-all-requests" in self._faults:
                session.cancel_all()


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
