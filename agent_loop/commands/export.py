"""`/export`: the conversation as a Markdown file beside the work.

May not know: formats, files. Invariant: what is written is named; nothing that exists is touched.
"""

from collections.abc import Awaitable, Callable

from agent_loop.commands.seam import Command, CommandContext, CommandResult

WriteSession = Callable[[str, str], Awaitable[str]]
"""Write the session of an id to a path as a person gave it ("": choose one); returns the path written.

Raises `OSError` and `HarnessError`."""


class ExportCommand(Command):
    """Writes the session as it is; `write` chooses a name in the session's directory when none is given."""

    name = "export"
    description = "Write this conversation to a Markdown file"
    hint = "file"

    def __init__(self, write: WriteSession) -> None:
        self._write = write

    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """The path that was written."""
        try:
            path = await self._write(context.facts.session_id, argument)
        except FileExistsError as error:
            return CommandResult(ok=False, text=f"`{error.filename}` exists; give another name.")
        except OSError as error:
            return CommandResult(ok=False, text=f"Not written: {error.strerror}: `{error.filename}`")
        return CommandResult(ok=True, text=f"Written: `{path}`")
