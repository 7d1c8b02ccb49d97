"""The tool `list`: what is in a directory (contract tools-and-bash.md §6).

May not know: what is in the files. Invariant: one level, everything in it, in the order of names; what git ignores is
marked, not hidden.
"""

import os
from typing import Final

from agent_loop.tools.files.disk import off_loop
from agent_loop.tools.files.ignoring import Ignored
from agent_loop.tools.files.looking import LookingTool
from agent_loop.tools.files.numbering import readable
from agent_loop.tools.files.opening import open_file
from agent_loop.tools.files.places import place_of, short_path
from agent_loop.tools.files.seam import FileProblem, Place
from agent_loop.tools.files.walking import gitignore_of
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import ToolContext, ToolKind, ToolOutcome
from agent_loop.vocabulary import JsonObject, text_block

ENTRIES: Final = 1000
_SPEC: Final = SchemaSpec(
    {
        "path": Property(
            "string", description="The directory: absolute, or relative to the session's directory (default)."
        )
    }
)


class ListTool(LookingTool):
    """The entries of one directory."""

    name = "list"
    description = (
        "List a directory, one level: directories end in /, links show where they lead, and what git ignores is "
        "marked. To find files in a whole tree use glob."
    )
    parameters = to_json_schema(_SPEC)
    kind: ToolKind = "read"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta {entries}`: how many there are. Raises `FileProblem`."""
        place = place_of(self.start(arguments), context)
        rows = await off_loop(lambda: _rows(place), place, "list", context.signal)
        shown = rows[:ENTRIES]
        if len(rows) > ENTRIES:
            shown.append(f"[{len(rows) - ENTRIES} more entries]")
        return ToolOutcome([text_block("\n".join(shown) or "[the directory is empty]")], meta={"entries": len(rows)})

    def start(self, arguments: JsonObject) -> str:
        return arguments.get("path") or "."

    def title(self, arguments: JsonObject, cwd: str | None) -> str:
        """`List src`."""
        return f"List {short_path(self.start(arguments), cwd)}"


def _rows(place: Place) -> list[str]:
    descriptor = open_file(place.real)
    try:
        if not os.path.isdir(descriptor):
            raise FileProblem(f"{place.path} is a file, not a directory; use read", "NOT_A_DIRECTORY")
        ignored = Ignored(place.real)
        ignored.enter("", gitignore_of(descriptor))
        with os.scandir(descriptor) as entries:
            return [
                readable(_row(entry, descriptor, ignored)) for entry in sorted(entries, key=lambda entry: entry.name)
            ]
    finally:
        os.close(descriptor)


def _row(entry: os.DirEntry[str], directory: int, ignored: Ignored) -> str:
    if entry.is_symlink():
        return f"{entry.name} -> {os.readlink(entry.name, dir_fd=directory)}"
    inner = entry.is_dir(follow_symlinks=False)
    mark = "  (ignored by git)" if ignored.covers(entry.name, directory=inner) else ""
    return f"{entry.name}{'/' if inner else ''}{mark}"
