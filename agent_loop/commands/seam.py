"""The command seam: what a slash command declares, is given, and answers (contract acp.md §5).

May not know: ACP, how an answer is shown. Invariant: a command's answer is Markdown text for a person; it never reaches
the model's history.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from agent_loop.vocabulary import Block, Usage


@dataclass(frozen=True, slots=True)
class BackgroundFact:
    """A background command of the session that still runs."""

    id: str
    command: str


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """How one agent stands at this moment. `turns` counts those started; `usage` is that of the last model call.

    `thinking` is its level (None: the model has none to choose), `context` what is used of the window and the window
    itself, in tokens, `cost` amount and currency of the whole session; each None when it is not known.
    """

    session_id: str
    cwd: str
    provider: str
    model: str
    mode: str
    status: Literal["idle", "running"]
    turns: int
    title: str | None = None
    usage: Usage | None = None
    background: tuple[BackgroundFact, ...] = ()
    thinking: str | None = None
    context: tuple[int, int] | None = None
    cost: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """`text` is Markdown; `ok` False means that the command could not do what was asked, and `text` says why."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Where a command runs, and what it may change there.

    `rename` gives the session another title; `compact` has the conversation summarised, in a turn of its own, with
    these instructions; `blocks` are the prompt's other blocks (attachments), beside the line.
    """

    facts: AgentFacts
    rename: Callable[[str], None]
    compact: Callable[[str], Awaitable[CommandResult]]
    blocks: tuple[Block, ...] = ()


class Command(ABC):
    """One slash command. `name` as `[a-z][a-z0-9_-]*`, without slash; `hint` describes the argument, None = takes none.

    `needs_idle`: what it does is a turn of its own, which queues like a prompt; the others run at once, also while a
    turn runs.
    """

    name: str
    description: str
    hint: str | None = None
    needs_idle: bool = False

    @abstractmethod
    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """Run with the text behind the name, stripped. Cancellation ends it at once."""
