"""What a transcript consists of.

May not know: where it comes from, how it is shown. Invariant: `Entry` is a closed union; texts are as they were stored,
so whoever shows one makes it fit to be seen first (`visible`).
"""

from dataclasses import dataclass
from typing import Literal

Speaker = Literal["user", "agent", "thought", "context"]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """`time` in epoch ms."""

    turn: int
    time: int


@dataclass(frozen=True, slots=True)
class Said:
    """A message, or a piece of one. `source`: who it is from, when it is neither the user nor the model."""

    speaker: Speaker
    text: str
    source: str | None = None
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Diff:
    """A changed file; `old` None = it was made."""

    path: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A call and its result. `command`: `title` is a command line, `output` what it printed.

    `directory` None: that of the session. `texts` are Markdown. `ended`: how, in words, when there is more to say than
    the status does. `running`: the log is still written.
    """

    title: str
    kind: str
    status: Literal["completed", "failed", "unfinished", "running"]
    command: bool
    directory: str | None
    described: tuple[str, ...]
    output: str | None
    texts: tuple[str, ...]
    diffs: tuple[Diff, ...]
    ended: str | None


@dataclass(frozen=True, slots=True)
class Noticed:
    """A line of the agent to the user."""

    severity: str
    title: str
    description: str | None


@dataclass(frozen=True, slots=True)
class Planned:
    """The whole plan as it was then: (status, what)."""

    steps: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A setting of the session, or its title."""

    what: str
    value: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn that did not simply come to its end; `failed`: through an error."""

    why: str
    failed: bool


Entry = TurnStarted | Said | ToolRun | Noticed | Planned | Changed | TurnEnded
