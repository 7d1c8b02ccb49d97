"""The bus: emit, parallel, around (contract agent-loop.md §6).

May not know: what travels on it. Invariant: a listener that raises never harms the emitter or its neighbours (the
fifth wall: it is reported to `on_error`), and a registration disappears with the scope that made it.

Names in use: `session/created|event|flush|write-failed`, `agent/created|disposed|status|error`,
`agent/turn-start|turn-end|step-start|step-end`, `agent/inbox/inserted|claimed|discarded`, `agent/flow` (parallel),
`agent/request|step-result|turn-continuation` (around), `llm/stream` (around), `tools/execute` (around),
`tools/output`, `tools/change`, `commands/change`, `system-prompt/assemble` (around).
"""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

Remover = Callable[[], None]
Listener = Callable[..., Any]
Layer = Callable[..., Any]


class Scope:
    """Owns registrations; `dispose` removes them in reverse order. Idempotent."""

    def __init__(self) -> None:
        self._removers: list[Remover] = []

    def own(self, remover: Remover) -> Remover:
        """Remember `remover`; returns it."""
        self._removers.append(remover)
        return remover

    def dispose(self) -> None:
        """Remove everything that was registered through this scope."""
        while self._removers:
            self._removers.pop()()


class Hooks:
    """Listeners by name. Agent-scoped ones hear only what is emitted with that `agent` id."""

    def __init__(self, on_error: Callable[[str, Exception], None]) -> None:
        self.on_error = on_error
        self._listeners: _Table = {}
        self._layers: _Table = {}
        self._numbers = count()

    def on(self, name: str, listener: Listener, *, agent: str | None = None, scope: Scope | None = None) -> Remover:
        """Register a listener for `emit` or `parallel`; returns its remover."""
        return self._register(self._listeners, name, listener, agent, scope)

    def wrap(self, name: str, layer: Layer, *, agent: str | None = None, scope: Scope | None = None) -> Remover:
        """Register a layer `layer(value…, next)` for `around`; the first registered is the outermost."""
        return self._register(self._layers, name, layer, agent, scope)

    def _register(
        self, table: "_Table", name: str, called: Callable[..., Any], agent: str | None, scope: Scope | None
    ) -> Remover:
        # its number also tells apart two registrations of the same function
        entry = (next(self._numbers), called)
        by_agent = table.setdefault(name, {})
        by_agent[agent] = (*by_agent.get(agent, ()), entry)

        def remove() -> None:
            left = tuple(present for present in by_agent.get(agent, ()) if present is not entry)
            if left:
                by_agent[agent] = left
            else:
                by_agent.pop(agent, None)

        return scope.own(remove) if scope else remove

    def listening(self, name: str) -> bool:
        """True when somebody listens to `name`: lets a hot path skip building what nobody hears."""
        return bool(self._listeners.get(name))

    def emit(self, name: str, *args: Any, agent: str | None = None) -> None:
        """Call every listener in registration order, synchronously; each is contained."""
        for _, listener in _meant(self._listeners, name, agent):
            try:
                listener(*args)
            except Exception as error:  # noqa: BLE001 - the listener wall
                self.on_error(name, error)

    async def parallel(self, name: str, *args: Any, agent: str | None = None) -> list[Any]:
        """Await every listener; all run. Returns their results, a raised exception as itself."""
        results: list[Any] = []
        for _, listener in _meant(self._listeners, name, agent):
            try:
                results.append(await listener(*args))
            except Exception as error:  # noqa: BLE001 - the listener wall
                self.on_error(name, error)
                results.append(error)
        return results

    def wrapped(self, name: str, *, agent: str) -> bool:
        """True when a layer stands about `name` for this agent."""
        return bool(_meant(self._layers, name, agent))

    def around(self, name: str, innermost: Callable[..., Any], *, agent: str | None = None) -> Callable[..., Any]:
        """Compose the layers of `name` about `innermost`; a layer may skip `next` or wrap it.

        Exceptions pass through: a layer is part of the call, not an onlooker.
        """
        call = innermost
        for _, layer in reversed(_meant(self._layers, name, agent)):
            call = _bind(layer, call)
        return call


# by name and agent, in the order of registration: tuples, so that who comes or goes meanwhile changes no call under way
_Entries = tuple[tuple[int, Callable[..., Any]], ...]
_Table = dict[str, dict[str | None, _Entries]]


def _meant(table: _Table, name: str, agent: str | None) -> _Entries:
    """Who is called, in the order of registration; other agents' registrations cost nothing."""
    by_agent = table.get(name)
    if not by_agent:
        return ()
    common, own = by_agent.get(None, ()), by_agent.get(agent, ())
    if agent is None or not own:
        return common
    return tuple(sorted((*common, *own), key=_number)) if common else own


def _number(entry: tuple[int, Callable[..., Any]]) -> int:
    return entry[0]


def _bind(layer: Layer, inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return layer(*args, inner)

    return call


AsyncListener = Callable[..., Awaitable[Any]]
