"""`/loop`: a prompt that is sent again and again.

May not know: what a loop is. Invariant: every form calls the tool that the model has for it, so that both have the
same rules; a line of another form calls none.
"""

import json
import re
from typing import Final

from agent_loop.abort import AbortController
from agent_loop.commands.seam import Command, CommandContext, CommandResult
from agent_loop.runtime import Runtime
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import ToolCall, ToolContext, ToolOutcome
from agent_loop.vocabulary import Block, JsonObject

USAGE: Final = "Use `/loop <seconds> <prompt>`, `/loop list` or `/loop delete <id>`; seconds are a whole number from 1."
# sixteen digits are more seconds than there will be; `0*` lets 060 be 60
_CREATE: Final = re.compile(r"0*([1-9][0-9]{0,15})\s+(\S.*)", re.DOTALL)
_DELETE: Final = re.compile(r"delete\s+(\S+)")
_WORDS: Final = {"text", "resource-link", "resource"}
_HEADING_CHARACTERS: Final = 80
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class LoopCommand(Command):
    """Makes, lists and deletes loops of the session."""

    name = "loop"
    description = "Send a prompt again and again, at an interval"
    hint = "<seconds> <prompt> | list | delete <id>"

    def __init__(self, tools: ToolRegistry, runtime: Runtime) -> None:
        self._tools = tools
        self._runtime = runtime

    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """What was made or deleted, or a Markdown table of the loops."""
        if any(block["type"] not in _WORDS for block in context.blocks):
            return CommandResult(ok=False, text="A loop takes text and links only. Nothing was done.")
        text = argument + "".join(map(_said, context.blocks))
        if text.strip() == "list":
            return await self._list(context)
        if found := _DELETE.fullmatch(text.strip()):
            return await self._delete(context, found[1])
        if found := _CREATE.fullmatch(text):
            return await self._create(context, int(found[1]), found[2])
        return CommandResult(ok=False, text=USAGE)

    async def _create(self, context: CommandContext, seconds: int, prompt: str) -> CommandResult:
        outcome = await self._call(context, "loop_create", {"prompt": prompt, "time_in_seconds": seconds})
        if outcome.meta is None:
            return _failed(outcome)
        [loop] = outcome.meta["loops"]
        every = _readable(loop["time_in_seconds"])
        text = (
            f"Every {every}, for the first time in {every}: {_heading(loop['prompt'])}\n\n"
            f"`/loop delete {loop['id']}` ends it. What needs a permission is denied when nobody has just asked for it."
        )
        return CommandResult(ok=True, text=text)

    async def _list(self, context: CommandContext) -> CommandResult:
        outcome = await self._call(context, "loop_list", {})
        if outcome.meta is None:
            return _failed(outcome)
        loops = sorted(outcome.meta["loops"], key=lambda loop: loop["next_at"])
        if not loops:
            return CommandResult(ok=True, text="No loops yet. `/loop <seconds> <prompt>` makes one.")
        rows = "\n".join(self._row(loop) for loop in loops)
        return CommandResult(ok=True, text=f"| Loop | Every | Next | Prompt |\n|---|---|---|---|\n{rows}")

    async def _delete(self, context: CommandContext, loop_id: str) -> CommandResult:
        outcome = await self._call(context, "loop_delete", {"id": loop_id})
        if outcome.is_error:
            return _failed(outcome)
        return CommandResult(ok=True, text=f"Deleted {_code(loop_id)}.")

    async def _call(self, context: CommandContext, name: str, arguments: JsonObject) -> ToolOutcome:
        session_id, call_id = context.facts.session_id, self._runtime.new_id()
        where = ToolContext(session_id, context.facts.cwd, AbortController().signal, call_id=call_id)
        call = ToolCall(call_id, name, arguments, json.dumps(arguments))
        return await self._tools.execute(call, where, agent=session_id)

    def _row(self, loop: JsonObject) -> str:
        left = (loop["next_at"] - self._runtime.now_ms()) // 1000
        following = "overdue" if loop["state"] == "overdue" else f"in {_readable(max(left, 1))}"
        prompt = _heading(loop["prompt"]).replace("|", "\\|")
        return f"| `{loop['id']}` | {_readable(loop['time_in_seconds'])} | {following} | {prompt} |"


def _said(block: Block) -> str:
    """What an attachment adds to the line: a mention between two pieces of text stays where it was written."""
    return block["text"] if block["type"] == "text" else f" {block['uri']} "


def _failed(outcome: ToolOutcome) -> CommandResult:
    return CommandResult(ok=False, text=outcome.content[0]["text"].removeprefix("Error: "))


def _heading(prompt: str) -> str:
    line = prompt.splitlines()[0]
    return line if len(line) <= _HEADING_CHARACTERS else f"{line[: _HEADING_CHARACTERS - 3]}…"


def _readable(seconds: int) -> str:
    """The largest two units: `1 h 30 m`."""
    parts: list[str] = []
    for size, unit in _UNITS:
        if count := seconds // size:
            parts.append(f"{count} {unit}")
            seconds %= size
    return " ".join(parts[:2])


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
