"""The images of a request as data URLs (contract llm.md §5).

May not know: HTTP, sessions. Invariant: only what the request names is read, each image once; one that is not kept any
more is left out, and the text says so in its place.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator

import anyio.to_thread

from agent_loop.llm.seam import LlmRequest
from agent_loop.session.attachments import image_type
from agent_loop.vocabulary import Block, Message


def is_picture(block: Block) -> bool:
    """An image, or an embedded file that says it is one."""
    if block["type"] == "resource":
        return "ref" in block and str(block.get("mimeType")).startswith("image/") and "text" not in block
    return block["type"] == "image"


async def image_urls(request: LlmRequest) -> dict[str, str]:
    """The data URL of each image that the messages name by `ref`. Raises `SessionStoreError`."""
    urls: dict[str, str] = {}
    for ref in dict.fromkeys(_named(request.messages)):
        data = await request.attachment(ref)
        mime = image_type(data) if data else None
        if data and mime:
            urls[ref] = await anyio.to_thread.run_sync(_data_url, mime, data)
    return urls


def _named(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            inner: list[Block] = block["content"] if block["type"] == "tool-result" else [block]
            yield from (item["ref"] for item in inner if is_picture(item) and "ref" in item)


def _data_url(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{b64encode(data).decode()}"
