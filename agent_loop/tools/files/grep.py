"""The tool `grep`: lines of files that match a regular expression (contract tools-and-bash.md §6).

May not know: which program searches. Invariant: the same answer in the same order with ripgrep and without it, as far
as the two dialects of regular expressions agree.
"""

import os
from typing import Final

import anyio.to_thread

from agent_loop.tools.files.looking import LookingTool
from agent_loop.tools.files.places import place_of, short_path
from agent_loop.tools.files.seam import FileProblem, Place
from agent_loop.tools.files.searching import MATCHES, search
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import ToolContext, ToolKind, ToolOutcome
from agent_loop.vocabulary import JsonObject, text_block

_SPEC: Final = SchemaSpec(
    {
        "pattern": Property("string", required=True, description="A regular expression, matched within one line."),
        "path": Property(
            "string",
            description="A file, or a directory to search with all below it: absolute, or relative to the session's "
            "directory (default).",
        ),
        "glob": Property("string", description="Only files whose path below it matches, such as *.py or src/**/*.ts."),
    }
)


class GrepTool(LookingTool):
    """Matching lines, with their files and numbers."""

    name = "grep"
    description = (
        f"Search in files for a regular expression; at most {MATCHES} lines, as `<path>:<line>:<text>`, in the order "
        "of the paths. Hidden files are searched; those that git ignores, binary ones and those above 16 MiB are not."
    )
    parameters = to_json_schema(_SPEC)
    kind: ToolKind = "search"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta {matches, more?}`. Raises `FileProblem`."""
        place = place_of(self.start(arguments), context)
        directory, name = await anyio.to_thread.run_sync(_target, place)
        matches, more = await search(
            arguments["pattern"],
            directory=directory,
            name=name,
            glob=arguments.get("glob") or "",
            signal=context.signal,
        )
        above = os.path.dirname(place.path) if name else place.path
        rows = [
            f"{short_path(os.path.join(above, match.path), context.cwd)}:{match.line}:{match.text}" for match in matches
        ]
        meta: JsonObject = {"matches": len(matches)}
        if more:
            rows.append(f"[only the first {MATCHES} lines are shown; narrow the pattern, the path or the glob]")
            meta["more"] = True
        return ToolOutcome([text_block("\n".join(rows) or "[no line matches]")], meta=meta)

    def start(self, arguments: JsonObject) -> str:
        return arguments.get("path") or "."

    def title(self, arguments: JsonObject, cwd: str | None) -> str:
        """`Search for <pattern> in src (*.py)`, the patterns as code."""
        title = f"Search for `{arguments['pattern']}`"
        if arguments.get("path"):
            title += f" in {short_path(arguments['path'], cwd)}"
        return f"{title} (`{arguments['glob']}`)" if arguments.get("glob") else title


def _target(place: Place) -> tuple[str, str]:
    """The directory in which the search process runs, and the one file to search there ("" for all)."""
    if os.path.isdir(place.real):
        return place.real, ""
    if os.path.isfile(place.real):
        return os.path.split(place.real)
    raise FileProblem(f"{place.path} does not exist; look for it with glob or list", "NOT_FOUND")
