"""A transcript as lines for a terminal, each with the role that decides how it is coloured there.

May not know: terminals, colours. Invariant: pure; every text has been made visible, so that a line can be printed as it
is — but the lines of a command's output may carry colour sequences when they were asked for.
"""

import difflib
import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, assert_never

from acp_bridge.cli.entries import Changed, Diff, Entry, Noticed, Planned, Said, ToolRun, TurnEnded, TurnStarted
from acp_bridge.cli.visible import coloured_output, one_line, plain_output, shortened, visible

Role = Literal[
    "turn", "user", "thought", "context", "text", "title", "detail", "output", "good", "bad", "note", "added", "removed"
]

HEAD_LINES: Final = 20
TAIL_LINES: Final = 20
LINE_LIMIT: Final = 500
"""Characters of one line of output; `full` has no limits."""
DIFF_LINES: Final = 4000
"""Lines of a file that is still compared."""

OUTPUT_MARK: Final = "  │ "
"""What stands before each line of output."""

_FENCED: Final = re.compile(r"(`{3,})\w*\n(?P<inside>.*?)\n?\1", re.DOTALL)
_MARKS: Final = {"completed": "[x]", "in_progress": "[~]"}


class Line(NamedTuple):
    role: Role
    text: str


class Layout(NamedTuple):
    """`full`: nothing is left out; `colours`: output keeps its own; `thoughts`: the model's are shown."""

    full: bool
    colours: bool
    thoughts: bool


def lines_of(entry: Entry, layout: Layout, *, moment: str = "") -> Iterator[Line]:
    """The lines of an entry; none for a thought that is not wanted. `moment`: the time of a turn's start, in words."""
    match entry:
        case TurnStarted():
            yield Line("turn", f"── turn {entry.turn} · {moment} ──")
        case Said():
            yield from _said(entry, layout)
        case ToolRun():
            yield from _run(entry, layout)
        case Noticed():
            role: Role = "bad" if entry.severity == "error" else "note"
            yield Line(role, f"! {one_line(entry.severity)}: {one_line(entry.title)}")
            if entry.description:
                yield from _indented("detail", visible(entry.description).split("\n"))
        case Planned():
            yield Line("note", "plan")
            yield from _indented(
                "detail", [f"{_MARKS.get(done, '[ ]')} {one_line(what)}" for done, what in entry.steps]
            )
        case Changed():
            yield Line("note", f"~ {one_line(entry.what)}: {one_line(entry.value)}")
        case TurnEnded():
            yield Line("bad" if entry.failed else "note", f"■ {one_line(entry.why)}")
        case _:
            assert_never(entry)


def plain(lines: Iterator[Line]) -> str:
    """The lines as text, behind an empty one; nothing when there are none."""
    text = "\n".join(line.text for line in lines)
    return f"\n{text}\n" if text else ""


def difference(diff: Diff) -> Iterator[Line]:
    """A unified diff; of a file that is too long only how long it is."""
    yield Line("title", f"{one_line(diff.path)}{'' if diff.old is not None else ' (new)'}")
    old, new = visible(diff.old or "").splitlines(), visible(diff.new).splitlines()
    if max(len(old), len(new)) > DIFF_LINES:
        yield Line("detail", f"{len(old)} lines before, {len(new)} lines after")
        return
    for line in list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]:
        yield Line("added" if line[0] == "+" else "removed" if line[0] == "-" else "detail", line)


def unfenced(text: str) -> str:
    """The inside of a text that is one fenced block, which is how cards show what a program printed."""
    fenced = _FENCED.fullmatch(text)
    return fenced["inside"] if fenced else text


def _said(said: Said, layout: Layout) -> Iterator[Line]:
    lines = visible(said.text).strip("\n").split("\n")
    match said.speaker:
        case "agent":
            yield from (Line("text", line) for line in lines)
        case "user":
            yield from _marked("user", "› ", [*_from(said), *lines])
        case "context":
            yield from _marked("context", "» ", [*_from(said), *lines])
        case "thought":
            if layout.thoughts:
                yield from (Line("thought", f"┆ {line}") for line in lines)
        case _:
            assert_never(said.speaker)


def _from(said: Said) -> list[str]:
    return [f"(from {one_line(said.source)})"] if said.source else []


def _run(run: ToolRun, layout: Layout) -> Iterator[Line]:
    yield from _marked("title", "$ " if run.command else "● ", visible(run.title).split("\n"))
    if run.directory:
        yield Line("detail", f"  in {one_line(run.directory)}")
    for text in run.described:
        yield from _indented("detail", visible(text).split("\n"))
    if run.output:
        yield from _output(run.output, layout)
    for text in run.texts:
        yield from _output(unfenced(text), layout)
    for diff in run.diffs:
        yield from (Line(line.role, f"  {line.text}") for line in difference(diff))
    if run.status == "unfinished":
        yield Line("bad", "  └ no result is known")
    elif run.ended or run.status == "failed":
        well = run.status == "completed" and run.ended == "exit 0"
        yield Line("good" if well else "bad", f"  └ {one_line(run.ended or 'failed')}")


def _output(text: str, layout: Layout) -> Iterator[Line]:
    lines = (coloured_output(text) if layout.colours else plain_output(text)).rstrip("\n").split("\n")
    tail: list[str] = []
    if not layout.full:
        lines, tail = shortened(list(map(_cut, lines)), head=HEAD_LINES, tail=TAIL_LINES)
    yield from (Line("output", OUTPUT_MARK + line) for line in (*lines, *tail))


def _cut(line: str) -> str:
    if len(line) <= LINE_LIMIT:
        return line
    # without its colours: a sequence that is cut in two would be none any more
    bare = plain_output(line)
    return f"{bare[:LINE_LIMIT]} … {len(bare) - LINE_LIMIT} characters left out" if len(bare) > LINE_LIMIT else line


def _marked(role: Role, mark: str, lines: list[str]) -> Iterator[Line]:
    yield Line(role, f"{mark}{lines[0]}")
    yield from _indented(role, lines[1:])


def _indented(role: Role, lines: list[str]) -> Iterator[Line]:
    return (Line(role, f"  {line}") for line in lines)
