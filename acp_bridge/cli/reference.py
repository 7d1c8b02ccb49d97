"""`python -m acp_bridge.cli.reference FILE`: writes the table of all settings into docs/configuration.md.

May not know: values. Invariant: the table is a function of `settings.py` alone, and everything else in the file stays.
"""

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from acp_bridge.settings import FLAGS, IN_PROJECT, VARIABLES, Config, table_in

BEGIN: Final = "<!-- the settings: written by `python -m acp_bridge.cli.reference docs/configuration.md` -->"
END: Final = "<!-- end of the settings -->"


def settings_table() -> str:
    """Every setting as a row of a Markdown table."""
    head = "| setting | takes | default | also by | project | |\n|---|---|---|---|---|---|\n"
    return head + "".join(_rows(Config, ""))


def with_table(document: str) -> str:
    """`document` with the present table between its marks. Raises `ValueError` without them."""
    before, begin, rest = document.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no place for the settings: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{settings_table()}\n{END}{after}"


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        inner = table_in(field.annotation)
        if inner is None:
            yield _row(key, field)
        elif get_origin(field.annotation) is dict:
            yield from _rows(inner, f"{key}.NAME.")
        elif get_origin(field.annotation) is tuple:
            yield from _rows(inner, f"{key}[].")
        else:
            yield from _rows(inner, f"{key}.")


def _row(key: str, field: FieldInfo) -> str:
    others = [f"`{name}`" for name in (FLAGS.get(key), VARIABLES.get(key)) if name]
    cells = (
        f"`{key}`",
        _takes(field.annotation),
        "" if field.is_required() else _default(field.default),
        ", ".join(others),
        "yes" if IN_PROJECT in field.metadata else "",
        field.description or "",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _default(value: Any) -> str:
    if value is None or value == ():
        return "–"
    return f"`{json.dumps(value)}`"


_NAMES: Final = {
    str: "text",
    Path: "path",
    SecretStr: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
}


def _takes(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _takes(inner[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin is tuple:
        return f"list of {_takes(inner[0])}"
    if origin in (Union, types.UnionType):
        return " or ".join(_takes(each) for each in inner if each is not type(None))
    return _NAMES[annotation]


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(with_table(document.read_text("utf-8")), "utf-8")
