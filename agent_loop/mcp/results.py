"""What a tool of a server answered, as blocks for the model.

May not know: connections, who asked. Invariant: pure; the blocks of one answer stay within a size that a log line, a
frame and a model can take, and what is left out is said.
"""

import base64
import binascii
from typing import Any, cast

from pydantic_core import to_json

from agent_loop.tools.seam import ToolOutcome
from agent_loop.vocabulary import Block, JsonObject, text_block

TEXT_LIMIT = 100_000
"""Characters of all texts of an answer."""
IMAGE_LIMIT = 3 * 1024 * 1024
"""Characters of all images of an answer, as base64."""
NOTHING = "(the tool answered nothing)"


def outcome_of(result: JsonObject) -> ToolOutcome:
    """The outcome of a `tools/call` result: `content` in order; without one, `structuredContent` as JSON."""
    content = cast("list[JsonObject]", result["content"])
    structured: Any = result.get("structuredContent")
    blocks = [_block(block) for block in content]
    if not blocks and structured is not None:
        blocks = [text_block(to_json(structured, indent=2).decode())]
    if not blocks:
        blocks = [text_block(NOTHING)]
    is_error = bool(result.get("isError"))
    error = {"name": "McpToolError", "code": "MCP_TOOL_ERROR"} if is_error else None
    return ToolOutcome(_within_limits(blocks), is_error=is_error, error=error)


def _block(block: JsonObject) -> Block:
    match block["type"]:
        case "text":
            return text_block(block["text"])
        case "image" if _is_base64(block["data"]):
            return {"type": "image", "data": block["data"], "mimeType": block["mimeType"]}
        case "image":
            return text_block("[an image that cannot be read]")
        case "audio":
            return text_block(f"[sound ({block['mimeType']}) left out]")
        case "resource_link":
            return text_block(f"[resource {block['name']}: {block['uri']}]")
        case _:
            return _resource(block["resource"])


def _resource(resource: JsonObject) -> Block:
    kind = resource.get("mimeType") or ""
    if "text" in resource:
        return text_block(f"[resource {resource['uri']}]\n{resource['text']}")
    if kind.startswith("image/") and _is_base64(resource["blob"]):
        return {"type": "image", "data": resource["blob"], "mimeType": kind}
    return text_block(f"[resource {resource['uri']} ({kind or 'bytes'}): not text, left out]")


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except binascii.Error:
        return False


def _within_limits(blocks: list[Block]) -> list[Block]:
    texts, images = TEXT_LIMIT, IMAGE_LIMIT
    kept: list[Block] = []
    for block in blocks:
        if block["type"] == "image":
            images -= len(block["data"])
            kept.append(
                block if images >= 0 else text_block("[an image left out: the answer has too many or large ones]")
            )
        else:
            text: str = block["text"]
            if texts > 0:
                kept.append(block if len(text) <= texts else text_block(_cut(text, texts)))
            texts -= len(text)
    if texts < 0:
        kept.append(text_block("[the rest of the answer was left out: ask the tool for less]"))
    return kept


def _cut(text: str, limit: int) -> str:
    tail = limit // 4
    return f"{text[: limit - tail]}\n[… {len(text) - limit} characters left out …]\n{text[-tail:]}"
