"""What `/help` and `/status` answer."""

import dataclasses

from agent_loop.commands.help import HelpCommand
from agent_loop.commands.registry import CommandRegistry
from agent_loop.commands.seam import AgentFacts, BackgroundFact, Command, CommandContext, CommandResult
from agent_loop.commands.status import StatusCommand
from agent_loop.hooks import Hooks
from tests.support.no_compaction import compact

FACTS = AgentFacts(
    session_id="s-1",
    cwd="/there/project",
    provider="deepseek",
    model="deepseek-v4-flash",
    mode="ask",
    status="idle",
    turns=3,
)


class NoteCommand(Command):
    name = "note"
    description = "Keep a note"
    hint = "text"

    async def run(self, context, argument):
        return CommandResult(ok=True, text="")


async def status_of(**changes):
    result = await StatusCommand().run(CommandContext(dataclasses.replace(FACTS, **changes), print, compact), "")
    assert result.ok
    return result.text


async def test_help_lists_what_is_advertised_when_it_runs():
    registry = CommandRegistry(Hooks(lambda name, error: None))
    command = HelpCommand(registry)
    registry.register(command)
    registry.register(StatusCommand())
    registry.register(NoteCommand())
    result = await command.run(CommandContext(FACTS, print, compact), "")
    assert result == CommandResult(
        ok=True,
        text=(
            "**Commands**\n\n"
            "- `/help` — Show the available commands\n"
            "- `/status` — Show model, mode, directory, token use, cost and background commands\n"
            "- `/note text` — Keep a note\n\n"
            "Everything else goes to the model as you wrote it."
        ),
    )


async def test_status_shows_the_facts_of_the_session():
    assert await status_of() == (
        "| Status | |\n"
        "|---|---|\n"
        "| Model | deepseek-v4-flash (deepseek) |\n"
        "| Mode | ask |\n"
        "| Directory | `/there/project` |\n"
        "| Session | `s-1` |\n"
        "| Agent | idle |\n"
        "| Turns | 3 |\n"
        "| Last model call | none yet |\n"
        "| Background commands | 0 |"
    )


async def test_status_shows_the_tokens_of_the_last_call():
    text = await status_of(usage={"inputTokens": 1234, "outputTokens": 5})
    assert "| Last model call | 1,234 input, 5 output tokens |" in text
    text = await status_of(
        usage={"inputTokens": 235, "outputTokens": 28, "cacheReadTokens": 768, "reasoningTokens": 25}
    )
    assert "| Last model call | 235 input, 768 from cache, 28 output, 25 of them reasoning tokens |" in text


async def test_status_lists_background_commands():
    text = await status_of(
        background=(BackgroundFact("bash-1", "npm run\ndev"), BackgroundFact("bash-2", "echo `date`"))
    )
    assert text.endswith(
        "| Background commands | 2 |\n\n"
        "**Running in the background**\n\n"
        "- bash-1: `npm run dev`\n"
        "- bash-2: `` echo `date` ``"
    )


async def test_status_keeps_its_table_whole_whatever_the_facts_hold():
    text = await status_of(cwd="/a|b\nc")
    assert "| Directory | `/a\\|b c` |" in text
