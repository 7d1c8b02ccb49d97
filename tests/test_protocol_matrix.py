"""`docs/protocol.md` says what the code says, and every row of its table names a test that is there."""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from acp_bridge.schema import ClientCapabilities
from tests.support.official import SHARED_SCHEMA
from tests.support.protocol_matrix import CLIENT_METHODS, COVERED, ON_THE_WIRE, PAGE, ROOT, UPDATES, spoken, written

ROWS = [(group, name) for group, names in spoken().items() for name in names]


@cache
def source(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def names_in(path: Path) -> set[str]:
    return {
        node.name for node in ast.parse(source(path)).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_the_page_is_as_the_code_is():
    page = PAGE.read_text("utf-8")
    assert page == written(page), "python -m tests.support.protocol_matrix writes it"


@pytest.mark.parametrize(("group", "name"), ROWS)
def test_what_is_spoken_is_covered(group, name):
    covered = COVERED[group].get(name)
    assert covered, f"COVERED in tests/support/protocol_matrix.py names no test of the {group} {name}"
    path, _, test = covered.partition("::")
    if path.startswith("snapshots/"):
        if group in ("update", "asked of the client"):
            kind = "sessionUpdate" if group == "update" else "method"
            assert f'"{kind}":"{name}"' in source(ROOT / path / "stdout.golden.jsonl")
        assert (ROOT / path).is_dir()
    else:
        assert test in names_in(ROOT / path)


def test_nothing_is_covered_that_is_not_spoken():
    assert [(group, name) for group, names in COVERED.items() for name in names if (group, name) not in ROWS] == []


def test_every_client_capability_that_is_read_has_a_name_on_the_wire():
    assert set(ON_THE_WIRE) == set(ClientCapabilities.model_fields)


@pytest.mark.skipif(not SHARED_SCHEMA.exists(), reason="the official schema does not lie beside this checkout")
def test_the_lists_are_those_of_the_official_schema():
    definitions = json.loads(source(SHARED_SCHEMA))["$defs"]
    kinds = [row["properties"]["sessionUpdate"]["const"] for row in definitions["SessionUpdate"]["oneOf"]]
    assert sorted(UPDATES) == sorted(kinds)
    asked = {row["x-method"] for row in definitions.values() if row.get("x-side") == "client" and "x-method" in row}
    assert set(CLIENT_METHODS) | {"session/update", "elicitation/complete"} >= asked
