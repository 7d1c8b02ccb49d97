"""The tools `loop_create`, `loop_list` and `loop_delete` (contract loops.md §2).

May not know: schedules, editors. Invariant: what a tool answers is JSON for the model and, in `meta`, the same as data;
its card is made of the arguments and that alone. None has an effect of its own: what a loop makes the agent do later
is asked about, or denied, then.
"""

from abc import abstractmethod
from typing import Final

from pydantic_core import to_json

from agent_loop.loops.runtime import LoopRuntime
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import Effect, GenericCard, ResultCard, Tool, ToolContext, ToolOutcome
from agent_loop.vocabulary import Block, JsonObject, text_block

_CREATE: Final = SchemaSpec(
    {
        "prompt": Property("string", required=True, description="What you want to be told each time."),
        "time_in_seconds": Property("integer", required=True, description="The interval, at least 1."),
    },
    closed=True,
)
_DELETE: Final = SchemaSpec(
    {"id": Property("string", required=True, description="The loop's id, as loop_list tells it.")}, closed=True
)


class _LoopTool(Tool):
    effect: Effect = "none"

    def __init__(self, loops: LoopRuntime) -> None:
        self._loops = loops

    @abstractmethod
    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> GenericCard:
        """A plain card."""

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:  # noqa: ARG002 - the answer is for the model
        """The call's card again; an error as its text."""
        return self.present_call(arguments, None) if meta is not None else None


class LoopCreateTool(_LoopTool):
    """Makes a loop."""

    name = "loop_create"
    description = (
        "Have a prompt sent to you again and again, every time_in_seconds seconds, the first time after that many; it "
        "comes as a <heartbeat>. Only when the user wants something done or watched regularly. The user is not there "
        "to answer when it comes: what needs a permission is denied. It lasts until it is deleted."
    )
    parameters = to_json_schema(_CREATE)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:  # noqa: ARG002 - the runtime is the agent's
        """The LoopView."""
        view = await self._loops.create(arguments["prompt"], arguments["time_in_seconds"])
        return _told(view, {"loops": [view]})

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> GenericCard:  # noqa: ARG002 - nothing but the arguments is shown
        """The interval, and the prompt below it."""
        return GenericCard(f"Every {int(arguments['time_in_seconds'])} s", "other", [text_block(arguments["prompt"])])


class LoopListTool(_LoopTool):
    """Lists the loops of the session."""

    name = "loop_list"
    description = "The loops of this session: prompts that are sent to you at an interval."
    parameters = to_json_schema(SchemaSpec(closed=True))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:  # noqa: ARG002 - takes none; the runtime is the agent's
        """The LoopViews, in the order of creation."""
        views = await self._loops.list()
        return _told(views, {"loops": views})

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> GenericCard:  # noqa: ARG002 - there is nothing to show
        """A title."""
        return GenericCard("List the loops")

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:  # noqa: ARG002 - the data is shown
        """The loops, one a line."""
        if meta is None:
            return None
        rows = [f"- every {loop['time_in_seconds']} s: {loop['prompt']}" for loop in meta["loops"]]
        return GenericCard("List the loops", content=[text_block("\n".join(rows) or "There are none.")])


class LoopDeleteTool(_LoopTool):
    """Ends a loop."""

    name = "loop_delete"
    description = "End a loop of this session: its prompt is not sent to you any more."
    parameters = to_json_schema(_DELETE)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:  # noqa: ARG002 - the runtime is the agent's
        """`{deleted: true, id}`."""
        await self._loops.delete(arguments["id"])
        answer = {"deleted": True, "id": arguments["id"]}
        return _told(answer, answer)

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> GenericCard:  # noqa: ARG002 - nothing but the arguments is shown
        """Which one."""
        return GenericCard(f"Delete {arguments['id']}")


def loop_tools(loops: LoopRuntime) -> tuple[Tool, ...]:
    """The three, for the agent whose loops these are."""
    return LoopCreateTool(loops), LoopListTool(loops), LoopDeleteTool(loops)


def _told(answer: object, meta: JsonObject) -> ToolOutcome:
    return ToolOutcome([text_block(to_json(answer).decode())], meta=meta)
