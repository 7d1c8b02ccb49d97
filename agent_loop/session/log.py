"""A live session: its append-only log and what is derived from it (contract session-log.md §5).

May not know: where the log is kept, who shows it. Invariant: what listeners hear is in the log already, in order, each
event once; every question about the session ("is a turn open?") is answered from the log; no registered secret gets
into it (tools-and-bash.md §5). Memory holds the folds and the last 4,096 events, whatever the length of the log.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from itertools import islice
from typing import Any, Final

from agent_loop.hooks import Hooks, Remover
from agent_loop.runtime import Runtime
from agent_loop.session.derive import Entry, History
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.json_check import own_json
from agent_loop.session.spending import Spent
from agent_loop.session.state import LogState, RequestParts
from agent_loop.session.store import PersistenceError, SessionJournal
from agent_loop.vocabulary import JsonObject, Message, Usage
from bash_exec.secrets import SecretRegistry

TAIL_EVENTS: Final = 4096


class Tail:
    """The end of a log while it is read or written: the folds, and the last events.

    Of a `stored` log neither events nor history are kept while it is read: the store has them, and most who load a
    session do not go on with it at once.
    """

    __slots__ = ("events", "secrets", "state")

    def __init__(self, secrets: SecretRegistry | None = None, *, stored: bool = False) -> None:
        self.secrets = secrets or SecretRegistry()
        self.state = LogState(None if stored else History())
        self.events: deque[SessionEvent] = deque(maxlen=TAIL_EVENTS)

    def feed(self, event: SessionEvent) -> None:
        """Take the next event of a stored log, which was checked already."""
        self.state.feed(event)

    def admit(self, event_type: str, data: JsonObject, *, time: int) -> SessionEvent:
        """Own the data, redact and check it, and make the event that comes next.

        Raises `InvalidEventError`, `NestingError`.
        """
        owned = own_json(event_type, data)
        # chunks come redacted: of a secret that is split over them, no single one shows anything (`ChunkRedactor`)
        if event_type != "assistant/chunk":
            owned = self.secrets.redact_json(owned)
        event = self.state.admit(event_type, owned, time=time)
        self.events.append(event)
        return event


class Session:
    """One session. Made by `LiveSessions`, which gives it its journal and hears of every append through `on_append`.

    `failure` is set while the log cannot be written. `secrets` are those of the process.
    """

    def __init__(
        self,
        journal: SessionJournal,
        tail: Tail,
        *,
        hooks: Hooks,
        runtime: Runtime,
        on_append: Callable[["Session"], None],
    ) -> None:
        self.header: SessionHeader = journal.header
        self.journal = journal
        self.failure: PersistenceError | None = None
        self._tail = tail
        self._state = tail.state
        self.secrets = tail.secrets
        self._hooks = hooks
        self._own_hooks = Hooks(hooks.on_error)
        self._runtime = runtime
        self._on_append = on_append
        self._unheard: deque[SessionEvent] = deque()
        self._notifying = False

    @property
    def id(self) -> str:
        """The session id, which is also the id of its agent."""
        return self.header.id

    @property
    def cwd(self) -> str | None:
        """The absolute working directory."""
        return self.header.cwd

    @property
    def next_seq(self) -> int:
        """How many events are in the log."""
        return self._state.next_seq

    @property
    def open_turn(self) -> int | None:
        """The number of the open turn."""
        return self._state.nesting.open_turn

    @property
    def open_step(self) -> int | None:
        """The number of the open step."""
        return self._state.nesting.open_step

    @property
    def last_turn(self) -> int:
        """The number of the last turn, open or not; 0 before the first."""
        return self._state.nesting.last_turn

    @property
    def mode(self) -> str | None:
        """The mode of the last `mode/change`."""
        return self._state.mode

    @property
    def config(self) -> Mapping[str, Any]:
        """What was last chosen of each configuration option (`config/change`)."""
        return self._state.config

    @property
    def spent(self) -> Spent:
        """The tokens of all calls so far."""
        return self._state.spent

    @property
    def title(self) -> str | None:
        """The title of the last `session/title`."""
        return self._state.title

    @property
    def last_usage(self) -> Usage | None:
        """The usage of the last `assistant/message` that had one."""
        return self._state.last_usage

    @property
    def context_size(self) -> int | None:
        """Tokens of the context after the last model call; None when that is not known (any more)."""
        return self._state.context_size

    @property
    def compacted_turn(self) -> int | None:
        """The turn in which the history was last summarised."""
        return self._state.compacted_turn

    @property
    def refused_turns(self) -> frozenset[int]:
        """The numbers of the turns that the model has refused so far."""
        return self._state.refused

    @property
    def last_request(self) -> RequestParts:
        """The optional parts of the last `request/header`, each as it was last logged."""
        return self._state.last_request

    def first_own_seq(self, types: Iterable[str]) -> int | None:
        """Where to begin to read for events of these known types, behind what a fork inherited; None: there are none.

        Not for `assistant/chunk`.
        """
        found = [seq for name in types if (seq := self._state.first_seqs.get(name)) is not None]
        return max(min(found), self.header.seed_length or 0) if found else None

    async def messages(self) -> list[Message]:
        """The derived history: a new list of messages that the caller must not change.

        Of a loaded session it is read from the store when first wanted. Raises `SessionStoreError` then.
        """
        return (await self._history()).messages()

    async def entries(self) -> list[Entry]:
        """The derived history with the place of each message; otherwise as `messages`."""
        return (await self._history()).entries()

    def call_ids(self) -> AbstractSet[str]:
        """The ids of all tool calls in the log; a live view (see `LogState.call_ids`)."""
        return self._state.call_ids()

    def keep(self, data: bytes) -> str:
        """Keep bytes beside the log, for an event that names them; returns their name (`ref`)."""
        return self.journal.keep(data)

    async def attachment(self, ref: str) -> bytes | None:
        """What `ref` names; None when it is not kept (any more). Raises `SessionStoreError`."""
        return await self.journal.attachment(ref)

    def append(self, event_type: str, data: JsonObject) -> SessionEvent:
        """Log an event, then notify: bus `session/event(session, event)`, then the subscribers, in order.

        Its texts are redacted; those of an `assistant/chunk` must be already.
        Never blocks on I/O. Raises `InvalidEventError` (not JSON, wrong fields) or `NestingError`; nothing is logged
        then. A listener may append: every listener still hears the events in the order of the log.
        """
        event = self._tail.admit(event_type, data, time=self._runtime.now_ms())
        self.journal.append(event)
        self._on_append(self)
        self._unheard.append(event)
        if not self._notifying:
            self._notifying = True
            try:
                while self._unheard:
                    heard = self._unheard.popleft()
                    self._hooks.emit("session/event", self, heard, agent=self.header.id)
                    self._own_hooks.emit("session/event", heard)
            finally:
                self._notifying = False
        return event

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Remover:
        """Call `listener` for each later append; when it raises, that is reported and the others still run."""
        return self._own_hooks.on("session/event", listener)

    async def events(self, from_seq: int = 0) -> AsyncGenerator[SessionEvent, None]:
        """The log from `from_seq` on: what fell out of memory from the store, then the tail, until caught up.

        Who may stop early closes it (`contextlib.aclosing`). Raises `SessionStoreError` when the store cannot be read.
        """
        at = from_seq
        while at < self.next_seq:
            first_in_memory = self._tail.events[0].seq if self._tail.events else self.next_seq
            if at < first_in_memory:
                async with aclosing(self.journal.read(at)) as stored:
                    async for event in stored:
                        yield event
                        at = event.seq + 1
            else:
                for event in tuple(islice(self._tail.events, at - first_in_memory, None)):
                    yield event
                    at = event.seq + 1

    async def flush(self) -> bool:
        """Run `session/flush(session)`; True iff somebody listened and nobody failed or returned False."""
        results = await self._hooks.parallel("session/flush", self, agent=self.id)
        return bool(results) and not any(result is False or isinstance(result, Exception) for result in results)

    async def _history(self) -> History:
        history = self._state.history
        if history is None:
            history = History()
            async for event in self.events():
                history.feed(event)
            self._state.history = history
        return history
