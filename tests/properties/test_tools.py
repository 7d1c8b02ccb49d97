"""Schemas: conversion and validation hold for arbitrary specifications (contract properties.md, tools)."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.tools.arguments import parse_arguments
from agent_loop.tools.schema import Property, SchemaSpec, from_json_schema, to_json_schema, validate_args

NAMES = st.sampled_from(["a", "b", "a.b", "a[0]", "", "required", "properties", "ü"])
SHORT = st.text('aé\u2028"', max_size=3)
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | SHORT
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | SHORT, inner, max_size=3),
    max_leaves=12,
)
ANYTHING = JSON | st.binary(max_size=2) | st.sets(st.integers(), max_size=2) | st.tuples(st.integers())
SCHEMA_KEYS = st.sampled_from(["type", "properties", "required", "items", "enum", "default", "description", "x"])
SCHEMA_WORDS = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
FOREIGN = st.recursive(
    SCALARS | SCHEMA_WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCHEMA_KEYS, inner, max_size=4),
    max_leaves=15,
)


DESCRIBED = {"required": st.booleans(), "description": st.none() | SHORT}
LEAF = st.builds(Property, st.sampled_from([None, "string", "number", "integer", "boolean"]), **DESCRIBED) | st.builds(
    Property, st.just("string"), enum=st.just(("x", "y")), default=st.just("x"), **DESCRIBED
)


def not_required(prop):
    # `required` means something for the properties of an object alone
    return dataclasses.replace(prop, required=False)


PROPERTY = st.recursive(
    LEAF,
    lambda inner: (
        st.builds(Property, st.just("object"), properties=st.dictionaries(NAMES, inner, max_size=3), **DESCRIBED)
        | st.builds(Property, st.just("array"), items=inner.map(not_required), **DESCRIBED)
    ),
    max_leaves=6,
)
SPECS = st.builds(SchemaSpec, st.dictionaries(NAMES, PROPERTY, max_size=4), closed=st.booleans())


@st.composite
def valid_values(draw, prop):
    if prop.enum is not None:
        return draw(st.sampled_from(prop.enum))
    match prop.type:
        case None:
            return draw(JSON)
        case "string":
            return draw(SHORT)
        case "number":
            return draw(st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False))
        case "integer":
            return draw(st.integers() | st.integers(-5, 5).map(float))
        case "boolean":
            return draw(st.booleans())
        case "object":
            return draw(valid_objects(prop.properties))
        case "array":
            return draw(st.lists(valid_values(prop.items), max_size=2))


@st.composite
def valid_objects(draw, props):
    return {name: draw(valid_values(prop)) for name, prop in props.items() if prop.required or draw(st.booleans())}


@st.composite
def specs_with_arguments(draw):
    spec = draw(SPECS)
    return spec, draw(valid_objects(spec.properties))


def check_required(schema, props):
    assert schema["type"] == "object"
    assert schema.get("required", []) == [name for name, prop in props.items() if prop.required]
    for name, prop in props.items():
        inner, below = schema["properties"][name], prop
        while below.items is not None:
            inner, below = inner["items"], below.items
        if below.properties is not None:
            check_required(inner, below.properties)


@given(SPECS)
def test_required_lists_exactly_the_keys_marked_so_at_every_level(spec):
    check_required(to_json_schema(spec), spec.properties)


@given(SPECS)
def test_a_spec_survives_the_way_to_json_schema_and_back(spec):
    assert from_json_schema(to_json_schema(spec)) == spec


@given(specs_with_arguments())
def test_valid_arguments_pass(pair):
    spec, args = pair
    assert validate_args(spec, args) == []


@given(specs_with_arguments())
def test_a_dropped_required_key_is_named(pair):
    spec, args = pair
    for name, prop in spec.properties.items():
        if prop.required:
            rest = {key: value for key, value in args.items() if key != name}
            assert f'"{name}" is required' in validate_args(spec, rest)


@given(SPECS, ANYTHING.filter(lambda value: not isinstance(value, dict)))
def test_a_top_level_that_is_no_object_is_rejected(spec, value):
    (violation,) = validate_args(spec, value)
    assert violation.startswith("the arguments must be an object")


@given(SPECS, st.dictionaries(NAMES | st.integers(), ANYTHING, max_size=4))
def test_validation_is_total(spec, args):
    assert all(isinstance(violation, str) for violation in validate_args(spec, args))


@given(FOREIGN, JSON)
def test_reading_a_foreign_schema_is_total(schema, args):
    spec = from_json_schema(schema)
    assert to_json_schema(spec)["type"] == "object"
    validate_args(spec, args)


@given(st.text() | JSON.map(repr) | st.text(alphabet='{}[]",:0e.\\u d8', max_size=30))
def test_reading_arguments_is_total(raw):
    assert isinstance(parse_arguments(raw), dict | str)
