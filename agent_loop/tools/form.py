"""Forms: from what a model asks for to flat JSON Schema, and from an editor's answer to checked values.

May not know: who shows a form. Invariant: pure; a form that leaves here is flat and asks for no secret in a free field,
an answer that leaves here fits its form. Source: surface.md §1.3 ("Form schema subset").
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agent_loop.tools.schema import Property
from agent_loop.tools.seam import Form
from agent_loop.vocabulary import JsonObject

MAX_FIELDS: Final = 20
MAX_OPTIONS: Final = 50
PLAIN: Final[JsonObject] = {"name": "answer", "kind": "text", "label": "Answer"}
"""The field of a question that names none."""

FIELD: Final = Property(
    "object",
    properties={
        "name": Property("string", required=True, description="Identifier of the field: letters, digits, - and _."),
        "kind": Property("string", required=True, enum=("text", "choice", "choices", "yes_no", "number", "integer")),
        "label": Property("string", description="What the user reads beside the field; its name when absent."),
        "description": Property("string", description="A hint below the field."),
        "options": Property("array", items=Property("string"), description="Of choice (one) and choices (several)."),
        "minimum": Property("number"),
        "maximum": Property("number"),
        "optional": Property("boolean", description="The user may leave the field empty."),
    },
)
"""One field, as a tool's parameter."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+")
_SECRET: Final = re.compile(
    r"\b(?:pass ?(?:word|wd|phrase|code)s?|secrets?|(?:api|private|access|ssh) ?keys?|apikeys?|token|credentials?)\b"
)


class FormProblem(Exception):
    """The question cannot be asked so, or the answer does not fit it; the text says why."""


def make_form(question: str, fields: Sequence[JsonObject]) -> Form:
    """The form of a question; `fields` fit `FIELD`. Raises `FormProblem`."""
    if not question.strip():
        raise FormProblem("the question is blank")
    if len(fields) > MAX_FIELDS:
        raise FormProblem(f"a form has at most {MAX_FIELDS} fields, this one {len(fields)}")
    properties: JsonObject = {}
    for given in fields or (PLAIN,):
        name: str = given["name"]
        if not _NAME.fullmatch(name):
            raise FormProblem(f"{name!r:.80} is no name for a field: use letters, digits, - and _")
        if name in properties:
            raise FormProblem(f"there are two fields named {name!r}")
        if given["kind"] == "text":
            _refuse_secrets(question, name, given.get("label", ""), given.get("description", ""))
        properties[name] = _schema(given)
    required = tuple(given["name"] for given in fields or (PLAIN,) if not given.get("optional"))
    return Form(question, properties, required)


def checked_answer(form: Form, content: Mapping[str, Any]) -> JsonObject:
    """What of an answer belongs to the form, in the form's order. Raises `FormProblem` when something does not fit."""
    answer: JsonObject = {}
    for name, schema in form.properties.items():
        value = content.get(name)
        if value is None:
            if name in form.required:
                raise FormProblem(f"{name} is missing")
            continue
        if not _fits(schema, value):
            raise FormProblem(f"{name} cannot be {value!r:.80}")
        answer[name] = value
    return answer


def readable_answer(form: Form, answer: Mapping[str, Any]) -> str:
    """A checked answer as lines `label: value`; that of a plain question as the bare text."""
    if list(form.properties) == [PLAIN["name"]]:
        return _readable(answer.get("answer", ""))
    return "\n".join(f"- {form.properties[name]['title']}: {_readable(value)}" for name, value in answer.items())


def _schema(given: JsonObject) -> JsonObject:
    schema: JsonObject = {"title": given.get("label") or given["name"]}
    if given.get("description"):
        schema["description"] = given["description"]
    kind = given["kind"]
    if kind == "text":
        return {"type": "string", **schema}
    if kind == "yes_no":
        return {"type": "boolean", **schema}
    if kind == "choice":
        return {"type": "string", **schema, "enum": _options(given)}
    if kind == "choices":
        least = {} if given.get("optional") else {"minItems": 1}
        return {"type": "array", **schema, **least, "items": {"type": "string", "enum": _options(given)}}
    bounds = {end: given[end] for end in ("minimum", "maximum") if end in given}
    if len(bounds) == 2 and bounds["minimum"] > bounds["maximum"]:
        raise FormProblem(f"{given['name']}: the minimum is above the maximum")
    if kind == "integer" and not all(float(end).is_integer() for end in bounds.values()):
        raise FormProblem(f"{given['name']}: the bounds of an integer are integers")
    return {"type": kind, **schema, **bounds}


def _options(given: JsonObject) -> list[str]:
    options: list[str] = given.get("options", [])
    if not options or len(options) > MAX_OPTIONS or not all(option.strip() for option in options):
        raise FormProblem(f"{given['name']}: give 1 to {MAX_OPTIONS} options, none of them blank")
    return list(dict.fromkeys(options))


def _refuse_secrets(*texts: str) -> None:
    found = _SECRET.search(_CAMEL.sub(" ", "\n".join(texts)).lower())
    if found:
        raise FormProblem(
            f"a form must not ask for a secret ({found[0]}), for what is typed there is logged: "
            "ask the user to put it where the program reads it, such as a variable or a file"
        )


def _fits(schema: JsonObject, value: Any) -> bool:
    kind = schema["type"]
    if kind == "array":
        if not isinstance(value, list) or len(cast("list[Any]", value)) < schema.get("minItems", 0):
            return False
        return all(one in schema["items"]["enum"] for one in cast("list[Any]", value))
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        whole = kind == "number" or isinstance(value, int) or value.is_integer()
        return whole and schema.get("minimum", value) <= value <= schema.get("maximum", value)
    if "enum" in schema:
        return value in schema["enum"]
    return isinstance(value, str if kind == "string" else bool)


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(cast("list[str]", value)) or "none"
    return str(value)
