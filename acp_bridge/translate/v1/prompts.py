"""Prompt blocks: the client's shape to the log's and back (session-log.md §6, acp.md §2).

May not know: who sent them. Invariant: pure; what the client sent is what a reload shows, field by field.
"""

from typing import Any

from acp_bridge.schema import ResourceLink, SchemaProblem, TextContent, parse
from agent_loop.vocabulary import Block


def to_blocks(prompt: list[dict[str, Any]]) -> list[Block]:
    """Content blocks of a prompt as log blocks, in order.

    Raises `SchemaProblem` for a block that was not advertised or does not fit, and for a blank prompt.
    """
    blocks = [_to_block(index, content) for index, content in enumerate(prompt)]
    if not any(block["type"] != "text" or block["text"].strip() for block in blocks):
        raise SchemaProblem("prompt: nothing but blank text; say what you want done")
    return blocks


def _to_block(index: int, content: dict[str, Any]) -> Block:
    match content.get("type"):
        case "text":
            return {"type": "text", "text": parse(TextContent, content).text}
        case "resource_link":
            link = parse(ResourceLink, content)
            fields = link.model_dump(by_alias=True, exclude_none=True)
            return {**fields, "type": "resource-link"}
        case kind:
            raise SchemaProblem(
                f"prompt.{index}: a block of type {kind!r:.40} is not supported here; "
                "text and resource_link are (see promptCapabilities)"
            )


def from_block(block: Block) -> dict[str, Any]:
    """A log block as the content block that the client once sent; an unknown one as readable text."""
    if block["type"] == "resource-link":
        return {**block, "type": "resource_link"}
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    return {"type": "text", "text": f"[{block['type']}]"}
