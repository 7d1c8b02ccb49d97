"""For commands that have nothing summarised."""

from agent_loop.commands.seam import CommandResult


async def compact(_instructions: str) -> CommandResult:
    raise AssertionError("nothing is to be summarised here")
