"""What servers say, mended where it is not quite what the protocol wants.

May not know: connections, the typed half of the `mcp` package, which refuses a whole list for one bad row. Invariant:
pure and total; what is right already stays as it is, and what cannot be mended is left out.
"""

from typing import Any, cast

from pydantic_core import to_json

from agent_loop.vocabulary import JsonObject

_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def mended(method: str, result: JsonObject) -> JsonObject:
    """The result of `method`, as the package takes it."""
    if method == "tools/list":
        rows = [row for row in map(_tool, _list(result.get("tools"))) if row is not None]
        return {**result, "tools": rows}
    if method == "tools/call" and ("content" in result or "structuredContent" in result):
        return _outcome(result)
    return result


def _tool(row: Any) -> JsonObject | None:
    if not isinstance(row, dict):
        return None
    given = cast("JsonObject", row)
    name = given.get("name")
    if not isinstance(name, str) or not name:
        return None
    schema = given.get("inputSchema")
    schema = cast("JsonObject", schema) if isinstance(schema, dict) else {}
    kept: JsonObject = {"name": name, "inputSchema": {**schema, "type": "object"}}
    description = given.get("description")
    if isinstance(description, str):
        kept["description"] = description
    notes = given.get("annotations")
    read_only = cast("JsonObject", notes).get("readOnlyHint") if isinstance(notes, dict) else None
    if isinstance(read_only, bool):
        kept["annotations"] = {"readOnlyHint": read_only}
    return kept


def _outcome(result: JsonObject) -> JsonObject:
    structured = result.get("structuredContent")
    kept = {key: value for key, value in result.items() if key not in ("content", "structuredContent", "isError")}
    content = [_block(block) for block in _list(result.get("content"))]
    if isinstance(structured, dict):
        kept["structuredContent"] = structured
    elif structured is not None:
        # only an object can be told so before 2026; the model gets it as text
        content.append({"type": "text", "text": to_json(structured).decode()})
    return {**kept, "content": content, "isError": result.get("isError") is True}


def _block(block: Any) -> JsonObject:
    given = cast("JsonObject", block) if isinstance(block, dict) else {}
    kind = given.get("type")
    # optional parts that only people see are where servers go wrong
    plain = {key: value for key, value in given.items() if key not in ("annotations", "_meta", "icons")}
    if kind not in _BLOCKS or not _is_whole(kind, plain):
        return {"type": "text", "text": f"[content that the protocol does not know: {str(kind)[:40]}]"}
    return plain


def _is_whole(kind: str, block: JsonObject) -> bool:
    if kind == "text":
        return isinstance(block.get("text"), str)
    if kind in ("image", "audio"):
        return isinstance(block.get("data"), str) and isinstance(block.get("mimeType"), str)
    if kind == "resource_link":
        return isinstance(block.get("uri"), str) and isinstance(block.get("name"), str)
    resource = block.get("resource")
    row = cast("JsonObject", resource) if isinstance(resource, dict) else {}
    return isinstance(row.get("uri"), str) and (isinstance(row.get("text"), str) or isinstance(row.get("blob"), str))


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
