"""The tool `todo_write`: the plan that the editor shows beside the conversation (contract tools-and-bash.md §6).

May not know: editors. Invariant: the model gives the whole list every time and what it gave is what is logged, as
`plan/update`; nothing is kept here, so the plan of a loaded session is the last one of its log.
"""

from typing import Final

from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import CallCard, Effect, GenericCard, ResultCard, Tool, ToolContext, ToolOutcome
from agent_loop.vocabulary import Block, JsonObject, text_block

MAX_ENTRIES: Final = 100
MAX_CHARACTERS: Final = 500
DEFAULT_PRIORITY: Final = "medium"

_MARKS: Final = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
_ENTRY: Final = Property(
    "object",
    properties={
        "content": Property("string", required=True, description="What is to be done, in one short sentence."),
        "status": Property("string", required=True, enum=tuple(_MARKS)),
        "priority": Property(
            "string",
            enum=("high", "medium", "low"),
            description=f"Default {DEFAULT_PRIORITY}.",
            default=DEFAULT_PRIORITY,
        ),
    },
)
_TODOS: Final = SchemaSpec(
    {
        "todos": Property(
            "array", required=True, items=_ENTRY, description="The whole plan, in order; it replaces the one before."
        )
    }
)


class TodoWriteTool(Tool):
    """Replaces the plan."""

    name = "todo_write"
    description = (
        "Show the user your plan for a task of several steps, and keep it up to date. Give the whole list every time: "
        "what you leave out is gone, and an empty list removes the plan. Mark one step in_progress before you begin "
        "it, and completed as soon as it is done. Not for a task of one or two steps."
    )
    parameters = to_json_schema(_TODOS)
    effect: Effect = "none"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """Logs `plan/update {entries: [{content, priority, status}]}`."""
        entries = _entries(arguments)
        if problem := _problem(entries):
            return ToolOutcome.failed(problem, name="InvalidArgumentsError", code="INVALID_ARGS")
        context.record("plan/update", {"entries": entries})
        current = next((f"; now: {entry['content']}" for entry in entries if entry["status"] == "in_progress"), "")
        return ToolOutcome([text_block(f"{_state(entries)}{current}")])

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:  # noqa: ARG002 - nothing but the arguments is shown
        """The plan as a check list: for an editor that shows no plan of its own."""
        return _card(_entries(arguments))

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:  # noqa: ARG002 - nothing is added
        """The same list; a refused one as the refusal."""
        entries = _entries(arguments)
        return None if _problem(entries) else _card(entries)


def _entries(arguments: JsonObject) -> list[JsonObject]:
    return [
        {
            "content": todo["content"].strip(),
            "priority": todo.get("priority", DEFAULT_PRIORITY),
            "status": todo["status"],
        }
        for todo in arguments["todos"]
    ]


def _problem(entries: list[JsonObject]) -> str | None:
    if len(entries) > MAX_ENTRIES:
        return f"a plan has at most {MAX_ENTRIES} entries, this one {len(entries)}: put small steps together"
    for number, entry in enumerate(entries, start=1):
        if not entry["content"]:
            return f"entry {number} is blank: say in a few words what is to be done"
        if len(entry["content"]) > MAX_CHARACTERS:
            return f"entry {number} is longer than {MAX_CHARACTERS} characters: say it in one short sentence"
    current = [str(number) for number, entry in enumerate(entries, start=1) if entry["status"] == "in_progress"]
    if len(current) > 1:
        return f"the entries {', '.join(current)} are all in_progress: one step at a time, the others stay pending"
    return None


def _state(entries: list[JsonObject]) -> str:
    if not entries:
        return "Plan: removed"
    done = sum(entry["status"] == "completed" for entry in entries)
    return f"Plan: {done} of {len(entries)} done"


def _card(entries: list[JsonObject]) -> GenericCard:
    rows = "\n".join(f"- {_MARKS[entry['status']]} {entry['content']}" for entry in entries)
    return GenericCard(_state(entries), "think", [text_block(rows)] if rows else [])
