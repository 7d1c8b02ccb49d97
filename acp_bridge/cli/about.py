"""What stands above a transcript.

May not know: formats. Invariant: everything here is fit to be seen (`visible`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from acp_bridge.cli.visible import one_line, size_text
from agent_loop.session.events import SessionHeader
from agent_loop.session.store import SessionSummary

NAME_WIDTH: Final = 13
"""Characters that the names of the facts take up in a column."""


@dataclass(frozen=True, slots=True)
class About:
    """`facts`: (name, value), in the order in which they are shown."""

    title: str
    facts: tuple[tuple[str, str], ...]


def about_session(
    header: SessionHeader, summary: SessionSummary | None, moment: Callable[[int], str], *, title: str | None = None
) -> About:
    """`summary` None: a session that a listing leaves out; `title` then says what it is called.

    `moment` writes epoch ms.
    """
    facts = [("session", header.id), ("directory", header.cwd or "none"), ("created", moment(header.created_at))]
    if header.parent_session:
        facts.append(("forked from", header.parent_session))
    facts += _counted(summary, moment) if summary else []
    called = (summary and summary.title) or title or "untitled session"
    return About(one_line(called), tuple((name, one_line(value)) for name, value in facts))


def _counted(summary: SessionSummary, moment: Callable[[int], str]) -> list[tuple[str, str]]:
    log = f"{summary.event_count} events, {size_text(summary.size)}"
    return [("updated", moment(summary.updated_at)), ("log", log)]
