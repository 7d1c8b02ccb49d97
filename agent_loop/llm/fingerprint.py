"""The fingerprint of a model call: is this still the request that was recorded? (contract session-log.md §3).

May not know: files, adapters, when it is asked. Invariant: two requests have the same fingerprint exactly when their
messages, system prompt, tools and parameters are equal after the scrub of contract snapshots.md §4; the model's name,
keys and HTTP headers are no part of it, so that a renamed model does not invalidate a recording by itself.
"""

import hashlib
import json
import os
import re
from typing import Any

from agent_loop.llm.seam import LlmRequest
from agent_loop.vocabulary import JsonObject

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
        self._tools: tuple[list[JsonObject], str] = ([], "[]")

    def canonical(self, value: Any) -> str:
        """The canonical JSON text of `value`, scrubbed; UUIDs become `{{uuid1}}`, `{{uuid2}}` by first sight."""
        return self._masked(_text(value))

    def request(self, request: LlmRequest) -> str:
        """`canonical` of messages, parameters, system and tools, whose text is kept: they seldom change."""
        if request.tools is not self._tools[0]:
            self._tools = request.tools, _text(request.tools)
        return self._masked(
            f'{{"messages":{_text(request.messages)},"parameters":{_text(request_parameters(request))},'
            f'"system":{_text(request.system)},"tools":{self._tools[1]}}}'
        )

    def _masked(self, text: str) -> str:
        for (needle, mask), pattern in zip(self._masks, self._patterns, strict=True):
            if needle in text:
                text = pattern.sub(mask, text)
        return _mask_uuids(text)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def _escaped(text: str) -> str:
    """`text` as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _mask_uuids(text: str) -> str:
    seen: dict[str, str] = {}
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
    """SHA-256 of the scrubbed canonical JSON, 64 lower-case hex digits. Linear in the size of the history."""
    text = scrub.request(request)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
