"""A tool of an MCP server, as the agent sees it.

May not know: how its server is reached. Invariant: a card says nothing that the log does not, because on load the
server is gone: it is the card of a tool that nobody knows.
"""

from collections.abc import Awaitable, Callable

from agent_loop.abort import AbortSignal, cancel_on_abort
from agent_loop.tools.seam import GenericCard, Tool, ToolContext, ToolOutcome
from agent_loop.vocabulary import Block, JsonObject

Call = Callable[[JsonObject], Awaitable[ToolOutcome]]
"""Runs the tool with its arguments. Raises `HarnessError`; cancelled, it has told the server."""

_DESCRIPTION_LIMIT = 4000


class McpTool(Tool):
    """One tool; `call` reaches its server."""

    def __init__(self, name: str, row: JsonObject, *, server: str, call: Call) -> None:
        self.name = name
        self.row = row
        self.description = (row.get("description") or f"{row['name']} of {server}")[:_DESCRIPTION_LIMIT]
        self.parameters = row["inputSchema"]
        notes: JsonObject = row.get("annotations") or {}
        # the server says so itself; it is the user's own choice, so it is believed in what only reads
        self.concurrency_safe = notes.get("readOnlyHint") is True
        self.effect = "read" if self.concurrency_safe else "execute"
        self._call = call

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        outcome: ToolOutcome | None = None
        with cancel_on_abort(context.signal):
            outcome = await self._call(arguments)
        return outcome or _stopped(context.signal)

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> GenericCard:  # noqa: ARG002 - all calls of a tool look alike
        return GenericCard(title=self.name)

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> None:  # noqa: ARG002 - it is shown as it is
        return


def _stopped(signal: AbortSignal) -> ToolOutcome:
    return ToolOutcome.failed(
        f"the call was cancelled ({signal.reason}); the server was told, and may have done a part of it",
        name="AbortError",
        code="aborted",
    )
