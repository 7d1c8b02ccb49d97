"""`sessions show`.

May not know: how a log is kept. Invariant: streaming — an entry is written before the next one is read, and nothing is
kept of it; what was stored reaches the terminal only as `visible` text.
"""

from collections.abc import Callable
from contextlib import aclosing

from acp_bridge.cli.about import NAME_WIDTH, About, about_session
from acp_bridge.cli.arguments import ShowSession
from acp_bridge.cli.entries import Entry, TurnStarted
from acp_bridge.cli.parts import Parts
from acp_bridge.cli.selection import select
from acp_bridge.cli.text import Layout, lines_of, plain
from acp_bridge.cli.transcript import Transcript

_Show = Callable[[Entry, str], None]


async def show_session(parts: Parts, command: ShowSession) -> None:
    """Raises `CommandError`, `SessionStoreError`; what could be read before has been shown."""
    selected = await select(parts.store, command.id)
    log = await parts.store.read(selected.id)
    layout = Layout(full=command.full, colours=parts.coloured, thoughts=command.thoughts)
    show = _begin(parts, about_session(log.header, selected.summary, parts.local_time), layout)
    transcript = Transcript(parts.find_tool, cwd=log.header.cwd)
    async with aclosing(log.events) as events:
        async for event in events:
            for entry in transcript.feed(event):
                show(entry, parts.local_time(entry.time) if isinstance(entry, TurnStarted) else "")
    for entry in transcript.finish():
        show(entry, "")


def _begin(parts: Parts, about: About, layout: Layout) -> _Show:
    out = parts.streams.out
    if layout.colours:
        from acp_bridge.cli.screen import Screen, console_on  # noqa: PLC0415 - plain text need not wait for rich

        screen = Screen(console_on(out))
        screen.begin(about)
        return lambda entry, moment: screen.show(entry, layout, moment=moment)
    out.write(f"{about.title}\n" + "".join(f"{name:<{NAME_WIDTH}}{value}\n" for name, value in about.facts))
    return lambda entry, moment: _write(out.write, entry, layout, moment)


def _write(write: Callable[[str], object], entry: Entry, layout: Layout, moment: str) -> None:
    write(plain(lines_of(entry, layout, moment=moment)))
