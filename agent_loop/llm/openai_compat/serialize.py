"""A request as the body of `POST /chat/completions` (contract llm.md §5).

May not know: HTTP, keys. Invariant: pure; the same request gives the same body, keys in the contract's order and no
field that the contract does not name (some providers refuse what they do not know).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json

from agent_loop.llm.history import begins_with
from agent_loop.llm.openai_compat.images import is_picture
from agent_loop.llm.openai_compat.models import ModelProfile
from agent_loop.llm.seam import LlmRequest
from agent_loop.vocabulary import Block, JsonObject, Message

NO_OUTPUT = "(no output)"
THINKING_OFF = "off"
"""The level of a model with a thinking switch that does not think; `on`: it thinks, and takes no effort."""

RESOURCE_LIMIT: Final = 100_000
"""Characters of an embedded resource that the model is given; of more only the beginning, and a note."""

_BACKTICKS = re.compile(r"`+")


class RequestWriter:
    """`request_body` as the bytes that are sent.

    What stands for the tools and for the messages before the new ones is kept: a message is never changed once it is
    made, and every prompt sends all of them again. Pictures are not kept.
    """

    __slots__ = ("_known", "_rows", "_tools")

    def __init__(self) -> None:
        self._tools: tuple[list[JsonObject], bytes] = ([], b"")
        self._known: list[Message] = []
        self._rows = bytearray()  # of the known messages

    def write(self, request: LlmRequest, profile: ModelProfile, image_urls: Mapping[str, str] | None = None) -> bytes:
        """See `request_body`."""
        if profile.images:
            return to_json(request_body(request, profile, image_urls))
        system = b"" if request.system is None else to_json({"role": "system", "content": request.system}) + b","
        rows = (system + self._history(request.messages))[:-1]
        if request.tools is not self._tools[0]:
            self._tools = request.tools, to_json(_wire_tools(request.tools))[1:-1]
        before, after = _around_tools(request, profile)
        parts = [
            to_json({"model": request.model})[1:-1],
            b'"messages":[' + rows + b"]",
            to_json(before)[1:-1],
            self._tools[1],
            to_json(after)[1:-1],
        ]
        return b"{" + b",".join(filter(None, parts)) + b"}"

    def _history(self, messages: list[Message]) -> bytearray:
        """The rows, each with its comma."""
        if not begins_with(messages, self._known):
            self._known, self._rows = [], bytearray()
        for message in messages[len(self._known) :]:
            # all of its rows or none: what cannot be written must leave nothing behind
            self._rows += b"".join([to_json(row) + b"," for row in _wire_messages(message, None)])
            self._known.append(message)
        return self._rows


def request_body(request: LlmRequest, profile: ModelProfile, image_urls: Mapping[str, str] | None = None) -> JsonObject:
    """The body; `request.messages` are normalised for `profile` already. `image_urls` by the images' `ref`."""
    before, after = _around_tools(request, profile)
    messages = _wire_history(request, profile, image_urls)
    return {"model": request.model, "messages": messages, **before, **_wire_tools(request.tools), **after}


def _around_tools(request: LlmRequest, profile: ModelProfile) -> tuple[JsonObject, JsonObject]:
    """What stands between the messages and the tools, and behind those."""
    effort = request.effort
    off = effort == THINKING_OFF
    before: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
    if profile.thinking_switch and effort is not None:
        before["thinking"] = {"type": "disabled" if off else "enabled"}
    if effort in profile.efforts:
        before["reasoning_effort"] = effort
    optional = (("temperature", request.temperature), ("max_tokens", request.max_tokens), ("stop", request.stop))
    return before, {key: value for key, value in optional if value is not None}


def _wire_history(request: LlmRequest, profile: ModelProfile, image_urls: Mapping[str, str] | None) -> list[JsonObject]:
    messages: list[JsonObject] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    urls = (image_urls or {}) if profile.images else None
    seen: list[JsonObject] = []
    for message in request.messages:
        # what the tools showed stands behind all results of their group: between those a provider takes nothing
        if seen and not _holds_results(message):
            messages.append({"role": "user", "content": seen})
            seen = []
        messages.extend(_wire_messages(message, urls))
        if urls is not None:
            seen += _shown_by_tools(message, urls)
    if seen:
        messages.append({"role": "user", "content": seen})
    return messages


def _wire_tools(tools: list[JsonObject]) -> JsonObject:
    return {"tools": [{"type": "function", "function": tool} for tool in map(_function, tools)]} if tools else {}


def _function(tool: JsonObject) -> JsonObject:
    return {key: tool[key] for key in ("name", "description", "parameters", "strict") if key in tool}


def _holds_results(message: Message) -> bool:
    return any(block["type"] == "tool-result" for block in message["content"])


def _shown_by_tools(message: Message, urls: Mapping[str, str]) -> list[JsonObject]:
    """The images of tool results, which a `tool` message cannot hold, each below a line that says whose it is."""
    parts: list[JsonObject] = []
    for block in message["content"]:
        images = [item for item in block["content"] if is_picture(item)] if block["type"] == "tool-result" else []
        if images:
            parts.append({"type": "text", "text": f"[images in the result of call {block['toolCallId']}]"})
            parts += [_part(image, urls) for image in images]
    return parts


def _wire_messages(message: Message, urls: Mapping[str, str] | None) -> list[JsonObject]:
    """`urls` None: the model takes no images."""
    content = message["content"]
    if len(content) == 1 and content[0]["type"] == "text" and content[0]["text"]:
        # most messages are this, and every prompt sends all of them again
        return [{"role": message["role"], "content": content[0]["text"]}]
    if message["role"] == "assistant":
        return [_assistant(content)]
    # results first: a provider wants them right behind the message that made the calls
    rows: list[JsonObject] = [
        {
            "role": "tool",
            "tool_call_id": block["toolCallId"],
            "content": _result_text(block["content"], urls) or NO_OUTPUT,
        }
        for block in content
        if block["type"] == "tool-result"
    ]
    said = [block for block in content if block["type"] != "tool-result"]
    if urls is not None and any(map(is_picture, said)):
        rows.append({"role": message["role"], "content": [_part(block, urls) for block in said]})
        return rows
    text = _text(said)
    if text or not rows:
        rows.append({"role": message["role"], "content": text})
    return rows


def _assistant(content: list[Block]) -> JsonObject:
    text = "".join(block["text"] for block in content if block["type"] == "text")
    reasoning = "".join(block["text"] for block in content if block["type"] == "reasoning")
    calls = [_call(block) for block in content if block["type"] == "tool-call"]
    row: JsonObject = {"role": "assistant", "content": text or ("" if calls else None)}
    if reasoning:
        row["reasoning_content"] = reasoning
    if calls:
        row["tool_calls"] = calls
    return row


def _call(block: Block) -> JsonObject:
    # a call without arguments ran as {}, and servers that parse what is sent back refuse an empty text
    arguments = block["arguments"] if block["arguments"].strip() else "{}"
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def _text(blocks: list[Block]) -> str:
    return "".join(map(_block_text, blocks))


def _result_text(blocks: list[Block], urls: Mapping[str, str] | None) -> str:
    if urls is None:
        return _text(blocks)
    return "".join("\n[image below]\n" if is_picture(block) else _block_text(block) for block in blocks)


def _block_text(block: Block) -> str:
    match block["type"]:
        case "text":
            return block["text"]
        case "resource-link":
            return f"\n[resource_link name={_quoted(block['name'])} uri={_quoted(block['uri'])}]\n"
        case "resource" if "text" in block:
            return _fenced(block["uri"], block["text"])
        case "resource":
            return f"\n[resource uri={_quoted(block['uri'])}: not text, left out]\n"
        case "image":
            return "\n[image left out: this model reads text only]\n"
        case _:
            # blocks are an open set: what this version does not know has no text
            return ""


def _part(block: Block, urls: Mapping[str, str]) -> JsonObject:
    if not is_picture(block):
        return {"type": "text", "text": _block_text(block)}
    if "ref" in block:
        url = urls.get(block["ref"])
        if url is None:
            return {"type": "text", "text": "\n[image left out: it is not kept any more]\n"}
    else:
        url = block["url"] if "url" in block else f"data:{block.get('mimeType', 'image/png')};base64,{block['data']}"
    return {"type": "image_url", "image_url": {"url": url}}


def _fenced(uri: str, text: str) -> str:
    """A fence longer than every run of backticks in the text, so that the text cannot close it."""
    left = max(0, len(text) - RESOURCE_LIMIT)
    note = f"[{left} more characters of this resource were left out]\n" if left else ""
    text = text[:RESOURCE_LIMIT]
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"\n[resource uri={_quoted(uri)}]\n{fence}\n{text}{end}{fence}\n{note}"


def _quoted(value: Any) -> str:
    return to_json(value).decode()
