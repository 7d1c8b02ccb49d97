"""Does an event's data have the fields of the contract's table (session-log.md §3, llm.md §2)?

May not know: order and nesting. Invariant: whoever reads an event that passed may index its required fields without
looking first, and those of an optional object that is there. Extra fields and unknown kinds inside open sets are
nobody's business here; `StreamChunk` alone is closed.
"""

from typing import Any, Final, cast

from agent_loop.vocabulary import JsonObject

Fields = tuple[tuple[str, type], ...]

_TURN: Final[Fields] = (("turn", int),)
_STEP: Final[Fields] = (("turn", int), ("step", int))
_SAID: Final[Fields] = (("content", list), ("source", dict))

# every known type
_REQUIRED: Final[dict[str, Fields]] = {
    "turn/start": (*_TURN, ("trigger", dict)),
    "turn/end": (*_TURN, ("reason", dict)),
    "step/start": _STEP,
    "step/end": _STEP,
    "user/message": _SAID,
    "context/message": _SAID,
    "steering/message": (*_TURN, *_SAID),
    "assistant/chunk": (*_STEP, ("chunk", dict)),
    "assistant/message": (*_STEP, ("content", list)),
    "tool/call": (*_STEP, ("callId", str), ("name", str), ("arguments", str)),
    "tool/result": (*_STEP, ("callId", str), ("content", list), ("isError", bool)),
    "request/header": (*_STEP, ("model", str), ("provider", str), ("fingerprint", str)),
    "permission/request": (("callId", str), ("digest", str)),
    "permission/decision": (("callId", str), ("digest", str), ("outcome", str), ("by", str)),
    "command/run": (("commandId", str), ("line", str)),
    "command/done": (("commandId", str), ("ok", bool), ("text", str)),
    "session/title": (("title", str), ("by", str)),
    "session/notice": (("severity", str), ("title", str)),
    "plan/update": (("entries", list),),
    "mode/change": (("modeId", str),),
    "config/change": (("configId", str),),
    "llm/retry": (*_STEP, ("attempt", int), ("code", str), ("delayMs", int)),
    "history/compacted": (("fromSeq", int), ("toSeq", int), ("summary", str)),
    "loop/change": (),
}
_CHUNK: Final[dict[object, Fields]] = {
    "block-start": (("index", int), ("blockType", str)),
    "text-delta": (("index", int), ("text", str)),
    "reasoning-delta": (("index", int), ("text", str)),
    "tool-call-delta": (("index", int), ("id", str), ("argumentsDelta", str)),
    "block-end": (("index", int), ("block", dict)),
    "usage": (("usage", dict),),
    "finish": (("reason", dict),),
}
_TEXT: Final[Fields] = (("text", str),)
_URI: Final[Fields] = (("uri", str),)
# of the kinds of block that somebody reads; the others are kept as they are
_BLOCK: Final[dict[str, Fields]] = {
    "text": _TEXT,
    "reasoning": _TEXT,
    "tool-call": (("id", str), ("name", str), ("arguments", str)),
    "tool-result": (("toolCallId", str), ("content", list)),
    "resource-link": _URI,
    "resource": _URI,
}
_KIND: Final[Fields] = (("kind", str),)
# fields that are objects with fields of their own; they may be absent or null when their event does not require them
_INNER: Final[dict[str, tuple[tuple[str, Fields], ...]]] = {
    "turn/end": (("reason", _KIND),),
    "user/message": (("source", _KIND),),
    "context/message": (("source", _KIND),),
    "steering/message": (("source", _KIND),),
    "assistant/message": (("usage", (("inputTokens", int), ("outputTokens", int))),),
    "tool/result": (("meta", ()), ("error", ())),
}
_WITH_BLOCKS: Final = frozenset(name for name, required in _REQUIRED.items() if ("content", list) in required)
_WORDS: Final[dict[type, str]] = {int: "an integer", str: "a string", list: "a list", dict: "an object", bool: "a bool"}


def shape_fault(event_type: str, data: Any) -> str | None:
    """What is wrong with the data of a known event, in words; None when nothing is, or when the type is unknown."""
    required = _REQUIRED.get(event_type)
    if required is None:
        return None
    if type(data) is not dict:
        return "its data is not an object"
    known = cast("JsonObject", data)
    # `_fields_fault`, which would be a call for every event
    for name, kind in required:
        if type(known.get(name)) is not kind:
            return _not_a(name, kind)
    if event_type == "assistant/chunk":
        return _chunk_fault(known["chunk"])
    fault = _inner_fault(_INNER[event_type], known) if event_type in _INNER else None
    if fault is None and event_type in _WITH_BLOCKS:
        return _blocks_fault(known["content"])
    return fault


def _fields_fault(required: Fields, data: JsonObject) -> str | None:
    for name, kind in required:
        if type(data.get(name)) is not kind:
            return _not_a(name, kind)
    return None


def _not_a(name: str, kind: type) -> str:
    return f"{name!r} is not {_WORDS[kind]}"


def _chunk_fault(chunk: JsonObject) -> str | None:
    kind = chunk.get("type")
    required = _CHUNK.get(kind) if type(kind) is str else None
    if required is None:
        return "its chunk is of no known type"
    return _fields_fault(required, chunk)


def _inner_fault(inner: tuple[tuple[str, Fields], ...], data: JsonObject) -> str | None:
    for name, required in inner:
        value = data.get(name)
        if value is None:
            continue
        if type(value) is not dict:
            return f"{name!r} is not an object"
        fault = _fields_fault(required, cast("JsonObject", value))
        if fault is not None:
            return f"in {name!r}, {fault}"
    return None


def _blocks_fault(content: list[Any]) -> str | None:
    for block in content:
        if type(block) is not dict or type(cast("JsonObject", block).get("type")) is not str:
            return "its content holds something that is no block"
        known = cast("JsonObject", block)
        fault = _fields_fault(_BLOCK.get(known["type"], ()), known)
        if fault is not None:
            return f"a {known['type']} block is malformed: {fault}"
    return None
