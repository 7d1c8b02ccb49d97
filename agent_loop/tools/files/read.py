"""The tool `read`: numbered lines of a text file (contract tools-and-bash.md §6).

May not know: where the text comes from. Invariant: what the model was shown of a file is remembered, so that a later
change of somebody else is noticed.
"""

import os
from difflib import get_close_matches
from functools import partial
from typing import Final

import anyio.to_thread

from agent_loop.tools.files.looking import LookingTool
from agent_loop.tools.files.numbering import LINES, footer, numbered, window_of
from agent_loop.tools.files.places import FILE_PATH, place_of, short_path
from agent_loop.tools.files.seam import FileProblem, LineWindow, Place
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import ToolContext, ToolKind, ToolOutcome
from agent_loop.vocabulary import JsonObject, text_block

_SPEC: Final = SchemaSpec(
    {
        "file_path": FILE_PATH,
        "offset": Property("integer", description="The first line to read, counted from 1; default 1."),
        "limit": Property("integer", description=f"How many lines to read; default and at most {LINES}."),
    }
)
_NAMES: Final = 2000


class ReadTool(LookingTool):
    """Lines of one file, numbered from 1."""

    name = "read"
    description = (
        f"Read a text file. Lines come numbered, as `<number><tab><text>`; at most {LINES} lines, 50 KiB, and 2000 "
        "characters of each line; a note at the end says what is left. Read a file before you change it."
    )
    parameters = to_json_schema(_SPEC)
    kind: ToolKind = "read"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta {line, lines, total?}`: the first line shown, how many, how many there are. Raises `FileProblem`."""
        place = place_of(arguments["file_path"], context)
        first, count = int(arguments.get("offset", 1)), int(arguments.get("limit", LINES))
        if first < 1 or count < 1:
            raise FileProblem("offset and limit count from 1", "INVALID_ARGS")
        window = await _window(place, context, first=first, count=min(count, LINES))
        if window.total is not None and first > max(window.total, 1):
            raise FileProblem(
                f"offset {first} is behind the end: {place.path} has {window.total} lines", "INVALID_ARGS"
            )
        text, shown = numbered(window)
        rest = footer(window, shown)
        meta: JsonObject = {"line": first, "lines": shown}
        if window.total is not None:
            meta["total"] = window.total
        body = text or "[the file is empty]"
        return ToolOutcome([text_block(body if rest is None else f"{body}\n{rest}")], meta=meta)

    def start(self, arguments: JsonObject) -> str:
        return arguments["file_path"]

    def line(self, arguments: JsonObject) -> int | None:
        return int(arguments.get("offset", 1))

    def title(self, arguments: JsonObject, cwd: str | None) -> str:
        """`Read src/a.py (1 - 20)`."""
        first, count = arguments.get("offset"), arguments.get("limit")
        title = f"Read {short_path(arguments['file_path'], cwd)}"
        if count is not None:
            return f"{title} ({int(first or 1)} - {int(first or 1) + int(count) - 1})"
        return title if first is None else f"{title} (from line {int(first)})"


async def _window(place: Place, context: ToolContext, *, first: int, count: int) -> LineWindow:
    try:
        text = await context.files.read(place, signal=context.signal)
    except FileProblem as problem:
        if problem.code != "TOO_LARGE":
            raise
        return await context.files.window(place, first=first, count=count, signal=context.signal)
    if text is None:
        raise await _missing(place)
    return await anyio.to_thread.run_sync(partial(_seen, context, place, text, first=first, count=count))


def _seen(context: ToolContext, place: Place, text: str, *, first: int, count: int) -> LineWindow:
    context.files.seen.note(place, text)
    return window_of(text, first=first, count=count)


async def _missing(place: Place) -> FileProblem:
    """There is no such file; if one in its directory has nearly its name, that is said."""
    near = await anyio.to_thread.run_sync(_similar, place) if place.inside else ""
    hint = f"; did you mean {near}?" if near else "; look for it with glob or list"
    return FileProblem(f"{place.path} does not exist{hint}", "NOT_FOUND")


def _similar(place: Place) -> str:
    directory, name = os.path.split(place.real)
    try:
        names = os.listdir(directory)[:_NAMES]
    except OSError:
        return ""
    close = get_close_matches(name, names, 1)
    return os.path.join(os.path.dirname(place.path), close[0]) if close else ""
