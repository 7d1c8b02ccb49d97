"""A tool whose body a test wrote: the double of `Tool`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_loop.tools.seam import CallCard, GenericCard, ResultCard, Subject, Tool, ToolContext, ToolOutcome
from agent_loop.vocabulary import JsonObject, text_block

Body = Callable[[JsonObject, ToolContext], Awaitable[ToolOutcome]]


def outcome(text: str) -> ToolOutcome:
    """A success that says `text`."""
    return ToolOutcome([text_block(text)])


async def _echo(arguments: JsonObject, _context: ToolContext) -> ToolOutcome:
    return outcome(f"ran {arguments.get('value', '')}".strip())


class ScriptedTool(Tool):
    """`ran` are the arguments of every body that started. `previews` and `subjects` are given in order, then the last
    again.
    """

    description = "A tool of a test."

    def __init__(
        self,
        name: str = "echo",
        body: Body = _echo,
        *,
        concurrency_safe: bool = False,
        previews: Sequence[JsonObject | Exception | None] = (None,),
        subjects: Sequence[Subject] = (Subject(),),
    ) -> None:
        self.name = name
        self.parameters = {"type": "object", "properties": {"value": {"type": "string"}}}
        self.concurrency_safe = concurrency_safe
        self.ran: list[JsonObject] = []
        self._body = body
        self._previews = list(previews)
        self._subjects = list(subjects)

    def subject(self, arguments: JsonObject, cwd: str) -> Subject:
        return self._subjects.pop(0) if len(self._subjects) > 1 else self._subjects[0]

    async def prepare(self, arguments: JsonObject, context: ToolContext) -> JsonObject | None:
        preview = self._previews.pop(0) if len(self._previews) > 1 else self._previews[0]
        if isinstance(preview, Exception):
            raise preview
        return preview

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        self.ran.append(arguments)
        return await self._body(arguments, context)

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:
        return GenericCard(self.name)

    def present_result(self, arguments: JsonObject, content: list[Any], meta: JsonObject | None) -> ResultCard | None:
        return None
