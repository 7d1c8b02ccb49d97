"""`sessions list`.

May not know: logs. Invariant: what is listed is what the store lists; for programs, every field is exact.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from acp_bridge.cli import times
from acp_bridge.cli.arguments import ListSessions
from acp_bridge.cli.parts import Parts, same_text
from acp_bridge.cli.selection import short_ids
from acp_bridge.cli.visible import one_line, size_text
from agent_loop.session.store import SessionSummary

_COLUMNS = ("ID", "TITLE", "DIRECTORY", "UPDATED", "EVENTS", "SIZE")
_TITLE, _DIRECTORY, _UPDATED = 1, 2, 3
_AGO = re.compile(r".*\((.*)\)")
_NUMBERS = {"EVENTS", "SIZE"}
_STYLES = {"ID": "cyan", "TITLE": "bold", "UPDATED": "green", "EVENTS": "dim", "SIZE": "dim"}
_GAP = "  "


async def list_sessions(parts: Parts, command: ListSessions) -> None:
    """Raises `SessionStoreError`."""
    cwd = None if command.cwd is None else same_text(command.cwd)
    every = await parts.store.list()
    rows = (every if cwd is None else await parts.store.list(cwd))[: command.limit]
    if command.json:
        parts.streams.out.write(json.dumps([_record(row) for row in rows], indent=2) + "\n")
    elif not rows:
        where = "" if cwd is None else f" for {parts.short_path(cwd)}"
        parts.streams.tell(f"no sessions are stored{where}")
    else:
        short = short_ids(row.id for row in every)
        cells = [_cells(parts, row, short[row.id]) for row in rows]
        (_coloured if parts.coloured else _plain)(parts, cells)


def _record(row: SessionSummary) -> dict[str, Any]:
    return {
        "id": row.id,
        "title": row.title,
        "cwd": row.cwd,
        "createdAt": times.iso(row.created_at),
        "updatedAt": times.iso(row.updated_at),
        "events": row.event_count,
        "size": row.size,
    }


def _cells(parts: Parts, row: SessionSummary, short_id: str) -> tuple[str, ...]:
    ago = times.ago(row.updated_at, parts.runtime.now_ms())
    return tuple(
        map(
            one_line,
            (
                short_id,
                row.title or "–",
                parts.short_path(row.cwd) if row.cwd else "–",
                f"{parts.local_time(row.updated_at)} ({ago})",
                str(row.event_count),
                size_text(row.size),
            ),
        )
    )


def _plain(parts: Parts, cells: list[tuple[str, ...]]) -> None:
    widths = _widths(len, cells)
    for row in (_COLUMNS, *cells):
        padded = (
            cell.rjust(width) if name in _NUMBERS else cell.ljust(width)
            for name, cell, width in zip(_COLUMNS, row, widths, strict=True)
        )
        parts.streams.out.write(_GAP.join(padded) + "\n")


def _coloured(parts: Parts, cells: list[tuple[str, ...]]) -> None:
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - only for eyes: a script need not wait for it
    from rich.text import Text  # noqa: PLC0415 - only for eyes: a script need not wait for it

    from acp_bridge.cli.screen import console_on  # noqa: PLC0415 - it imports rich

    console = console_on(parts.streams.out)
    room = console.width - len(_GAP) * (len(_COLUMNS) - 1)
    widths = _widths(cell_len, cells)
    if sum(widths) > room:
        cells = [(*row[:_UPDATED], _AGO.sub(r"\1", row[_UPDATED]), *row[_UPDATED + 1 :]) for row in cells]
        widths = _widths(cell_len, cells)
    too_much = sum(widths) - room
    # the two that may be long give way: first the directory, of which the end says most, then the title
    for column, least in ((_DIRECTORY, 20), (_TITLE, 20), (_DIRECTORY, len("DIRECTORY"))):
        given_up = max(0, min(too_much, widths[column] - least))
        widths[column] -= given_up
        too_much -= given_up
    for row in (_COLUMNS, *cells):
        line = Text()
        for column, (name, cell, width) in enumerate(zip(_COLUMNS, row, widths, strict=True)):
            fitted = cell.rjust(width) if name in _NUMBERS else cell
            if (long := cell_len(cell) - width) > 0:
                fitted = "…" + cell[long + 1 :] if column == _DIRECTORY else set_cell_size(cell, width - 1) + "…"
            style = "dim" if row is _COLUMNS else _STYLES.get(name, "")
            line.append(set_cell_size(fitted, width), style).append(_GAP)
        line.rstrip()
        console.print(line, soft_wrap=True)


def _widths(length: Callable[[str], int], cells: list[tuple[str, ...]]) -> list[int]:
    return [max(map(length, column)) for column in zip(_COLUMNS, *cells, strict=True)]
