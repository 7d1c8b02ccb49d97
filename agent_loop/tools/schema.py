"""Tool parameters: declared once, sent to the model as JSON Schema, checked on every call.

May not know: any tool. Invariant: everything here is pure and total — conversion and validation answer for any input
and never raise, defaults are never applied, and `required` in the JSON Schema lists exactly the properties marked so.
Source: contract tools-and-bash.md §1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeGuard, get_args

from agent_loop.vocabulary import JsonObject

PropertyType = Literal["string", "number", "integer", "boolean", "object", "array"]

_TYPES: Final[frozenset[str]] = frozenset(get_args(PropertyType))
_ABSENT: Final[Any] = object()
# deeper than any schema a person writes; keeps conversion total on hostile ones
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class Property:
    """One parameter. `type` None accepts any value; `properties` belongs to objects, `items` to arrays."""

    type: PropertyType | None = None
    required: bool = False
    description: str | None = None
    enum: tuple[Any, ...] | None = None
    default: Any = _ABSENT
    properties: Mapping[str, "Property"] | None = None
    items: "Property | None" = None


@dataclass(frozen=True, slots=True)
class SchemaSpec:
    """The parameters of one tool. Extra keys are allowed unless `closed`."""

    properties: Mapping[str, Property] = field(default_factory=dict[str, Property])
    closed: bool = False


def to_json_schema(spec: SchemaSpec) -> JsonObject:
    """`{type:"object", properties, required?, additionalProperties?}`, `required` at every level."""
    schema = _object_schema(spec.properties)
    if spec.closed:
        schema["additionalProperties"] = False
    return schema


def from_json_schema(schema: Any) -> SchemaSpec:
    """Read any JSON Schema leniently: keywords that a `SchemaSpec` cannot say are ignored, never refused."""
    if not _is_object(schema):
        return SchemaSpec()
    return SchemaSpec(_properties(schema, 0), closed=schema.get("additionalProperties") is False)


def validate_args(spec: SchemaSpec, args: Any) -> list[str]:
    """Every violation as a sentence that names its path (`"a.b"`, `"a[0]"`); empty when the arguments fit.

    A bool is not a number, a number without fraction is an integer, extra keys pass unless the root is closed.
    """
    if not _is_object(args):
        return [f"the arguments must be an object, not {_kind(args)}"]
    violations = _check_object(spec.properties, args, "")
    if spec.closed:
        violations += [f'"{key}" is not a known parameter' for key in args if key not in spec.properties]
    return violations


def _object_schema(properties: Mapping[str, Property]) -> JsonObject:
    schema: JsonObject = {
        "type": "object",
        "properties": {name: _property_schema(prop) for name, prop in properties.items()},
    }
    required = [name for name, prop in properties.items() if prop.required]
    if required:
        schema["required"] = required
    return schema


def _property_schema(prop: Property) -> JsonObject:
    schema: JsonObject = {}
    if prop.type is not None:
        schema["type"] = prop.type
    if prop.description is not None:
        schema["description"] = prop.description
    if prop.enum is not None:
        schema["enum"] = list(prop.enum)
    if prop.default is not _ABSENT:
        schema["default"] = prop.default
    if prop.properties is not None:
        schema.update(_object_schema(prop.properties))
    if prop.items is not None:
        schema["items"] = _property_schema(prop.items)
    return schema


def _properties(schema: JsonObject, depth: int) -> dict[str, Property]:
    declared = schema.get("properties")
    if not _is_object(declared):
        return {}
    listed = schema.get("required")
    required = listed if _is_array(listed) else []
    return {name: _property(value, required=name in required, depth=depth) for name, value in declared.items()}


def _property(schema: Any, *, required: bool, depth: int) -> Property:
    if not _is_object(schema) or depth >= _MAX_DEPTH:
        return Property(required=required)
    kind = schema.get("type")
    description = schema.get("description")
    enum = schema.get("enum")
    return Property(
        type=kind if _is_type(kind) else None,
        required=required,
        description=description if isinstance(description, str) else None,
        enum=tuple(enum) if _is_array(enum) else None,
        default=schema.get("default", _ABSENT),
        properties=_properties(schema, depth + 1) if _is_object(schema.get("properties")) else None,
        items=_property(schema["items"], required=False, depth=depth + 1) if "items" in schema else None,
    )


def _check_object(properties: Mapping[str, Property], value: JsonObject, path: str) -> list[str]:
    violations: list[str] = []
    for name, prop in properties.items():
        where = f"{path}.{name}" if path else name
        if name in value:
            violations += _check(prop, value[name], where)
        elif prop.required:
            violations.append(f'"{where}" is required')
    return violations


def _check(prop: Property, value: Any, path: str) -> list[str]:
    if prop.type is not None and not _fits(prop.type, value):
        return [f'"{path}" must be {_ARTICLE[prop.type]}, not {_kind(value)}']
    violations: list[str] = []
    if prop.enum is not None and not any(_same(value, allowed) for allowed in prop.enum):
        violations.append(f'"{path}" must be one of {", ".join(repr(allowed) for allowed in prop.enum)}')
    if prop.properties is not None and _is_object(value):
        violations += _check_object(prop.properties, value, path)
    if prop.items is not None and _is_array(value):
        for index, item in enumerate(value):
            violations += _check(prop.items, item, f"{path}[{index}]")
    return violations


def _fits(kind: PropertyType, value: Any) -> bool:
    if isinstance(value, bool):
        # bool is an int to Python, not to JSON
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _PYTHON_TYPES[kind])


def _same(value: Any, allowed: Any) -> bool:
    return isinstance(value, bool) is isinstance(allowed, bool) and bool(value == allowed)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for kind in ("string", "number", "object", "array"):
        if isinstance(value, _PYTHON_TYPES[kind]):
            return _ARTICLE[kind]
    return "something that is not JSON"


def _is_object(value: Any) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_type(value: Any) -> TypeGuard[PropertyType]:
    return isinstance(value, str) and value in _TYPES


_PYTHON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}
_ARTICLE: Final[dict[str, str]] = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "object": "an object",
    "array": "an array",
}
