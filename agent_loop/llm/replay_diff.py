"""Says where a request left its recording (contract snapshots.md §5): the first differing path, recorded against now.

May not know: how a request is replayed. Invariant: pure; both sides are scrubbed the same way before they are compared,
so that only a difference that the fingerprint sees is named.
"""

import json
from typing import Any, cast

from agent_loop.llm.fingerprint import Scrub, request_parameters
from agent_loop.llm.replay_script import ReplayScript
from agent_loop.llm.seam import LlmRequest
from agent_loop.session.derive import derive_messages
from agent_loop.session.log import Session
from agent_loop.vocabulary import JsonObject

_SHOWN = 200  # characters of a differing value
_ABSENT = object()


async def first_difference(
    script: ReplayScript, seq: int, session: Session, request: LlmRequest, *, spill_root: str | None
) -> str:
    """Compare the request recorded at the header `seq` with the live one; a sentence part for the error."""
    # a part that was never logged is empty
    recorded: JsonObject = {"system": "", "tools": [], "parameters": {}}
    for event in script.events[: seq + 1]:
        if event.type == "request/header":
            recorded.update({name: event.data[name] for name in recorded if name in event.data})
    recorded["messages"] = derive_messages(script.events[:seq])
    now: JsonObject = {
        "system": request.system or "",
        "tools": request.tools or [],
        "parameters": request_parameters(request),
        # not request.messages: those went through the history normaliser, of which the log knows nothing
        "messages": await session.messages(),
    }
    then_scrub = Scrub(cwd=script.header.get("cwd"), session_id=script.header["id"])
    now_scrub = Scrub(cwd=session.cwd, session_id=session.id, spill_root=spill_root)
    found = _walk("", json.loads(then_scrub.canonical(recorded)), json.loads(now_scrub.canonical(now)))
    if found is None:
        return "history, system prompt, tools and parameters are equal: the normaliser or the fingerprint has changed"
    path, before, after = found
    return f"first difference at {path}: recorded {_shown(before)}, now {_shown(after)}"


def _walk(path: str, before: Any, after: Any) -> tuple[str, Any, Any] | None:
    recorded, now = _children(before), _children(after)
    if recorded is None or now is None or type(before) is not type(after):
        return None if before == after else (path.lstrip("."), before, after)
    for part in {**recorded, **now}:
        if (found := _walk(path + part, recorded.get(part, _ABSENT), now.get(part, _ABSENT))) is not None:
            return found
    return None


def _children(value: Any) -> JsonObject | None:
    if isinstance(value, dict):
        return {f".{key}": inner for key, inner in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return {f"[{index}]": inner for index, inner in enumerate(cast("list[Any]", value))}
    return None


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
