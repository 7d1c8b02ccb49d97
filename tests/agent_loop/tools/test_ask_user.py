"""The tool that asks the user: what comes of every answer."""

import pytest

from agent_loop.abort import AbortController
from agent_loop.tools.ask_user import TITLE_CHARACTERS, AskUserTool
from agent_loop.tools.seam import AskUser, FormAnswer, GenericCard, ToolContext
from agent_loop.vocabulary import text_block

QUESTION = {"question": "Which database?\nThink of the tests."}
FIELDS = {**QUESTION, "fields": [{"name": "database", "kind": "choice", "options": ["SQLite", "PostgreSQL"]}]}


class Answering(AskUser):
    """Gives one answer and keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def ask(self, context, form):
        self.asked.append((context.call_id, form))
        if isinstance(self.answer, str):
            context.signal.abort(self.answer)
            return FormAnswer("cancel")
        return self.answer


async def ask(answer, arguments=None):
    user = Answering(answer)
    context = ToolContext("s1", "/p", AbortController(), call_id="c1")
    return await AskUserTool(user).run(arguments or QUESTION, context), user.asked


async def test_an_answer_reaches_the_model_and_the_card():
    outcome, asked = await ask(FormAnswer("accept", {"database": "SQLite"}), FIELDS)
    assert [(call, form.message) for call, form in asked] == [("c1", FIELDS["question"])]
    assert outcome.content == [text_block("The user answered:\n- database: SQLite")]
    assert outcome.meta == {"action": "accept", "answer": {"database": "SQLite"}}
    shown = AskUserTool(Answering(None)).present_result(FIELDS, outcome.content, outcome.meta)
    assert shown == GenericCard("Which database?", "other", [text_block("- database: SQLite")])


@pytest.mark.parametrize(
    ("action", "told", "shown"), [("decline", "declined", "Declined."), ("cancel", "closed", "Not answered.")]
)
async def test_a_refusal_is_no_error(action, told, shown):
    outcome, _asked = await ask(FormAnswer(action))
    assert (outcome.is_error, outcome.meta) == (False, {"action": action})
    assert told in outcome.content[0]["text"]
    card = AskUserTool(Answering(None)).present_result(QUESTION, outcome.content, outcome.meta)
    assert card == GenericCard("Which database?", "other", [text_block(shown)])


async def test_without_a_form_the_model_is_told_to_ask_in_its_answer():
    outcome, _asked = await ask(FormAnswer("unavailable", reason="this editor has none"))
    text = outcome.content[0]["text"]
    assert text.startswith("No form can be shown: this editor has none. Instead write the question")
    assert "end your turn" in text
    assert AskUserTool(Answering(None)).present_result(QUESTION, outcome.content, outcome.meta) is None


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (FormAnswer("failed", reason="it broke"), "could not ask (it broke)"),
        (FormAnswer("accept", {"database": "Oracle"}), "does not fit the form: database cannot be 'Oracle'"),
        (FormAnswer("accept"), "database is missing"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_says_how_to_go_on(answer, says):
    outcome, _asked = await ask(answer, FIELDS)
    assert (outcome.is_error, outcome.error["code"]) == (True, "FORM_FAILED")
    assert says in outcome.content[0]["text"]
    assert "end your turn" in outcome.content[0]["text"]


async def test_a_form_that_makes_no_sense_is_not_shown():
    outcome, asked = await ask(FormAnswer("accept"), {"question": "Your password?"})
    assert (outcome.error["code"], asked) == ("INVALID_ARGS", [])


async def test_an_abort_is_no_answer():
    outcome, _asked = await ask("session/cancel")
    assert outcome.error == {"name": "AbortError", "code": "aborted"}


def test_the_card_shows_what_is_to_be_filled_in():
    tool = AskUserTool(Answering(None))
    assert tool.present_call(QUESTION, "/p") == GenericCard("Which database?", "other", [])
    fields = [*FIELDS["fields"], {"name": "why", "kind": "text", "label": "Why"}]
    rows = text_block("- database: SQLite, PostgreSQL\n- Why")
    assert tool.present_call({**QUESTION, "fields": fields}, "/p") == GenericCard("Which database?", "other", [rows])


@pytest.mark.parametrize(("question", "title"), [("", ""), ("x" * 300, "x" * TITLE_CHARACTERS + "…")])
def test_a_title_is_short(question, title):
    assert AskUserTool(Answering(None)).present_call({"question": question}, None).title == title
