"""Prompt blocks: the client's shape to the log's and back (session-log.md §6, acp.md §2).

May not know: who sent them, where bytes are kept. Invariant: pure; what the client sent is what a reload shows, field
by field; nothing is kept of a prompt of which one block cannot be taken.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from acp_bridge.schema import (
    BlobContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    SchemaProblem,
    TextContent,
    parse,
)
from acp_bridge.translate.v1.cards import cut
from agent_loop.session.attachments import image_type, ref_of
from agent_loop.vocabulary import Block

ATTACHMENT_LIMIT: Final = 10 * 1024 * 1024
"""Bytes of one image or of one binary resource."""
SHOWN_LIMIT: Final = 3_900_000
"""Characters of base64 in one frame: a line stays below 4 MiB."""

FindAttachment = Callable[[str], bytes | None]
"""The bytes of a `ref`; None when they are not there."""
Redact = Callable[[str], str]


class Prompt(NamedTuple):
    """`blocks` as they are logged; `attachments` are the bytes that they name."""

    blocks: list[Block]
    attachments: list[bytes]


def to_prompt(contents: list[dict[str, Any]], *, images: bool, redact: Redact) -> Prompt:
    """Content blocks of a prompt as log blocks, in order. `images`: they were advertised.

    Raises `SchemaProblem` for a block that was not advertised or does not fit, and for a blank prompt.
    """
    prompt = Prompt([], [])
    for index, content in enumerate(contents):
        prompt.blocks.append(_to_block(f"prompt.{index}", content, prompt.attachments, images=images, redact=redact))
    if not any(block["type"] != "text" or block["text"].strip() for block in prompt.blocks):
        raise SchemaProblem("prompt: nothing but blank text; say what you want done")
    return prompt


def _to_block(where: str, content: dict[str, Any], attachments: list[bytes], *, images: bool, redact: Redact) -> Block:
    match content.get("type"):
        case "text":
            text = content.get("text")
            # nearly every block is one that its model would take as it is
            return {"type": "text", "text": text if isinstance(text, str) else parse(TextContent, content).text}
        case "resource_link":
            link = parse(ResourceLink, content)
            fields = link.model_dump(by_alias=True, exclude_none=True)
            return {**fields, "type": "resource-link"}
        case "resource":
            return _resource(where, parse(EmbeddedResource, content), attachments, redact)
        case "image" if images:
            return _image(where, parse(ImageContent, content), attachments)
        case kind:
            offered = "text, resource_link, resource and image" if images else "text, resource_link and resource"
            raise SchemaProblem(
                f"{where}: a block of type {kind!r:.40} is not supported here; {offered} are (see promptCapabilities)"
            )


def _image(where: str, image: ImageContent, attachments: list[bytes]) -> Block:
    data = _decoded(where, image.data)
    if image_type(data) is None:
        raise SchemaProblem(f"{where}: no PNG, JPEG, GIF or WebP image ({image.mime_type!r:.60})")
    attachments.append(data)
    fields = image.model_dump(by_alias=True, exclude_none=True, exclude={"data"})
    return {**fields, "ref": ref_of(data)}


def _resource(where: str, embedded: EmbeddedResource, attachments: list[bytes], redact: Redact) -> Block:
    resource = embedded.resource
    fields = resource.model_dump(by_alias=True, exclude_none=True, exclude={"blob"})
    block: Block = {"type": "resource", **fields, **embedded.model_dump(include={"annotations"}, exclude_none=True)}
    if isinstance(resource, BlobContents):
        data = _decoded(where, resource.blob)
        text = _text(data)
        if text is not None:
            # the bytes are not looked through again: no secret may get into them
            block["text"] = redact(text)
            data = block["text"].encode()
        block["ref"] = ref_of(data)
        attachments.append(data)
    return block


def _decoded(where: str, text: str) -> bytes:
    if len(text) > ATTACHMENT_LIMIT // 3 * 4 + 4:
        raise SchemaProblem(f"{where}: more than {ATTACHMENT_LIMIT // (1024 * 1024)} MiB; send a smaller one")
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SchemaProblem(f"{where}: its data is not base64 ({error})") from error


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def from_block(block: Block, find: FindAttachment) -> dict[str, Any]:
    """A log block as the content block that the client once sent; one that cannot be shown again as readable text."""
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]}
        case "resource-link":
            return {**block, "type": "resource_link"}
        case "resource":
            return _from_resource(block, find)
        case "image":
            data = _encoded(block, find)
            fields = {key: value for key, value in block.items() if key != "ref"}
            return {**fields, "data": data} if data else _noted("image", block.get("uri"))
        case kind:
            return _noted(kind, None)


def _from_resource(block: Block, find: FindAttachment) -> dict[str, Any]:
    resource = {key: block[key] for key in ("uri", "mimeType") if key in block}
    if data := _encoded(block, find):
        resource["blob"] = data
    elif "text" in block:
        resource["text"] = cut(block["text"])
    else:
        return _noted("resource", block["uri"])
    annotations = {"annotations": block["annotations"]} if "annotations" in block else {}
    return {"type": "resource", "resource": resource, **annotations}


def _encoded(block: Block, find: FindAttachment) -> str | None:
    data = find(block["ref"]) if "ref" in block else None
    text = b64encode(data).decode() if data else ""
    return text if 0 < len(text) <= SHOWN_LIMIT else None


def _noted(kind: str, uri: object) -> dict[str, Any]:
    return {"type": "text", "text": f"[{kind} {uri}]" if uri else f"[{kind}]"}
