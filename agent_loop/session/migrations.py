"""Older log formats, read as the present one (contract session-log.md §1).

May not know: files; nothing here is ever written back. Invariant: a log keeps the format of its header, and what a
later program appends to it is of the present format; so every step leaves an event that is in the newer form already
as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_loop.session.events import LOG_VERSION
from agent_loop.vocabulary import JsonObject

Upgrade = Callable[[JsonObject], JsonObject]
"""From the object of one line to what it is in the next format; pure, the argument stays as it is."""


@dataclass(frozen=True, slots=True)
class Migration:
    """From one format to the next: what becomes of line 1, and of each event (the whole object, not its data)."""

    header: Upgrade
    event: Upgrade


MIGRATIONS: Final[Mapping[int, Migration]] = {}
"""By the version that each one reads. Empty: version 1 is the first format that there was."""


def steps_from(version: int, migrations: Mapping[int, Migration] = MIGRATIONS) -> tuple[Migration, ...] | None:
    """The steps from `version` to the present format, in order; None when there is no way."""
    versions = range(version, LOG_VERSION)
    if version > LOG_VERSION or any(step not in migrations for step in versions):
        return None
    return tuple(migrations[step] for step in versions)
