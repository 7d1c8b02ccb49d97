"""A transcript as a Markdown document.

May not know: files, streams. Invariant: pure; what a program printed stands in fences that it cannot leave, what a
person or a plugin said in quotes; only the model's own Markdown is Markdown.
"""

import re
from collections.abc import Iterable
from typing import Final, assert_never

from acp_bridge.cli.about import About
from acp_bridge.cli.entries import Changed, Entry, Noticed, Planned, Said, ToolRun, TurnEnded, TurnStarted
from acp_bridge.cli.text import difference, unfenced
from acp_bridge.cli.visible import one_line, plain_output, visible

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")
_BACKTICKS: Final = re.compile("`+")
_WORDS: Final = {"user": "User", "thought": "Thought", "context": "Context"}


def beginning(about: About) -> str:
    """The title and the facts."""
    facts = "".join(f"- {name}: {_code(value)}\n" for name, value in about.facts)
    return f"# {_escaped(about.title)}\n\n{facts}"


def entry_text(entry: Entry, *, moment: str = "") -> str:
    """One entry, behind an empty line. `moment`: the time of a turn's start, in words."""
    return "".join(f"\n{part}\n" for part in _parts(entry, moment))


def _parts(entry: Entry, moment: str) -> Iterable[str]:
    match entry:
        case TurnStarted():
            return [f"## Turn {entry.turn} — {moment}"]
        case Said():
            return _said(entry)
        case ToolRun():
            return _run(entry)
        case Noticed():
            described = [_quoted(visible(entry.description))] if entry.description else []
            return [f"**{_escaped(entry.severity)}**: {_escaped(entry.title)}", *described]
        case Planned():
            return [
                "**Plan**",
                "\n".join(f"- [{'x' if done == 'completed' else ' '}] {_escaped(what)}" for done, what in entry.steps),
            ]
        case Changed():
            return [f"*{_escaped(entry.what)}: {_escaped(entry.value)}*"]
        case TurnEnded():
            return [f"**{'Error' if entry.failed else 'Ended'}**: {_escaped(entry.why)}"]
        case _:
            assert_never(entry)


def _said(said: Said) -> list[str]:
    text = visible(said.text).strip("\n")
    if said.speaker == "agent":
        return [text]
    source = f" (from {_escaped(said.source)})" if said.source else ""
    goes_on = " (goes on)" if said.continued else ""
    return [f"**{_WORDS[said.speaker]}**{source}{goes_on}", _quoted(text)]


def _run(run: ToolRun) -> list[str]:
    title = visible(run.title)
    parts = [fenced(f"$ {title}", "console")] if run.command else [f"**Tool** {_code(one_line(title))}"]
    described = [one_line(text) for text in run.described]
    if run.directory:
        described.append(f"in {one_line(run.directory)}")
    if described:
        parts.insert(0, f"*{_escaped(' · '.join(described))}*")
    parts += [fenced(plain_output(text)) for text in (run.output, *map(unfenced, run.texts)) if text]
    parts += [fenced("\n".join(line.text for line in difference(diff)), "diff") for diff in run.diffs]
    ended = "no result is known" if run.status == "unfinished" else run.ended
    if ended or run.status == "failed":
        parts.append(f"*{_escaped(ended or 'failed')}*")
    return parts


def fenced(text: str, language: str = "text") -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _code(text: str) -> str:
    """A code span, whatever is inside."""
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))
