"""What servers say, mended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import types

from agent_loop.mcp.forgiving import mended

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
OBJECT = {"type": "object"}


def tool(**fields):
    return mended("tools/list", {"tools": [{"name": "t", **fields}]})["tools"]


def content(*blocks):
    return mended("tools/call", {"content": list(blocks)})["content"]


@pytest.mark.parametrize("given_schema", [{}, None, 7, OBJECT, {"type": ["object", "null"]}])
def test_a_tool_gets_a_schema_that_is_an_object(given_schema):
    assert tool(inputSchema=given_schema) == [{"name": "t", "inputSchema": OBJECT}]


def test_a_schema_keeps_whatever_it_says():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [{}]}}}
    assert tool(inputSchema=schema, description="does") == [{"name": "t", "inputSchema": schema, "description": "does"}]


def test_of_the_notes_about_a_tool_only_that_it_reads_is_kept():
    notes = {"title": 4, "readOnlyHint": True, "destructiveHint": "no"}
    assert tool(annotations=notes)[0]["annotations"] == {"readOnlyHint": True}
    assert "annotations" not in tool(annotations={"readOnlyHint": "yes"})[0]
    assert "annotations" not in tool(annotations=[], outputSchema={"type": "array"})[0]


def test_rows_without_a_name_are_left_out():
    assert mended("tools/list", {"tools": [7, {"name": ""}, {"name": 3}]}) == {"tools": []}
    assert mended("tools/list", {"tools": None, "nextCursor": "2"}) == {"tools": [], "nextCursor": "2"}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "x"},
        {"type": "image", "data": "aa==", "mimeType": "image/png"},
        {"type": "audio", "data": "aa==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "u:", "name": "n"},
        {"type": "resource", "resource": {"uri": "u:", "text": "t"}},
        {"type": "resource", "resource": {"uri": "u:", "blob": "b"}},
    ],
)
def test_a_whole_block_stays(block):
    assert content(block) == [block]
    assert content({**block, "annotations": {"priority": "high"}}) == [block]


@pytest.mark.parametrize(
    "block",
    [7, {}, {"type": "text"}, {"type": "image", "data": "x"}, {"type": "resource", "resource": 3}, {"type": "riddle"}],
)
def test_any_other_block_becomes_a_note(block):
    (note,) = content(block)
    assert note["type"] == "text"
    assert note["text"].startswith("[content that the protocol does not know")


def test_structured_content_that_is_no_object_becomes_text():
    assert mended("tools/call", {"structuredContent": [1]}) == {
        "content": [{"type": "text", "text": "[1]"}],
        "isError": False,
    }
    assert mended("tools/call", {"structuredContent": {"a": 1}, "isError": True, "resultType": "complete"}) == {
        "structuredContent": {"a": 1},
        "content": [],
        "isError": True,
        "resultType": "complete",
    }


def test_everything_else_passes():
    asks = {"inputRequests": {}}
    assert mended("tools/call", asks) is asks
    assert mended("initialize", asks) is asks


@given(st.dictionaries(st.sampled_from(["tools", "content", "structuredContent", "isError"]), JSON))
def test_whatever_comes_what_goes_on_is_what_the_package_takes(result):
    types.ListToolsResult.model_validate(mended("tools/list", result), by_name=False)
    if "content" in result or "structuredContent" in result:
        types.CallToolResult.model_validate(mended("tools/call", result), by_name=False)
