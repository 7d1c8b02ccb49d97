"""The tool `edit`: one text in a file becomes another (contract tools-and-bash.md §6).

May not know: where the text is kept. Invariant: everything outside the replaced places stays as it was, byte by byte.
"""

from typing import Final

from agent_loop.tools.files.changing import ChangingTool, Rewrite
from agent_loop.tools.files.layout import Layout
from agent_loop.tools.files.matching import line_of, spans_of
from agent_loop.tools.files.numbering import numbered, window_of
from agent_loop.tools.files.places import FILE_PATH
from agent_loop.tools.files.seam import FileProblem
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.vocabulary import JsonObject

_SPEC: Final = SchemaSpec(
    {
        "file_path": FILE_PATH,
        "old_string": Property(
            "string",
            required=True,
            description="The text to replace, exactly as it stands in the file, white space included, without the line "
            "numbers that read shows. Long enough to stand there once.",
        ),
        "new_string": Property("string", required=True, description="The text to put there."),
        "replace_all": Property("boolean", description="Replace every place where old_string stands; default false."),
    }
)
_AROUND: Final = 3
_SNIPPET: Final = 40


class EditTool(ChangingTool):
    """Replaces exact text in a file."""

    name = "edit"
    description = (
        "Replace text in a file that has been read before. old_string must match exactly and stand there once, unless "
        "replace_all is set. Line ends are taken as line feeds; those of the file stay as they are."
    )
    parameters = to_json_schema(_SPEC)
    verb = "Edit"

    def rewrite(self, arguments: JsonObject, old: str | None, path: str) -> Rewrite:
        """The old text with its places replaced."""
        wanted = arguments["old_string"].replace("\r\n", "\n")
        new = arguments["new_string"].replace("\r\n", "\n")
        if not wanted:
            raise FileProblem(
                "old_string is empty; name the text to replace, or use write for a whole file", "NO_MATCH"
            )
        if wanted == new:
            raise FileProblem("old_string and new_string are the same; there is nothing to change", "NO_MATCH")
        if old is None:
            raise FileProblem(
                f"{path} does not exist; look for it with glob or list, or create it with write", "NOT_FOUND"
            )
        layout = Layout(old)
        spans = spans_of(layout.body, wanted, path=path, replace_all=bool(arguments.get("replace_all")))
        text = layout.replaced(spans, new)
        return Rewrite(text, _told(text, spans, layout.body, new, path))


def _told(text: str, spans: list[tuple[int, int]], body: str, new: str, path: str) -> str:
    line = line_of(body, spans[0][0])
    if len(spans) > 1:
        return f"Edited {path}: {len(spans)} places, the first in line {line}."
    first = max(line - _AROUND, 1)
    count = min(line + new.count("\n") + _AROUND - first + 1, _SNIPPET)
    return f"Edited {path}; it now reads:\n{numbered(window_of(text, first=first, count=count))[0]}"
