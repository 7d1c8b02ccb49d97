"""The loops of a session for who watches it (contract loops.md §4).

May not know: who watches. Invariant: pure, apart from the warning; what cannot be read changes nothing, so that one bad
record of a log hides no other loop.
"""

from collections.abc import Callable
from typing import Final

from agent_loop.loops.domain import LOOP_CHANGE, LoopLogError, LoopRecord, applied, parse_change
from agent_loop.session.events import SessionEvent
from agent_loop.session.projection import Projection
from agent_loop.vocabulary import JsonObject

KEY: Final = "loop"


def loop_projection(warn: Callable[[str], None]) -> Projection:
    """`{loops: [LoopRecord]}`, in the order of creation. `warn` hears what could not be read."""

    def apply(state: JsonObject, event: SessionEvent) -> JsonObject:
        if event.type != LOOP_CHANGE:
            return state
        try:
            loops = applied(tuple(LoopRecord(**row) for row in state["loops"]), parse_change(event.data))
        except LoopLogError as error:
            warn(f"event {event.seq}: {error.message}")
            return state
        return {"loops": [loop.to_json() for loop in loops]}

    return Projection(KEY, 1, frozenset({LOOP_CHANGE}), {"loops": []}, apply)
