"""The tool `glob`: files by the pattern of their path (contract tools-and-bash.md §6).

May not know: what is in the files. Invariant: no link is followed out of the directory; the order is that of the paths.
"""

import os
from typing import Final

from agent_loop.tools.files.disk import off_loop
from agent_loop.tools.files.ignoring import Ignored
from agent_loop.tools.files.looking import LookingTool
from agent_loop.tools.files.numbering import readable
from agent_loop.tools.files.opening import open_file
from agent_loop.tools.files.patterns import fixed_directory, path_pattern
from agent_loop.tools.files.places import place_of, short_path
from agent_loop.tools.files.seam import FileProblem, Place
from agent_loop.tools.files.walking import walk
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import ToolContext, ToolKind, ToolOutcome
from agent_loop.vocabulary import JsonObject, text_block

PATHS: Final = 500
_SPEC: Final = SchemaSpec(
    {
        "pattern": Property(
            "string",
            required=True,
            description="Such as src/**/*.py or *.{ts,tsx}: * and ? within a name, ** over directories. Without a "
            "slash it is looked for at any depth. Absolute, or relative to the session's directory.",
        ),
    }
)


class GlobTool(LookingTool):
    """The paths of files that match a pattern."""

    name = "glob"
    description = (
        f"Find files by their path; at most {PATHS}, in the order of their paths. Hidden files are found, those that "
        "git ignores are not, links are not followed. To search in files use grep."
    )
    parameters = to_json_schema(_SPEC)
    kind: ToolKind = "search"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta {files, more?}`. Raises `FileProblem`."""
        pattern: str = arguments["pattern"]
        rest = fixed_directory(pattern)[1]
        if not rest:
            raise FileProblem(f"{pattern!r} names no file; a pattern is such as src/**/*.py", "INVALID_ARGS")
        place = place_of(self.start(arguments), context)
        found = await off_loop(
            lambda: _paths(place, rest, context, anchored="/" in pattern), place, "search", context.signal
        )
        shown = [readable(short_path(os.path.join(place.path, path), context.cwd)) for path in found[:PATHS]]
        meta: JsonObject = {"files": len(shown)}
        if len(found) > PATHS:
            shown.append(f"[only the first {PATHS} are shown; narrow the pattern]")
            meta["more"] = True
        return ToolOutcome([text_block("\n".join(shown) or "[no file matches]")], meta=meta)

    def start(self, arguments: JsonObject) -> str:
        return fixed_directory(arguments["pattern"])[0] or "."

    def title(self, arguments: JsonObject, cwd: str | None) -> str:  # noqa: ARG002 - a pattern is shown as it was written
        """`Find src/**/*.py`, the pattern as code: its stars are no Markdown."""
        return f"Find `{arguments['pattern']}`"


def _paths(place: Place, rest: str, context: ToolContext, *, anchored: bool) -> list[str]:
    """One more than are shown, if there are."""
    wanted = path_pattern(rest, anchored=anchored)
    descriptor = open_file(place.real)
    try:
        if not os.path.isdir(descriptor):
            raise FileProblem(f"{place.path} is not a directory", "NOT_A_DIRECTORY")
        found: list[str] = []
        for file in walk(descriptor, Ignored(place.real), stopped=lambda: context.signal.aborted):
            if not file.ignored and wanted.fullmatch(file.path):
                found.append(file.path)
                if len(found) > PATHS:
                    break
        return found
    finally:
        os.close(descriptor)
