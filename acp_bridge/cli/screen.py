"""A transcript on a real terminal: colours, and the model's Markdown rendered.

May not know: sessions, files. Invariant: nothing but our own styles, and the colours of a command's output, acts on the
terminal: links show where they lead, hidden text is shown. Colours are those of the terminal's own theme; NO_COLOR and
TERM=dumb are respected.
"""

from typing import Final, TextIO

from markdown_it import MarkdownIt
from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from acp_bridge.cli.about import NAME_WIDTH, About
from acp_bridge.cli.entries import Entry, Said
from acp_bridge.cli.text import OUTPUT_MARK, Layout, Role, lines_of
from acp_bridge.cli.visible import visible

_STYLES: Final[dict[Role, str]] = {
    "turn": "blue bold",
    "user": "cyan bold",
    "thought": "dim italic",
    "context": "dim",
    "text": "",
    "title": "bold",
    "detail": "dim",
    "output": "",
    "good": "green",
    "bad": "red",
    "note": "yellow",
    "added": "green",
    "removed": "red",
}
_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def console_on(stream: TextIO) -> Console:
    """A console that adds nothing of its own accord."""
    return Console(file=stream, highlight=False, markup=False, emoji=False)


class Screen:
    """Prints one entry after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begin(self, about: About) -> None:
        """The title and the facts."""
        self._console.print(Text(about.title, style="bold"), soft_wrap=True)
        for name, value in about.facts:
            self._console.print(Text.assemble((f"{name:<{NAME_WIDTH}}", "dim"), value), soft_wrap=True)

    def show(self, entry: Entry, layout: Layout, *, moment: str = "") -> None:
        """One entry, behind an empty line."""
        if isinstance(entry, Said) and entry.speaker == "agent":
            self._console.print()
            self._console.print(_markdown(entry.text))
            return
        decoder = AnsiDecoder()
        lines = [
            _output(decoder, line.text) if line.role == "output" else Text(line.text, _STYLES[line.role])
            for line in lines_of(entry, layout, moment=moment)
        ]
        if lines:
            self._console.print()
            self._console.print(Text("\n").join(lines), soft_wrap=True)


def _markdown(text: str) -> Markdown:
    shown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    # not rich's own parser: that one lets text that looks like HTML vanish
    shown.parsed = _PARSER.parse(visible(text))
    return shown


def _output(decoder: AnsiDecoder, line: str) -> Text:
    text = decoder.decode_line(line.removeprefix(OUTPUT_MARK))
    text.stylize("not conceal")
    return Text.assemble((OUTPUT_MARK, "dim"), text)
