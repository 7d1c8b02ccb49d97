"""`/title`: what this session is called.

May not know: where a title is kept, who shows it. Invariant: without an argument nothing changes.
"""

from agent_loop.commands.seam import Command, CommandContext, CommandResult
from agent_loop.session.title import short_title


class TitleCommand(Command):
    """Shows the title, or sets it; it may come before the first prompt, which then does not change it."""

    name = "title"
    description = "Show the title of this session, or set it"
    hint = "new title"

    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """The title as it now is."""
        if not argument:
            return CommandResult(ok=True, text=_shown(context.facts.title))
        title = short_title(argument)
        if title is None:
            return CommandResult(ok=False, text="That title has no visible character; the session keeps its own.")
        context.rename(title)
        return CommandResult(ok=True, text=_shown(title))


def _shown(title: str | None) -> str:
    if title is None:
        return "This session has no title yet; its first prompt will give it one, or `/title` and a text of yours."
    return f"Title: {title}"
