"""Schemas: what the model is sent and what is refused (contract tools-and-bash.md §1)."""

import pytest

from agent_loop.tools.schema import Property, SchemaSpec, from_json_schema, to_json_schema, validate_args

SPEC = SchemaSpec(
    {
        "path": Property("string", required=True, description="Where."),
        "mode": Property("string", enum=("fast", "slow"), default="fast"),
        "edits": Property(
            "array",
            items=Property(
                "object", properties={"line": Property("integer", required=True), "text": Property("string")}
            ),
        ),
        "options": Property("object", properties={"deep": Property("boolean", required=True)}),
        "anything": Property(),
    }
)


def test_the_json_schema_lists_required_keys_at_every_level():
    assert to_json_schema(SPEC) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"line": {"type": "integer"}, "text": {"type": "string"}},
                    "required": ["line"],
                },
            },
            "options": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
            "anything": {},
        },
        "required": ["path"],
    }


def test_a_schema_without_required_keys_has_no_required_list():
    assert to_json_schema(SchemaSpec()) == {"type": "object", "properties": {}}


def test_a_closed_root_is_said_in_the_schema_and_read_back():
    spec = SchemaSpec({"a": Property("string")}, closed=True)
    assert to_json_schema(spec)["additionalProperties"] is False
    assert from_json_schema(to_json_schema(spec)) == spec


@pytest.mark.parametrize(
    ("args", "violation"),
    [
        ({}, '"path" is required'),
        ({"path": 1}, '"path" must be a string, not a number'),
        ({"path": None}, '"path" must be a string, not null'),
        ({"path": "x", "mode": "warp"}, "\"mode\" must be one of 'fast', 'slow'"),
        ({"path": "x", "edits": {}}, '"edits" must be an array, not an object'),
        ({"path": "x", "edits": [{"line": 1}, {}]}, '"edits[1].line" is required'),
        ({"path": "x", "edits": [{"line": True}]}, '"edits[0].line" must be an integer, not a boolean'),
        ({"path": "x", "edits": [{"line": 1.5}]}, '"edits[0].line" must be an integer, not a number'),
        ({"path": "x", "edits": ["no"]}, '"edits[0]" must be an object, not a string'),
        ({"path": "x", "options": {}}, '"options.deep" is required'),
        ({"path": "x", "options": {"deep": 1}}, '"options.deep" must be a boolean, not a number'),
        ({"path": b"x"}, '"path" must be a string, not something that is not JSON'),
    ],
)
def test_a_violation_names_its_path(args, violation):
    assert validate_args(SPEC, args) == [violation]


def test_every_violation_is_named():
    assert validate_args(SPEC, {"mode": 1, "options": []}) == [
        '"path" is required',
        '"mode" must be a string, not a number',
        '"options" must be an object, not an array',
    ]


@pytest.mark.parametrize(("args", "kind"), [([], "an array"), (None, "null"), ("{}", "a string"), (True, "a boolean")])
def test_arguments_that_are_no_object_are_refused(args, kind):
    assert validate_args(SPEC, args) == [f"the arguments must be an object, not {kind}"]


def test_extra_keys_are_allowed_unless_the_root_is_closed():
    assert validate_args(SchemaSpec(), {"x": 1}) == []
    assert validate_args(SchemaSpec({"a": Property()}, closed=True), {"a": 1, "x": 1}) == [
        '"x" is not a known parameter'
    ]


def test_a_number_without_fraction_is_an_integer():
    assert validate_args(SchemaSpec({"n": Property("integer")}), {"n": 1500.0}) == []


def test_a_bool_is_neither_a_number_nor_equal_to_one():
    assert validate_args(SchemaSpec({"n": Property("number")}), {"n": True}) == ['"n" must be a number, not a boolean']
    assert validate_args(SchemaSpec({"n": Property(enum=(1,))}), {"n": True}) == ['"n" must be one of 1']


def test_defaults_are_never_applied():
    args: dict[str, object] = {"path": "x"}
    assert validate_args(SPEC, args) == []
    assert args == {"path": "x"}


def test_a_foreign_schema_is_read_leniently():
    schema = {
        "properties": {
            "a": {"type": ["string", "null"], "description": 7, "enum": "no", "items": True},
            "b": True,
            "c": {"$ref": "#/x", "properties": []},
        },
        "required": "a",
        "anyOf": [],
    }
    assert from_json_schema(schema) == SchemaSpec({"a": Property(items=Property()), "b": Property(), "c": Property()})
    assert from_json_schema({"properties": []}) == SchemaSpec()
    assert from_json_schema(None) == SchemaSpec()


def test_a_bottomless_schema_is_cut_off():
    schema: dict[str, object] = {}
    for _ in range(5_000):
        schema = {"type": "object", "properties": {"x": schema}}
    assert validate_args(from_json_schema(schema), {"x": {"x": 1}}) == ['"x.x" must be an object, not a number']
