"""`/status`: how this session stands.

May not know: where the facts come from. Invariant: shows facts of this session alone, and no secret is among them.
"""

import re
from typing import Final

from agent_loop.commands.seam import AgentFacts, Command, CommandContext, CommandResult
from agent_loop.vocabulary import Usage

_BACKTICKS: Final = re.compile("`+")


class StatusCommand(Command):
    """Model, thinking level, mode, directory, turns, tokens of the last call, context, cost, background commands."""

    name = "status"
    description = "Show model, mode, directory, token use, cost and background commands"

    async def run(self, context: CommandContext, argument: str) -> CommandResult:  # noqa: ARG002 - takes no argument
        """A Markdown table, then the background commands as a list."""
        facts = context.facts
        table = "\n".join(f"| {label} | {_cell(value)} |" for label, value in _rows(facts))
        text = f"| Status | |\n|---|---|\n{table}"
        if facts.background:
            tasks = "\n".join(f"- {task.id}: {_code(' '.join(task.command.split()))}" for task in facts.background)
            text += f"\n\n**Running in the background**\n\n{tasks}"
        return CommandResult(ok=True, text=text)


def _rows(facts: AgentFacts) -> list[tuple[str, str]]:
    return [
        ("Model", f"{facts.model} ({facts.provider})"),
        *([("Thinking", facts.thinking)] if facts.thinking else []),
        ("Mode", facts.mode),
        ("Directory", _code(facts.cwd)),
        ("Session", _code(facts.session_id)),
        ("Agent", facts.status),
        ("Turns", str(facts.turns)),
        ("Last model call", _tokens(facts.usage) if facts.usage else "none yet"),
        *([("Context", _share(*facts.context))] if facts.context else []),
        *([("Cost", f"{facts.cost[0]:.4f} {facts.cost[1]}")] if facts.cost else []),
        ("Background commands", str(len(facts.background))),
    ]


def _share(used: int, window: int) -> str:
    return f"{used:,} of {window:,} tokens ({used * 100 // window} %)"


def _tokens(usage: Usage) -> str:
    # a provider that reports a count as zero has nothing to say about it
    counts = [
        (usage["inputTokens"], "input"),
        (usage.get("cacheReadTokens", 0), "from cache"),
        (usage["outputTokens"], "output"),
        (usage.get("reasoningTokens", 0), "of them reasoning"),
    ]
    return ", ".join(f"{count:,} {what}" for count, what in counts if count) + " tokens"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(len(run) for run in _BACKTICKS.findall(text)) + 1)
    return f"{fence} {text} {fence}"
