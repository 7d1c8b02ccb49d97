"""`/help`: the commands there are.

May not know: which ones. Invariant: it lists what is advertised, nothing else.
"""

from agent_loop.commands.registry import AdvertisedCommand, CommandRegistry
from agent_loop.commands.seam import Command, CommandContext, CommandResult


class HelpCommand(Command):
    """Lists the commands of `registry` as they are when it runs."""

    name = "help"
    description = "Show the available commands"

    def __init__(self, registry: CommandRegistry) -> None:
        self._registry = registry

    async def run(self, context: CommandContext, argument: str) -> CommandResult:  # noqa: ARG002 - the list is the same
        """A Markdown list, one command a line."""
        rows = "\n".join(_row(command) for command in self._registry.advertised())
        return CommandResult(
            ok=True, text=f"**Commands**\n\n{rows}\n\nEverything else goes to the model as you wrote it."
        )


def _row(command: AdvertisedCommand) -> str:
    usage = f"/{command['name']} {command['hint']}" if command["hint"] else f"/{command['name']}"
    return f"- `{usage}` — {command['description']}"
