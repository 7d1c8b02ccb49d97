"""What `read`, `list`, `glob` and `grep` share: they change nothing, start at one path, and answer in lines.

May not know: which of them it is. Invariant: the card is a pure function of arguments and result, its text fenced so
that an editor does not take it for Markdown.
"""

from abc import abstractmethod

from agent_loop.tools.files.places import shown_path
from agent_loop.tools.seam import CallCard, Effect, GenericCard, ResultCard, Subject, Tool, ToolKind, resolved_path
from agent_loop.vocabulary import Block, JsonObject, text_block


class LookingTool(Tool):
    """A tool that only looks. Its outcome has `meta` exactly when it is no error."""

    effect: Effect = "read"
    concurrency_safe = True
    kind: ToolKind

    @abstractmethod
    def start(self, arguments: JsonObject) -> str:
        """The path where it looks, as the model wrote it or as it follows from the arguments."""

    @abstractmethod
    def title(self, arguments: JsonObject, cwd: str | None) -> str:
        """The title of the card."""

    def line(self, arguments: JsonObject) -> int | None:  # noqa: ARG002 - only reading begins in a line
        """The 1-based line where it begins to look."""
        return None

    def subject(self, arguments: JsonObject, cwd: str) -> Subject:
        """The path where it looks."""
        return Subject(paths=(resolved_path(cwd, self.start(arguments)),))

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:  # noqa: ARG002 - looking has no preview
        """Title and place."""
        location: JsonObject = {"path": shown_path(self.start(arguments), cwd)}
        line = self.line(arguments)
        if line is not None:
            location["line"] = line
        return GenericCard(self.title(arguments, cwd), self.kind, locations=[location])

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:  # noqa: ARG002 - the text as it is
        """The lines in a fence; an error as it is."""
        if meta is None:
            return None
        return GenericCard("", self.kind, [text_block(fenced(block["text"])) for block in content])


def fenced(text: str) -> str:
    """`text` in a Markdown fence that no run of backticks in it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
