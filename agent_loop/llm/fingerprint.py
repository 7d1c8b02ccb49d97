"""The fingerprint of a model call: is this still the request that was recorded? (contract session-log.md §3).

May not know: files, adapters, when it is asked. Invariant: two requests have the same fingerprint exactly when their
messages, system prompt, tools and parameters are equal after the scrub of contract snapshots.md §4; the model's name,
keys and HTTP headers are no part of it, so that a renamed model does not invalidate a recording by itself.
"""

import hashlib
import json
import os
import re
from typing import Any, Final, NamedTuple

from agent_loop.llm.history import begins_with
from agent_loop.llm.seam import LlmRequest
from agent_loop.vocabulary import JsonObject, Message

# begins with a literal on purpose: `re` then skips to each dash instead of trying every character of a long history
_UUID_TAIL = re.compile(
    r"-(?<=[^0-9a-fA-F][0-9a-fA-F]{8}-)[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![0-9a-fA-F])"
)
_UUID_HEAD_LENGTH = 8


class Scrub:
    """Replaces what differs from run to run: working directory, session id, spill root, other UUIDs.

    Make one per session: resolving the real paths reads the file system.
    """

    def __init__(self, *, cwd: str | None, session_id: str, spill_root: str | None = None) -> None:
        masks = {session_id: "{{sessionId}}"}
        for path, mask in ((spill_root, "{{spill}}"), (cwd, "{{cwd}}")):
            if path is not None:
                masks[os.path.realpath(path)] = mask
                masks[path] = mask
        # the longest first: a spill directory may lie inside the working directory
        ordered = sorted((needle for needle in masks if needle not in {"", "/"}), key=len, reverse=True)
        self._masks = [(_escaped(needle), masks[needle]) for needle in ordered]
        # `/tmp/a` is not a part of `/tmp/ab`
        self._patterns = [re.compile(re.escape(needle) + r"(?![\w-])") for needle, _mask in self._masks]
        # a match that spans two messages holds the bracket between them
        self._spans = any("}" in needle for needle, _mask in self._masks)
        self._history = _History()
        self._rest = _Rest("", None, [], b"")

    def canonical(self, value: Any) -> str:
        """The canonical JSON text of `value`, scrubbed; UUIDs become `{{uuid1}}`, `{{uuid2}}` by first sight."""
        return _mask_uuids(self._masked(_text(value)), {})

    def digest(self, request: LlmRequest) -> str:
        """The hash of `canonical` of messages, parameters, system and tools.

        Linear in what is new: of messages, system prompt and tools those that were there the last time are known, which
        are the same objects. They must not have been changed in the meantime.
        """
        if self._spans or not request.messages:
            return hashlib.sha256(_utf8(self.canonical(_parts(request)))).hexdigest()
        history, messages = self._history, request.messages
        if not begins_with(messages, history.messages):
            history = self._history = _History()
        if new := messages[len(history.messages) :]:
            opening = "," if history.messages else '{"messages":['
            history.add(new, self._masked(opening + _text(new)[1:-1]))
        rest = self._rest_of(request)
        digest = history.hash.copy()
        digest.update(rest if isinstance(rest, bytes) else _utf8(_mask_uuids(rest, {**history.uuids})))
        return digest.hexdigest()

    def _rest_of(self, request: LlmRequest) -> bytes | str:
        parameters, rest = _text(request_parameters(request)), self._rest
        if not (request.tools is rest.tools and request.system == rest.system and parameters == rest.parameters):
            system, tools = _text(request.system), _text(request.tools)
            text = self._masked(f'],"parameters":{parameters},"system":{system},"tools":{tools}}}')
            scrubbed = text if _UUID_TAIL.search(text) else _utf8(text)
            rest = self._rest = _Rest(parameters, request.system, request.tools, scrubbed)
        return rest.scrubbed

    def _masked(self, text: str) -> str:
        for (needle, mask), pattern in zip(self._masks, self._patterns, strict=True):
            if needle in text:
                text = pattern.sub(mask, text)
        return text


class _History:
    """The first messages of a conversation, hashed, and the UUIDs in them with their masks."""

    __slots__ = ("hash", "messages", "uuids")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.uuids: dict[str, str] = {}
        self.hash = hashlib.sha256()

    def add(self, messages: list[Message], masked: str) -> None:
        """These come next; `masked` is their text but for the UUIDs."""
        self.hash.update(_utf8(_mask_uuids(masked, self.uuids)))
        self.messages += messages


class _Rest(NamedTuple):
    """What follows the messages. As text when UUIDs are in it: they are numbered behind those of the messages."""

    parameters: str
    system: str | None
    tools: list[JsonObject]
    scrubbed: bytes | str


def _parts(request: LlmRequest) -> JsonObject:
    return {
        "messages": request.messages,
        "parameters": request_parameters(request),
        "system": request.system,
        "tools": request.tools,
    }


_text: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False).encode


def _escaped(text: str) -> str:
    """`text` as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _mask_uuids(text: str, seen: dict[str, str]) -> str:
    """`text` with a mask for each UUID; those that are not `seen` yet get the next numbers and are added."""
    pieces: list[str] = []
    end = 0
    for match in _UUID_TAIL.finditer(text):
        start = match.start() - _UUID_HEAD_LENGTH
        uuid = text[start : match.end()].lower()
        pieces.append(text[end:start])
        pieces.append(seen.setdefault(uuid, f"{{{{uuid{len(seen) + 1}}}}}"))
        end = match.end()
    pieces.append(text[end:])
    return "".join(pieces)


def request_parameters(request: LlmRequest) -> JsonObject:
    """What was set of `{temperature?, maxTokens?, stop?, effort?}`, as `request/header` logs it."""
    parameters: JsonObject = {
        "temperature": request.temperature,
        "maxTokens": request.max_tokens,
        "stop": request.stop,
        "effort": request.effort,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def fingerprint(request: LlmRequest, *, scrub: Scrub) -> str:
    """SHA-256 of the scrubbed canonical JSON, 64 lower-case hex digits."""
    return scrub.digest(request)
