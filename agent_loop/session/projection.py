"""Projections: states that others may watch, folded from the logs of live sessions (contract loops.md §4).

May not know: any concrete projection, who watches. Invariant: a state is what `apply` makes of the events after the
fork prefix, in order, each once; nothing is read from a log before somebody asks for its states.
"""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from agent_loop.errors import DuplicateError
from agent_loop.hooks import Hooks, Remover
from agent_loop.session.events import SessionEvent
from agent_loop.session.log import Session
from agent_loop.vocabulary import JsonObject

CHANGED = "projections/change"
"""Emitted as `(session, key, state)` when an event has put another object in the place of a state."""


@dataclass(frozen=True, slots=True)
class Projection:
    """One fold. `init` is its state before every event, `apply(state, event)` the state after one: JSON, never changed
    in place, the identical object when the event does not matter. `types`: the event types that can matter.

    `state_version` tells who keeps a state that it means something else now.
    """

    key: str
    state_version: int
    types: frozenset[str]
    init: Any
    apply: Callable[[Any, SessionEvent], Any]


@dataclass(slots=True)
class _Folded:
    """The states of a session. `next_seq`: the event that they wait for."""

    states: dict[str, Any]
    next_seq: int


class ProjectionRegistry:
    """Register first, then ask: a session that was folded before knows nothing of a later projection's past."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._projections: dict[str, Projection] = {}
        self._folded: WeakKeyDictionary[Session, _Folded] = WeakKeyDictionary()
        hooks.on("session/event", self._on_event)

    def register(self, projection: Projection) -> Remover:
        """Offer a projection. Raises `DuplicateError`. What was folded is folded anew when it is asked for."""
        if projection.key in self._projections:
            raise DuplicateError("projection", projection.key)
        self._projections[projection.key] = projection
        self._folded.clear()

        def remove() -> None:
            if self._projections.get(projection.key) is projection:
                del self._projections[projection.key]
                self._folded.clear()

        return remove

    async def snapshot(self, session: Session) -> JsonObject:
        """`{asOfSeq, values: {key: state}}`; `asOfSeq` is the seq of the last event that counts, −1 before the first.

        The first time the log is read, as far as it can matter; from then on changes are told. Raises
        `SessionStoreError` when the log cannot be read.
        """
        folded = self._folded.get(session)
        if folded is None:
            folded = self._folded[session] = self._begun(session)
        async with aclosing(session.events(folded.next_seq)) as events:
            async for event in events:
                self._feed(session, folded, event)
        return {"asOfSeq": folded.next_seq - 1, "values": dict(folded.states)}

    def _begun(self, session: Session) -> _Folded:
        types = frozenset[str]().union(*(projection.types for projection in self._projections.values()))
        start = session.first_own_seq(types)
        return _Folded(
            {key: projection.init for key, projection in self._projections.items()},
            session.next_seq if start is None else start,
        )

    def _on_event(self, session: Session, event: SessionEvent) -> None:
        if folded := self._folded.get(session):
            self._feed(session, folded, event)

    def _feed(self, session: Session, folded: _Folded, event: SessionEvent) -> None:
        # while the log is read for the first time events arrive both ways
        if event.seq != folded.next_seq:
            return
        folded.next_seq += 1
        for key, projection in self._projections.items():
            if event.type not in projection.types:
                continue
            before = folded.states[key]
            after = projection.apply(before, event)
            if after is not before:
                folded.states[key] = after
                self._hooks.emit(CHANGED, session, key, after, agent=session.id)
