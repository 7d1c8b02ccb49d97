"""Forms: flat, without secrets, and answers that fit them."""

import pytest

from agent_loop.tools.form import FIELD, FormProblem, checked_answer, make_form, readable_answer
from agent_loop.tools.schema import Property, SchemaSpec, validate_args


def field(kind="text", name="thing", **more):
    return {"name": name, "kind": kind, **more}


ALL = [
    field("text", "title", label="Title", description="In one line"),
    field("choice", "database", label="Database", options=["SQLite", "PostgreSQL", "SQLite"]),
    field("choices", "parts", options=["login", "search"]),
    field("choices", "more", options=["a"], optional=True),
    field("yes_no", "tests", label="With tests"),
    field("integer", "port", minimum=1, maximum=10),
    field("number", "rate", optional=True),
]
FORM = make_form("How?", ALL)
GOOD = {"title": "x", "database": "SQLite", "parts": ["login"], "tests": False, "port": 3}


def test_every_kind_has_its_flat_schema():
    assert FORM.properties == {
        "title": {"type": "string", "title": "Title", "description": "In one line"},
        "database": {"type": "string", "title": "Database", "enum": ["SQLite", "PostgreSQL"]},
        "parts": {
            "type": "array",
            "title": "parts",
            "minItems": 1,
            "items": {"type": "string", "enum": ["login", "search"]},
        },
        "more": {"type": "array", "title": "more", "items": {"type": "string", "enum": ["a"]}},
        "tests": {"type": "boolean", "title": "With tests"},
        "port": {"type": "integer", "title": "port", "minimum": 1, "maximum": 10},
        "rate": {"type": "number", "title": "rate"},
    }
    assert FORM.required == ("title", "database", "parts", "tests", "port")


def test_the_fields_fit_the_parameter_that_a_model_is_given():
    spec = SchemaSpec({"fields": Property("array", items=FIELD)})
    assert validate_args(spec, {"fields": ALL}) == []


def test_without_fields_there_is_one_text():
    form = make_form("What?", [])
    assert (form.properties, form.required) == ({"answer": {"type": "string", "title": "Answer"}}, ("answer",))
    assert readable_answer(form, checked_answer(form, {"answer": "this"})) == "this"


@pytest.mark.parametrize(
    ("question", "fields", "says"),
    [
        (" ", [], "blank"),
        ("?", [field(name=f"f{number}") for number in range(21)], "at most 20 fields"),
        ("?", [field(name="a b")], "'a b' is no name"),
        ("?", [field(), field()], "two fields named 'thing'"),
        ("?", [field("choice")], "give 1 to 50 options"),
        ("?", [field("choices", options=["a", " "])], "none of them blank"),
        ("?", [field("choice", options=[str(number) for number in range(51)])], "give 1 to 50 options"),
        ("?", [field("number", minimum=2, maximum=1)], "the minimum is above the maximum"),
        ("?", [field("integer", minimum=0.5)], "the bounds of an integer are integers"),
    ],
)
def test_a_form_that_cannot_be_shown_is_refused(question, fields, says):
    with pytest.raises(FormProblem, match=says):
        make_form(question, fields)


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("What is your password?", []),
        ("Please log in", [field(name="passWord")]),
        ("Please log in", [field(name="github_token")]),
        ("Please log in", [field(label="API key")]),
        ("Please log in", [field(description="your credentials")]),
        ("Passphrase?", []),
    ],
)
def test_a_free_text_that_asks_for_a_secret_is_refused(question, fields):
    with pytest.raises(FormProblem, match="must not ask for a secret"):
        make_form(question, fields)


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("Where is the password checked?", [field("choice", options=["here", "there"])]),
        ("How many tokens may it read?", [field("integer", "max_tokens")]),
        ("Which keyboard layout?", []),
    ],
)
def test_what_only_sounds_like_a_secret_may_be_asked(question, fields):
    assert make_form(question, fields).message == question


def test_an_answer_is_what_belongs_to_the_form_in_its_order():
    answer = checked_answer(FORM, {"rate": None, "unknown": 1, **dict(reversed(GOOD.items()))})
    assert list(answer.items()) == list(GOOD.items())


@pytest.mark.parametrize(
    "odd",
    [
        {"title": 1},
        {"title": True},
        {"title": None},
        {"database": "Oracle"},
        {"database": ["SQLite"]},
        {"parts": []},
        {"parts": "login"},
        {"parts": ["login", 1]},
        {"more": ["b"]},
        {"tests": "yes"},
        {"tests": 1},
        {"port": 0},
        {"port": 11},
        {"port": 2.5},
        {"port": True},
        {"port": "3"},
        {"rate": []},
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_the_name_of_its_field(odd):
    (name,) = odd
    with pytest.raises(FormProblem, match=name):
        checked_answer(FORM, GOOD | odd)


@pytest.mark.parametrize(
    "fitting", [{"port": 1}, {"port": 10}, {"port": 3.0}, {"rate": 0.5}, {"rate": 7}, {"more": []}]
)
def test_the_edges_of_what_fits_are_inside(fitting):
    assert checked_answer(FORM, GOOD | fitting).items() >= fitting.items()


def test_an_answer_is_readable():
    answer = checked_answer(FORM, GOOD | {"more": [], "tests": True, "parts": ["login", "search"]})
    assert readable_answer(FORM, answer) == (
        "- Title: x\n- Database: SQLite\n- parts: login, search\n- more: none\n- With tests: yes\n- port: 3"
    )
    assert "With tests: no" in readable_answer(FORM, {"tests": False})
