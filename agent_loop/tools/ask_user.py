"""The tool `ask_user`: a question to the user as a form, and what came of it.

May not know: editors, protocols. Invariant: what the model is told of an answer fits the form, field by field; where no
form can be shown the model is told to ask in plain text at the end of its turn, so that a question is never lost.
"""

from typing import Final, assert_never

from agent_loop.tools.form import FIELD, FormProblem, checked_answer, make_form, readable_answer
from agent_loop.tools.schema import Property, SchemaSpec, to_json_schema
from agent_loop.tools.seam import (
    AskUser,
    CallCard,
    Effect,
    Form,
    GenericCard,
    ResultCard,
    Tool,
    ToolContext,
    ToolOutcome,
)
from agent_loop.vocabulary import Block, JsonObject, text_block

TITLE_CHARACTERS: Final = 200

_PARAMETERS: Final = SchemaSpec(
    {
        "question": Property("string", required=True, description="What the user reads above the form."),
        "fields": Property(
            "array", items=FIELD, description="What there is to fill in, in order; absent: one free text."
        ),
    }
)
_IN_PLAIN_TEXT: Final = (
    "write the question, with the options if there are any, as your answer and end your turn there; "
    "the user's next message is the reply"
)
_CLOSED: Final = {
    "decline": ("The user declined to answer. Go on without it as well as you can, or stop and say why.", "Declined."),
    "cancel": ("The user closed the question without an answer. Do not ask it again in the same way.", "Not answered."),
}


class AskUserTool(Tool):
    """Asks, waits as long as it takes, and reports. `ask` puts the form before the user."""

    name = "ask_user"
    description = (
        "Ask the user a question that you cannot answer from the project and whose answer changes what you do next: "
        "a decision between options, a missing fact. They fill in a form with text, choice, yes-or-no and number "
        "fields. Never for permission to run a tool (that is asked by itself), never for passwords, keys or tokens."
    )
    parameters = to_json_schema(_PARAMETERS)
    effect: Effect = "none"

    def __init__(self, ask: AskUser) -> None:
        self._ask = ask

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta {action, answer?}`: `accept` with what the user filled in, `decline`, `cancel`, `unavailable`."""
        try:
            form = make_form(arguments["question"], arguments.get("fields", ()))
        except FormProblem as problem:
            return ToolOutcome.failed(str(problem), name="InvalidArgumentsError", code="INVALID_ARGS")
        given = await self._ask.ask(context, form)
        if context.signal.aborted:
            return ToolOutcome.failed(
                "the call was stopped before the user answered", name="AbortError", code="aborted"
            )
        match given.action:
            case "accept":
                return _accepted(form, given.content)
            case "decline" | "cancel":
                return ToolOutcome([text_block(_CLOSED[given.action][0])], meta={"action": given.action})
            case "unavailable":
                text = f"No form can be shown: {given.reason}. Instead {_IN_PLAIN_TEXT}."
                return ToolOutcome([text_block(text)], meta={"action": given.action})
            case "failed":
                return _failed(given.reason)
            case _:
                assert_never(given.action)

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:  # noqa: ARG002 - nothing but the arguments is shown
        """The question, and below it what is to be filled in when that is more than a text."""
        rows = [_row(field) for field in arguments.get("fields", ())]
        return GenericCard(_title(arguments), "other", [text_block("\n".join(rows))] if rows else [])

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:  # noqa: ARG002 - meta has it all
        """What the user did; a failure, and what only the model has to read, as it is."""
        action = (meta or {}).get("action")
        if action == "accept":
            form = make_form(arguments["question"], arguments.get("fields", ()))
            shown = readable_answer(form, (meta or {})["answer"])
        elif action in _CLOSED:
            shown = _CLOSED[action][1]
        else:
            return None
        return GenericCard(_title(arguments), "other", [text_block(shown)])


def _accepted(form: Form, content: JsonObject) -> ToolOutcome:
    try:
        answer = checked_answer(form, content)
    except FormProblem as problem:
        return _failed(f"its answer does not fit the form: {problem}")
    text = f"The user answered:\n{readable_answer(form, answer)}"
    return ToolOutcome([text_block(text)], meta={"action": "accept", "answer": answer})


def _failed(reason: str) -> ToolOutcome:
    return ToolOutcome.failed(
        f"the editor could not ask ({reason}); {_IN_PLAIN_TEXT}", name="FormError", code="FORM_FAILED"
    )


def _title(arguments: JsonObject) -> str:
    lines = arguments["question"].strip().splitlines()
    line = lines[0] if lines else ""
    return line if len(line) <= TITLE_CHARACTERS else f"{line[:TITLE_CHARACTERS]}…"


def _row(field: JsonObject) -> str:
    options = ", ".join(field.get("options", ()))
    return f"- {field.get('label') or field['name']}{f': {options}' if options else ''}"
