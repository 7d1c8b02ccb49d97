"""The two pages, without what is live on them.

May not know: HTTP. Invariant: pure; every stored text is escaped; addresses are relative, so that the token stands in
none of them.
"""

import html
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from urllib.parse import quote

from acp_bridge.cli import times
from acp_bridge.cli.visible import one_line, size_text
from agent_loop.session.store import SessionSummary

PAGE_ROWS = 50
"""Sessions on one page of the list."""


def list_page(rows: Sequence[SessionSummary], page: int, *, now_ms: int, short_path: Callable[[str], str]) -> str:
    """`rows` are all sessions, `page` counts from 1; one that is not there is the nearest that is."""
    last = max(1, -(-len(rows) // PAGE_ROWS))
    page = min(max(page, 1), last)
    shown = rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    cells = "".join(_row(row, now_ms, short_path) for row in shown)
    turns = [f'<a rel="prev" href="?page={page - 1}">Newer</a>'] if page > 1 else []
    turns += [f"Page {page} of {last}"] if last > 1 else []
    turns += [f'<a rel="next" href="?page={page + 1}">Older</a>'] if page < last else []
    empty = "" if rows else '<p class="quiet">No sessions are stored yet.</p>'
    hidden = "" if rows else "hidden"
    return _template("list_page.html").substitute(rows=cells, hidden=hidden, empty=empty, turns=" ".join(turns))


def session_page(session_id: str, title: str | None) -> str:
    """The page of a session; its script asks for the rest."""
    shown = html.escape(one_line(title or "untitled session"))
    return _template("session_page.html").substitute(title=shown, name=html.escape(quote(session_id, safe="")))


def resource(name: str) -> str:
    """A text of this package."""
    return files("acp_bridge.ui").joinpath(name).read_text(encoding="utf-8")


@cache
def transcript_style() -> str:
    """The style of exported pages, for the same entries."""
    page = files("acp_bridge.cli").joinpath("session_page.html").read_text(encoding="utf-8")
    return page.partition("<style>")[2].partition("</style>")[0]


def _row(row: SessionSummary, now_ms: int, short_path: Callable[[str], str]) -> str:
    title = html.escape(one_line(row.title or "untitled session"))
    directory = html.escape(one_line(short_path(row.cwd))) if row.cwd else "–"
    address = html.escape(quote(row.id, safe=""))
    return (
        f'<tr><td><a href="session/{address}">{title}</a></td><td class="path">{directory}</td>'
        f'<td title="{times.iso(row.updated_at)}">{times.ago(row.updated_at, now_ms)}</td>'
        f'<td class="number">{row.event_count}</td><td class="number">{size_text(row.size)}</td></tr>\n'
    )


@cache
def _template(name: str) -> Template:
    return Template(resource(name))
