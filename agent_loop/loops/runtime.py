"""The loops of one agent while it lives: create, list, delete, and the drives that send what is due (loops.md §3).

May not know: editors, tools, how an agent works. Invariant: the log is the schedule, and nothing is scheduled or sent
that is not in it and durable; one thing at a time, and what a person asks for goes before what is due; a loop has at
most one heartbeat waiting; nothing is sent for an agent that is not, as this very object, the live one.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import anyio

from agent_loop.agent import Agent
from agent_loop.errors import AgentDisposedError, DuplicateError, HarnessError
from agent_loop.hooks import Hooks, Scope
from agent_loop.inbox import InboxMessage
from agent_loop.loops.domain import (
    LOOP_CHANGE,
    Created,
    Deleted,
    Dispatched,
    LoopChange,
    LoopFold,
    LoopInputError,
    LoopRecord,
    earliest,
    heartbeat,
    new_record,
    next_occurrence,
    to_data,
)
from agent_loop.runtime import Runtime
from agent_loop.tools.dispatch import make_durable
from agent_loop.vocabulary import JsonObject, Source, text_block

MAX_DELAY_MS: Final = 2_147_483_647
FIRST_BACK_OFF_MS: Final = 1_000
MAX_BACK_OFF_MS: Final = 60_000
QUEUE_SECONDS: Final = 2.0

DRIVE: Final = "loop/drive"
WORKING: Final = "loop/working"
"""Emitted as `(agent)` when the first loop of an agent was made, or loops it was resumed with begin again."""
ERROR: Final = "loop/error"
"""Emitted as `(agent, error)` when a drive has failed."""

SOURCE: Final[Source] = {"kind": "plugin", "plugin": "loop"}

Start = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]
"""Runs a coroutine function as a task that outlives the caller's."""


class LoopRuntime:
    """Made for one agent object; `is_live` says whether the registry still returns that object.

    `dispose` waits `queue_seconds` for what is under way: a disk that hangs must not keep a session from ending.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        is_live: Callable[[], bool],
        hooks: Hooks,
        runtime: Runtime,
        start: Start,
        queue_seconds: float = QUEUE_SECONDS,
    ) -> None:
        self._agent = agent
        self._session = agent.session
        self._is_live = is_live
        self._hooks = hooks
        self._runtime = runtime
        self._start = start
        self._queue_seconds = queue_seconds
        self._fold = LoopFold()
        first = self._session.first_own_seq((LOOP_CHANGE,))
        self._next_seq = self._session.next_seq if first is None else first
        self._has_past = first is not None
        # fair: whoever has waited longest is next
        self._queue = anyio.Lock()
        self._transactions = 0
        self._wanted = anyio.Event()
        self._working = False
        self._stopped = False
        self._back_off_ms = 0
        self._disarm: Callable[[], None] = _nothing
        self._scope = Scope()
        # the bus is the wall for what nobody foresaw: a bug here must not end the agent
        hooks.on(DRIVE, self._drive, agent=agent.id, scope=self._scope)

    async def create(self, prompt: str, seconds: float) -> JsonObject:
        """A new loop, durable when this returns; its LoopView.

        Raises `LoopInputError`, `LoopLogError`, `AgentDisposedError`, and `PersistenceError` when it could not be made
        durable.
        """
        loop = new_record(f"loop_{self._runtime.new_id()}", prompt, seconds, now_ms=self._runtime.now_ms())
        async with self._transaction():
            await self._read_log()
            await self._change(Created(loop))
            await self._read_log()
            return self._view(self._active(loop.id))

    async def list(self) -> list[JsonObject]:
        """The LoopViews of the active loops, in the order of creation. Raises `LoopLogError`, `SessionStoreError`."""
        async with self._transaction():
            await self._read_log()
            return [self._view(loop) for loop in self._fold.active]

    async def delete(self, loop_id: str) -> None:
        """End a loop, durably. Raises `LoopInputError` when it is not active, and as `create`."""
        async with self._transaction():
            await self._read_log()
            await self._change(Deleted(self._active(loop_id).id))

    def request_drive(self) -> None:
        """Look soon for what is due. Requests that come before the look are one; callable from anywhere."""
        self._wanted.set()

    def begin(self) -> None:
        """Send what is due by the log that the agent was resumed with, and wait for the rest."""
        if self._has_past:
            self._work()
            self.request_drive()

    def stop(self) -> None:
        """Send nothing more. Idempotent."""
        self._stopped = True
        self._disarm()
        self._scope.dispose()
        self.request_drive()

    async def dispose(self) -> None:
        """`stop`, and wait for what is under way, within a limit."""
        self.stop()
        with anyio.move_on_after(self._queue_seconds, shield=True):
            async with self._queue:
                return

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[None]:
        self._transactions += 1
        try:
            await self._queue.acquire()
        finally:
            self._transactions -= 1
        try:
            yield
        finally:
            self._queue.release()

    async def _change(self, change: LoopChange) -> None:
        """Flush, append, flush; the schedule is another from the append on, also when the last flush fails."""
        await make_durable(self._session)
        if not self._live():
            raise AgentDisposedError(self._agent.id)
        self._session.append(LOOP_CHANGE, to_data(change))
        self._work()
        self.request_drive()
        await make_durable(self._session)

    def _work(self) -> None:
        if not self._working and not self._stopped:
            self._working = True
            self._hooks.emit(WORKING, self._agent, agent=self._agent.id)
            self._start(self._drive_on_request)

    async def _drive_on_request(self) -> None:
        while not self._stopped:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            if await self._hooks.parallel(DRIVE, agent=self._agent.id) == [True]:
                self._back_off_ms = 0
            elif not self._stopped:
                self._back_off_ms = min(max(2 * self._back_off_ms, FIRST_BACK_OFF_MS), MAX_BACK_OFF_MS)
                self._arm(self._runtime.now_ms() + self._back_off_ms)

    async def _drive(self) -> bool:
        """True when all went well. What is foreseen is told as `loop/error`, everything else raises."""
        try:
            async with self._queue:
                await self._send_due()
        except HarnessError as error:
            self._hooks.emit(ERROR, self._agent, error, agent=self._agent.id)
            return False
        return True

    async def _send_due(self) -> None:
        if not self._live():
            return
        await make_durable(self._session)
        await self._read_log()
        if not self._live():
            return
        if self._transactions:
            # a person who deletes a loop that is due must not get its heartbeat
            self.request_drive()
            return
        loop, now = earliest(self._fold.active), self._runtime.now_ms()
        self._disarm()
        if loop is None:
            return
        if loop.next_at > now:
            self._arm(loop.next_at)
            return
        following = next_occurrence(loop, now)
        self._send(loop)
        self._session.append(LOOP_CHANGE, to_data(Dispatched(loop.id, following)))
        self.request_drive()
        await make_durable(self._session)

    def _send(self, loop: LoopRecord) -> None:
        message = InboxMessage(loop.id, [text_block(heartbeat(loop))], SOURCE)
        try:
            self._deliver(message)
        except DuplicateError:
            # the one before still waits, perhaps without a wake: this one stands for both
            self._agent.withdraw(message.id, "renewed")
            self._deliver(message)

    def _deliver(self, message: InboxMessage) -> None:
        self._agent.send(message, "next-step" if self._agent.status == "running" else "next-turn", wakeup=True)

    def _arm(self, at_ms: int) -> None:
        self._disarm()
        self._disarm = self._runtime.call_at(min(at_ms, self._runtime.now_ms() + MAX_DELAY_MS), self.request_drive)

    async def _read_log(self) -> None:
        async with aclosing(self._session.events(self._next_seq)) as events:
            async for event in events:
                if event.type == LOOP_CHANGE:
                    self._fold.feed(event.data)
                self._next_seq = event.seq + 1

    def _active(self, loop_id: str) -> LoopRecord:
        loop = self._fold.get(loop_id)
        if loop is None:
            raise LoopInputError(f"there is no loop {loop_id!r:.60} in this session")
        return loop

    def _view(self, loop: LoopRecord) -> JsonObject:
        return loop.view(self._runtime.now_ms())

    def _live(self) -> bool:
        return not self._stopped and self._is_live()


def _nothing() -> None:
    """No timer is armed."""
