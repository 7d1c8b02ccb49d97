"""`/compact`: the conversation so far, summarised.

May not know: how a summary is made. Invariant: what it answers is what happened to the history, nothing else.
"""

from agent_loop.commands.seam import Command, CommandContext, CommandResult
from agent_loop.vocabulary import TurnEndReason


class CompactCommand(Command):
    """Runs as a turn of its own, in which the model writes the summary; queues like a prompt."""

    name = "compact"
    description = "Summarise the conversation so far, to make room in the model's context"
    hint = "what to keep above all"
    needs_idle = True

    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """Its answer, once that turn has ended."""
        return await context.compact(argument)


def compaction_result(reason: TurnEndReason, *, done: bool) -> CommandResult:
    """What is said of the turn that ended for `reason`; `done`: the history was summarised in it."""
    if done:
        return CommandResult(
            ok=True, text="The conversation so far was summarised; the model goes on from the summary."
        )
    if reason["kind"] == "completed":
        return CommandResult(ok=True, text="There is nothing to summarise yet.")
    if reason["kind"] == "error":
        return CommandResult(ok=False, text=f"The conversation could not be summarised: {reason['message']}")
    return CommandResult(ok=False, text="The conversation was not summarised.")
