"""Live sessions over a store, with the bus and a virtual clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agent_loop.hooks import Hooks
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.live import LiveSessions
from agent_loop.session.log import Session
from agent_loop.session.store import SessionStore
from tests.support.session_turns import Pair


@dataclass
class SessionWorld:
    """`heard` = what `session/created` and `session/write-failed` said, `errors` = what the listener wall caught."""

    hooks: Hooks
    runtime: VirtualRuntime
    store: SessionStore
    live: LiveSessions
    heard: list[tuple[Any, ...]] = field(default_factory=list)
    errors: list[tuple[str, Exception]] = field(default_factory=list)


@asynccontextmanager
async def session_world(store: SessionStore, **options: Any) -> AsyncIterator[SessionWorld]:
    """Closed at the end, whatever is still live."""
    errors: list[tuple[str, Exception]] = []
    hooks = Hooks(lambda name, error: errors.append((name, error)))
    runtime = VirtualRuntime()
    world = SessionWorld(hooks, runtime, store, LiveSessions(store, hooks, runtime, **options), errors=errors)
    hooks.on("session/created", lambda session: world.heard.append(("created", session.id)))
    hooks.on("session/write-failed", lambda session, error: world.heard.append(("write-failed", session.id, error)))
    yield world
    await world.live.aclose()


def append_all(session: Session, pairs: list[Pair]) -> None:
    for event_type, data in pairs:
        session.append(event_type, data)
