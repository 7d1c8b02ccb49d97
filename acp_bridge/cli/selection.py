"""Which session an ID on the command line means.

May not know: what is done with it. Invariant: an abbreviation means exactly one stored session, or is refused; a whole
id always means itself.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from acp_bridge.cli.visible import one_line
from agent_loop.session.store import SessionNotFoundError, SessionStore, SessionSummary

SHORTEST: Final = 8
_NAMED: Final = 5


class CommandError(Exception):
    """The command could not be carried out; the text says why, and what helps."""


class Selected(NamedTuple):
    """`summary` None: it is stored, but a listing leaves it out (its header cannot be read)."""

    id: str
    summary: SessionSummary | None


async def select(store: SessionStore, given: str) -> Selected:
    """Raises `CommandError` when `given` means several sessions, `SessionNotFoundError` when it means none."""
    rows = await store.list()
    matching = [row for row in rows if row.id.startswith(given)]
    chosen = [row for row in matching if row.id == given] or matching
    if len(chosen) == 1:
        return Selected(chosen[0].id, chosen[0])
    if chosen:
        named = ", ".join(row.id for row in chosen[:_NAMED])
        more = ", …" if len(chosen) > _NAMED else ""
        raise CommandError(one_line(f"{given!r} may mean {len(chosen)} sessions ({named}{more}); write more of the id"))
    if given and store.exists(given):
        return Selected(given, None)
    raise SessionNotFoundError(given)


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Of each id a beginning that no other one has, at least 8 characters of it."""
    ordered = sorted(ids)
    needed = dict.fromkeys(ordered, SHORTEST)
    for one, other in pairwise(ordered):
        pairs = enumerate(zip(one, other, strict=False), start=1)
        length = next((place for place, (a, b) in pairs if a != b), len(one) + 1)
        needed[one] = max(needed[one], length)
        needed[other] = max(needed[other], length)
    return {session_id: session_id[:length] for session_id, length in needed.items()}
