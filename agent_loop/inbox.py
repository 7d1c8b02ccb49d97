"""What waits to be read by the model (contract agent-loop.md §2).

May not know: turns, sessions, who sends. Invariant: an inserted message leaves exactly once — claimed, withdrawn,
discarded — and never changes its order among the messages of its list; nothing here is persistent.
"""

from dataclasses import dataclass
from typing import Final, Literal

from agent_loop.errors import DuplicateError
from agent_loop.vocabulary import Block, Source, Trigger

Target = Literal["next-turn", "next-step"]

PLUGIN: Final = "plugin"
COMPACTION: Final[Trigger] = {"kind": "compaction"}


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """One message to the model. `id` is unique among the pending ones; `content` are blocks as the sender made them.

    `compaction`: no message at all, but the wish, with these instructions, to have the history summarised; it gets a
    turn of its own in its place among the next-turn messages.
    """

    id: str
    content: list[Block]
    source: Source
    compaction: str | None = None


@dataclass(slots=True)
class Pending:
    """A message in its list. `wake`: a turn is owed to it. `context`: it was sent not to wake, and is logged so."""

    message: InboxMessage
    wake: bool
    context: bool

    @property
    def from_plugin(self) -> bool:
        """Heartbeats and notices: they outlive a cancel and extend a turn only once."""
        return self.message.source.get("kind") == PLUGIN


class Inbox:
    """Two ordered lists: `next-turn` and `next-step`."""

    def __init__(self) -> None:
        self._next_turn: list[Pending] = []
        self._next_step: list[Pending] = []

    @property
    def pending(self) -> tuple[InboxMessage, ...]:
        """Everything that waits, in the order in which turns would claim it."""
        return tuple(item.message for item in (*self._next_step, *self._next_turn))

    @property
    def owes_a_turn(self) -> bool:
        """True while something waits that was sent to wake."""
        return any(item.wake for item in (*self._next_step, *self._next_turn))

    @property
    def step_waits(self) -> bool:
        """True when a next-step message waits."""
        return bool(self._next_step)

    @property
    def turn_kept_open(self) -> bool:
        """True when a next-step message waits that no plugin sent: such a one extends a turn however often it comes."""
        return any(not item.from_plugin for item in self._next_step)

    def insert(self, message: InboxMessage, target: Target, *, wakeup: bool, next_turn_only: bool = False) -> None:
        """Append to the list of `target` (`next_turn_only` overrides it). Raises `DuplicateError` for a pending id.

        For the next turn, what plugins sent stands behind what everybody else did: no heartbeat keeps a prompt waiting.
        """
        if any(message.id == present.id for present in self.pending):
            raise DuplicateError("pending message", message.id)
        item = Pending(message, wake=wakeup, context=target == "next-step" and not wakeup)
        if target == "next-step" and not next_turn_only:
            self._next_step.append(item)
        elif item.from_plugin:
            self._next_turn.append(item)
        else:
            prompts = sum(not present.from_plugin for present in self._next_turn)
            self._next_turn.insert(prompts, item)

    def claim_turn(self) -> tuple[list[Pending], Trigger]:
        """For the first step of a turn: all next-step messages, then one next-turn message; and why the turn starts.

        At least one message must wait.
        """
        head = self._next_turn[:1]
        del self._next_turn[:1]
        if head and head[0].message.compaction is not None:
            return head, COMPACTION
        steps = self.claim_step()
        # the next-turn message is the cause, else the first next-step one that woke
        cause = next((item for item in (*head, *steps) if not item.context), None)
        trigger: Trigger = {
            "kind": "message" if cause else "injection",
            "source": (cause or (*head, *steps)[0]).message.source,
        }
        return [*steps, *head], trigger

    def claim_step(self) -> list[Pending]:
        """For a later step: all next-step messages."""
        claimed = [*self._next_step]
        self._next_step.clear()
        return claimed

    def withdraw(self, message_id: str) -> InboxMessage | None:
        """Take one pending message back."""
        for items in (self._next_step, self._next_turn):
            for index, item in enumerate(items):
                if item.message.id == message_id:
                    del items[index]
                    return item.message
        return None

    def cancel(self) -> list[InboxMessage]:
        """Drop what people sent; what plugins sent stays, but wakes nobody any more. Returns the dropped."""
        dropped: list[InboxMessage] = []
        for items in (self._next_step, self._next_turn):
            dropped += [item.message for item in items if not item.from_plugin]
            items[:] = [item for item in items if item.from_plugin]
            for item in items:
                item.wake = False
        return dropped

    def clear(self) -> list[InboxMessage]:
        """Drop everything. Returns the dropped."""
        dropped = [*self.pending]
        self._next_step.clear()
        self._next_turn.clear()
        return dropped

    def postpone_plugins(self) -> None:
        """A turn closes on its own: plugin messages that still wait get a turn each, behind the queued prompts."""
        late = [item for item in self._next_step if item.from_plugin]
        self._next_step[:] = [item for item in self._next_step if not item.from_plugin]
        for item in late:
            item.wake = True
        self._next_turn += late
