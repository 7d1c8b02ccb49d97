"""The words of the agent: blocks, messages, chunks, sources, reasons (contracts llm.md §1–§2, session-log.md §3).

May not know: any provider's or editor's shape. Invariant: every value is JSON, built once and never changed
afterwards, with the key order of the contract. Plain dictionaries on purpose: no object is made per chunk.

Sources, triggers, reasons, blocks and finish kinds are open sets (ignore what you do not know);
`StreamChunk` alone is closed.
"""

from typing import Any, Final, Literal, NotRequired, TypedDict

JsonObject = dict[str, Any]

Block = JsonObject
"""`{type:"text",text}` · `{type:"reasoning",text}` · `{type:"tool-call",id,name,arguments}` (raw JSON string) ·
`{type:"tool-result",toolCallId,content,isError?}` · `{type:"image",url|data|ref,mimeType?}` ·
`{type:"resource-link",uri,name,…}` · `{type:"resource",uri,text|ref,mimeType?}`."""

Source = JsonObject
"""`{kind:"user"}` · `{kind:"plugin",plugin}` · `{kind:"agent",agentId}`."""

Trigger = JsonObject
"""`{kind:"message",source}` · `{kind:"injection",source}` · `{kind:"compaction"}` · `{kind:"continuation"}`."""

TurnEndReason = JsonObject
"""`{kind:"completed"|"disposed"|"max-tokens"|"refusal"|"max-steps"|"interrupted"}` · `{kind:"aborted",reason?}` ·
`{kind:"error",step,message,code?}`."""

FinishReason = JsonObject
"""`{kind:"stop"|"tool-calls"|"max-tokens"|"refusal"|"aborted"}` · `{kind:"error",message,code?}`."""

USER: Source = {"kind": "user"}


class Message(TypedDict):
    """One message of the model's history."""

    role: Literal["system", "user", "assistant"]
    content: list[Block]


class Usage(TypedDict):
    """Token counts of one call; disjoint: input excludes what was read from the cache."""

    inputTokens: int
    outputTokens: int
    cacheReadTokens: NotRequired[int]
    cacheWriteTokens: NotRequired[int]
    reasoningTokens: NotRequired[int]


CONTEXT_TOKENS: Final = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
"""The counts of a call that fill the context which the next one begins with."""


class BlockStart(TypedDict):
    type: Literal["block-start"]
    index: int
    blockType: str


class TextDelta(TypedDict):
    type: Literal["text-delta"]
    index: int
    text: str


class ReasoningDelta(TypedDict):
    type: Literal["reasoning-delta"]
    index: int
    text: str


class ToolCallDelta(TypedDict):
    type: Literal["tool-call-delta"]
    index: int
    id: str
    name: NotRequired[str]
    argumentsDelta: str


class BlockEnd(TypedDict):
    type: Literal["block-end"]
    index: int
    block: Block


class UsageChunk(TypedDict):
    type: Literal["usage"]
    usage: Usage


class Finish(TypedDict):
    type: Literal["finish"]
    reason: FinishReason


StreamChunk = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | UsageChunk | Finish


def text_block(text: str) -> Block:
    """`{type:"text",text}`."""
    return {"type": "text", "text": text}
