"""A transcript as one HTML page that loads nothing, runs nothing and reads well in light and in dark.

May not know: files, streams. Invariant: every stored text is escaped; the model's Markdown becomes headings, lists,
tables and code, but never a link, an image or HTML of its own; the page forbids scripts and every request.
"""

import html
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, assert_never

from acp_bridge.cli.about import About
from acp_bridge.cli.entries import Changed, Diff, Entry, Noticed, Planned, Said, ToolRun, TurnEnded, TurnStarted
from acp_bridge.cli.text import difference, unfenced
from acp_bridge.cli.visible import one_line, plain_output, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

OPEN_LINES = 12
"""Output of up to so many lines is shown at once, longer output when one opens it."""

_REFUSED = ("link", "image", "autolink", "html_inline", "html_block", "reference")
_NAMES = {"user": "User", "agent": "Agent", "thought": "Thought", "context": "Context"}


def beginning(about: About) -> str:
    """The page down to the first entry."""
    facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in about.facts)
    return _page()[0].substitute(title=_text(about.title), facts=facts)


def ending() -> str:
    """The page from the last entry on."""
    return _page()[1]


def entry_html(entry: Entry, *, moment: str = "") -> str:
    """One entry. `moment`: the time of a turn's start, in words."""
    return "".join(_parts(entry, moment)) + "\n"


def _parts(entry: Entry, moment: str) -> Iterator[str]:
    match entry:
        case TurnStarted():
            yield f'<h2 id="turn-{entry.turn}">Turn {entry.turn} <time>{_text(moment)}</time></h2>'
        case Said():
            yield from _said(entry)
        case ToolRun():
            yield from _run(entry)
        case Noticed():
            described = f"<pre>{_text(entry.description)}</pre>" if entry.description else ""
            kind = "bad" if entry.severity == "error" else "note"
            yield f'<div class="{kind}"><b>{_line(entry.severity)}</b> {_line(entry.title)}{described}</div>'
        case Planned():
            steps = "".join(
                f'<li class="{"done" if done == "completed" else "open"}">{_line(what)} <i>{_line(done)}</i></li>'
                for done, what in entry.steps
            )
            yield f'<div class="note"><b>plan</b><ul class="plan">{steps}</ul></div>'
        case Changed():
            yield f'<div class="note"><b>{_line(entry.what)}</b> {_line(entry.value)}</div>'
        case TurnEnded():
            yield f'<div class="{"bad" if entry.failed else "note"}">{_line(entry.why)}</div>'
        case _:
            assert_never(entry)


def _said(said: Said) -> Iterator[str]:
    name = _NAMES[said.speaker] + (f" (from {_line(said.source)})" if said.source else "")
    name += " (goes on)" if said.continued else ""
    match said.speaker:
        case "agent":
            yield f'<article class="agent" aria-label="{name}">{_markdown().render(visible(said.text))}</article>'
        case "thought":
            yield f'<details class="thought"><summary>{name}</summary><pre>{_text(said.text)}</pre></details>'
        case "user" | "context":
            yield f'<article class="{said.speaker}"><b>{name}</b><pre>{_text(said.text)}</pre></article>'
        case _:
            assert_never(said.speaker)


def _run(run: ToolRun) -> Iterator[str]:
    mark = "$ " if run.command else ""
    yield f'<section class="tool"><pre class="title">{mark}{_text(run.title)}</pre>'
    described = [_line(text) for text in run.described]
    if run.directory:
        described.append(f"in <code>{_line(run.directory)}</code>")
    if described:
        yield f'<p class="quiet">{" · ".join(described)}</p>'
    for text in (run.output, *map(unfenced, run.texts)):
        if text:
            yield _output(plain_output(text))
    for diff in run.diffs:
        yield _diff(diff)
    if run.status == "running":
        yield '<p class="quiet ended">running</p>'
    ended = "no result is known" if run.status == "unfinished" else run.ended
    if ended or run.status == "failed":
        well = run.status == "completed" and run.ended == "exit 0"
        yield f'<p class="{"good" if well else "bad"} ended">{_line(ended or "failed")}</p>'
    yield "</section>"


def _output(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    opened = " open" if len(lines) <= OPEN_LINES else ""
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    shown = _text("\n".join(lines))
    return f"<details{opened}><summary>output, {count}</summary><pre>{shown}</pre></details>"


def _diff(diff: Diff) -> str:
    title, *lines = difference(diff)
    body = "\n".join(
        f"<ins>{_text(line.text)}</ins>"
        if line.role == "added"
        else f"<del>{_text(line.text)}</del>"
        if line.role == "removed"
        else _text(line.text)
        for line in lines
    )
    return f"<details open><summary>{_text(title.text)}</summary><pre>{body}</pre></details>"


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 40 ms that the other commands need not wait for

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(list(_REFUSED))


@cache
def _page() -> tuple[Template, str]:
    template = files("acp_bridge.cli").joinpath("session_page.html").read_text(encoding="utf-8")
    before, _, after = template.partition("$entries")
    return Template(before), after


def _text(text: str) -> str:
    return html.escape(visible(text))


def _line(text: str) -> str:
    return _text(one_line(text))
