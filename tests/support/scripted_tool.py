"""A tool whose body a test wrote: the double of `Tool`."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_loop.tools.seam import CallCard, GenericCard, ResultCard, Tool, ToolContext, ToolOutcome
from agent_loop.vocabulary import JsonObject, text_block

Body = Callable[[JsonObject, ToolContext], Awaitable[ToolOutcome]]


def outcome(text: str) -> ToolOutcome:
    """A success that says `text`."""
    return ToolOutcome([text_block(text)])


async def _echo(arguments: JsonObject, _context: ToolContext) -> ToolOutcome:
    return outcome(f"ran {arguments.get('value', '')}".strip())


class ScriptedTool(Tool):
    """`ran` are the arguments of every body that started."""

    description = "A tool of a test."

    def __init__(self, name: str = "echo", body: Body = _echo, *, concurrency_safe: bool = False) -> None:
        self.name = name
        self.parameters = {"type": "object", "properties": {"value": {"type": "string"}}}
        self.concurrency_safe = concurrency_safe
        self.ran: list[JsonObject] = []
        self._body = body

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        self.ran.append(arguments)
        return await self._body(arguments, context)

    def present_call(self, arguments: JsonObject, cwd: str | None) -> CallCard:
        return GenericCard(self.name)

    def present_result(self, arguments: JsonObject, content: list[Any], meta: JsonObject | None) -> ResultCard | None:
        return None
