"""The tool `write`: a whole file, new or in the place of the old one (contract tools-and-bash.md §6).

May not know: where the text is kept. Invariant: byte order mark and line ends of an old file stay.
"""

from typing import Final

from agent_loop.tools.files.changing import ChangingTool, Rewrite
from agent_loop.tools.files.layout import Layout
from agent_loop.tools.files.places import FILE_PATH
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.vocabulary import JsonObject

_SPEC: Final = SchemaSpec(
    {
        "file_path": FILE_PATH,
        "content": Property("string", required=True, description="The whole text of the file."),
    }
)


class WriteTool(ChangingTool):
    """Creates a file, or replaces its whole text."""

    name = "write"
    description = (
        "Create a file, with the directories above it, or replace the whole text of one. A file that exists must have "
        "been read before. To change a part of a file use edit."
    )
    parameters = to_json_schema(_SPEC)
    verb = "Write"

    def rewrite(self, arguments: JsonObject, old: str | None, path: str) -> Rewrite:
        """The given text, in the layout of the old one."""
        content: str = arguments["content"]
        text = content if old is None else Layout(old).rewritten(content)
        count = text.count("\n") + (not text.endswith("\n") and text != "")
        lines = "1 line" if count == 1 else f"{count} lines"
        return Rewrite(text, f"{'Created' if old is None else 'Replaced'} {path} ({lines}).")
