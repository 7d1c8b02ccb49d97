"""The rules that hold over all frames of a run: each wire that a check recorded is judged by all of them.

May not know: what a check did, and why. Invariant: nothing is held against the agent that an odd client can cause;
a finding is one line that shows the frame.
"""

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acp_bridge.testing.conformance.lab import Wire
from acp_bridge.testing.conformance.verdicts import SOFT
from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode
from acp_bridge.testing.normalise import update_of
from acp_bridge.testing.validate import RESPONSES, Referee

Judge = Callable[[Wire], Iterator[str]]

_CHUNKS = {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"}
_CARDS = {"tool_call", "tool_call_update"}
_ORDER = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}
_STOP_REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
_PATH_KEYS = {"path", "cwd", "file_path"}
_WORD = re.compile(r"[a-z_0-9/$]{0,40}")
_SHOWN = 300
_MOST = 5  # findings of one rule in one wire


def judged(wires: Iterable[Wire]) -> dict[str, tuple[str, ...]]:
    """Rule id → what these wires broke of it; rules without findings are left out."""
    found: dict[str, list[str]] = {}
    for wire in wires:
        for rule_id, judge in JUDGES.items():
            lines = list(dict.fromkeys(judge(wire)))[:_MOST]
            if lines:
                found.setdefault(rule_id, []).extend(lines)
    return {rule_id: tuple(lines[:_MOST]) for rule_id, lines in found.items()}


def not_judged() -> list[str]:
    """What the official definitions could not be asked, and why."""
    return list(_referee().skipped)


def _agent_frames(wire: Wire) -> Iterator[JsonObject]:
    """The frames that are of one of the four kinds: the others are a matter of one rule only."""
    return (entry.frame for entry in wire.entries if entry.sender == "agent" and _kind(entry.frame) is not None)


def _kind(frame: JsonObject) -> str | None:
    """`request`, `notification`, `result` or `error`; None when it is none, or several."""
    has_id, has_result, has_error = "id" in frame, "result" in frame, "error" in frame
    if "method" in frame:
        is_call = isinstance(frame["method"], str) and not has_result and not has_error
        return ("request" if has_id else "notification") if is_call else None
    if not has_id or has_result == has_error:
        return None
    return "result" if has_result else "error"


def _shown(value: Any) -> str:
    return encode(value)[:_SHOWN]


def _lines(wire: Wire) -> Iterator[str]:
    for line in wire.noise:
        yield f"a line of stdout that is no JSON object: {line[:_SHOWN]!r}"


def _classes(wire: Wire) -> Iterator[str]:
    for entry in wire.entries:
        if entry.sender == "agent":
            if entry.frame.get("jsonrpc") != "2.0":
                yield f'a frame without jsonrpc "2.0": {_shown(entry.frame)}'
            if _kind(entry.frame) is None:
                yield f"neither one request, notification, result nor error: {_shown(entry.frame)}"


def _answered_once(wire: Wire) -> Iterator[str]:
    # a client may use an id again once it was answered
    open_ids: dict[str, int] = {}
    for entry in wire.entries:
        frame = entry.frame
        if entry.sender == "client" and "method" in frame and "id" in frame:
            key = encode(frame["id"])
            open_ids[key] = open_ids.get(key, 0) + 1
        elif entry.sender == "agent" and _kind(frame) in {"result", "error"} and frame["id"] is not None:
            key = encode(frame["id"])
            open_ids[key] = open_ids.get(key, 0) - 1
            if open_ids[key] < 0:
                yield f"a response to no open request: {_shown(frame)}"


def _errors(wire: Wire) -> Iterator[str]:
    for frame in _agent_frames(wire):
        if _kind(frame) == "error":
            error = as_object(frame["error"]) or {}
            if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
                yield f"an error needs an integer code and a message: {_shown(frame)}"
            elif "data" in error and error["data"] is None:
                yield f"{SOFT}the data of an error is null: {_shown(frame)}"
        elif _kind(frame) == "result" and frame["result"] is None:
            yield f"{SOFT}a result is null: {_shown(frame)}"


def _definitions(wire: Wire) -> Iterator[str]:
    asked: dict[str, str] = {}
    chosen: list[Entry] = []
    for entry in wire.entries:
        frame = entry.frame
        if entry.sender == "client":
            if isinstance(frame.get("method"), str) and "id" in frame:
                asked[encode(frame["id"])] = frame["method"]
                chosen.append(entry)
        elif _is_defined(frame, asked) and (key := (_method(frame, asked), _shape(frame))) not in _APPROVED:
            lines = _referee().violations([*chosen, entry])
            yield from lines
            if not lines:
                _APPROVED.add(key)


def _is_defined(frame: JsonObject, asked: Mapping[str, str]) -> bool:
    kind = _kind(frame)
    if kind == "result":
        return _method(frame, asked) in RESPONSES
    return kind in {"request", "notification"}


def _method(frame: JsonObject, asked: Mapping[str, str]) -> str:
    return frame["method"] if "method" in frame else asked.get(encode(frame["id"]), "")


# frames of these shapes have fit their definition: of a thousand chunks one is looked at
_APPROVED: set[tuple[str, Any]] = set()


def _shape(value: Any) -> Any:
    """What of a value a schema can see: keys, types, words, signs; texts and numbers are left out."""
    if (table := as_object(value)) is not None:
        return tuple((key, _shape(item)) for key, item in table.items())
    if (items := as_list(value)) is not None:
        return frozenset(map(_shape, items))
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) else "A text"
    if isinstance(value, bool) or value is None:
        return str(value)
    return (type(value).__name__, value < 0)


@functools.cache
def _referee() -> Referee:
    return Referee(environment=os.environ)


def _absolute(wire: Wire) -> Iterator[str]:
    for frame in _agent_frames(wire):
        body = frame.get("params", frame.get("result"))
        for key, path in _paths(body):
            if not Path(path).is_absolute():
                yield f"{key} {path!r} is not absolute: {_shown(frame)}"


def _paths(value: Any) -> Iterator[tuple[str, str]]:
    """Paths of the protocol; what a tool was given and gave is its own affair, as is what the model said."""
    for item in as_list(value) or []:
        yield from _paths(item)
    for key, item in (as_object(value) or {}).items():
        if key in _PATH_KEYS and isinstance(item, str):
            yield key, item
        elif key == "additionalDirectories":
            yield from ((key, str(entry)) for entry in as_list(item) or [])
        elif key not in {"rawInput", "rawOutput", "_meta", "content", "requestedSchema"} or as_list(item) is not None:
            yield from _paths(item)


def _chunks(wire: Wire) -> Iterator[str]:
    for frame in _agent_frames(wire):
        update = update_of(frame)
        if update.get("sessionUpdate") in _CHUNKS:
            content = as_object(update.get("content")) or {}
            if content.get("type") == "text" and content.get("text") == "":
                yield f"a chunk without text: {_shown(frame)}"


def _announced_once(wire: Wire) -> Iterator[str]:
    """A load may announce again what it shows again."""
    known: dict[tuple[str, str], bool] = {}  # (session, card) → may be announced again
    for session, frame in _by_session(wire):
        update = update_of(frame)
        if frame.get("method") in {"session/load", "session/resume"}:
            known |= dict.fromkeys((key for key in known if key[0] == session), True)
        elif update.get("sessionUpdate") in _CARDS:
            key = (session, encode(update.get("toolCallId")))
            if update["sessionUpdate"] == "tool_call_update":
                if key not in known:
                    yield f"a card was updated before it was announced: {_shown(frame)}"
            elif not known.get(key, True):
                yield f"a card was announced twice: {_shown(frame)}"
            else:
                known[key] = False


def _forward(wire: Wire) -> Iterator[str]:
    """Statuses of cards; a load begins anew."""
    status: dict[tuple[str, str], str] = {}
    prompts: dict[str, str] = {}  # request id → session
    for session, frame in _by_session(wire):
        method, update = frame.get("method"), update_of(frame)
        if method in {"session/load", "session/resume"}:
            status = {key: value for key, value in status.items() if key[0] != session}
        elif method == "session/prompt" and "id" in frame:
            prompts[encode(frame["id"])] = session
        elif update.get("sessionUpdate") in _CARDS:
            key = (session, encode(update.get("toolCallId")))
            before, now = status.get(key, "pending"), update.get("status") or status.get(key, "pending")
            if _ORDER.get(now, 0) < _ORDER.get(before, 0):
                yield f"a card went from {before} back to {now}: {_shown(frame)}"
            status[key] = now
        elif "method" not in frame and encode(frame.get("id")) in prompts:
            ended = prompts.pop(encode(frame.get("id")))
            # with a second prompt in the queue, its cards may be open
            if ended not in prompts.values():
                for key, value in status.items():
                    if key[0] == ended and _ORDER.get(value, 0) < _ORDER["completed"]:
                        yield f"the card {key[1]} is still {value} when its prompt is answered"


def _by_session(wire: Wire) -> Iterator[tuple[str, JsonObject]]:
    """The frames of both sides with the session that they name, `""` where they name none."""
    for entry in wire.entries:
        # a response of the client is left out: its id is one of the agent's
        is_call = entry.sender == "client" and "method" in entry.frame
        if is_call or (entry.sender == "agent" and _kind(entry.frame) is not None):
            params = as_object(entry.frame.get("params")) or {}
            yield str(params.get("sessionId", "")), entry.frame


def _raw_values(wire: Wire) -> Iterator[str]:
    for frame in _agent_frames(wire):
        update = update_of(frame)
        if update.get("sessionUpdate") in _CARDS:
            for key in ("rawInput", "rawOutput"):
                if update.get(key) is not None and as_object(update[key]) is None:
                    yield f"{key} is no object: {_shown(frame)}"
            if update.get("kind") == "execute" and str(update.get("title", "")).startswith("`"):
                yield f"the title of a command is quoted: {_shown(frame)}"


def _permission_options(wire: Wire) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
    for frame in _agent_frames(wire):
        if frame.get("method") == "session/request_permission":
            params = as_object(frame.get("params")) or {}
            yield frame, [as_object(option) or {} for option in as_list(params.get("options")) or []]


def _options(wire: Wire) -> Iterator[str]:
    for frame, options in _permission_options(wire):
        ids = [encode(option.get("optionId")) for option in options]
        if not ids or len(set(ids)) < len(ids):
            yield f"a permission without distinct options: {_shown(frame)}"


def _option_kinds(wire: Wire) -> Iterator[str]:
    for frame, options in _permission_options(wire):
        kinds = [str(option.get("kind")) for option in options]
        if len(set(kinds)) < len(kinds):
            yield f"a permission with two options of one kind: {_shown(frame)}"
        if "reject_once" in kinds and "reject_always" in kinds[: kinds.index("reject_once")]:
            yield f"reject_always stands before reject_once: {_shown(frame)}"


def _usage(wire: Wire) -> Iterator[str]:
    for frame in _agent_frames(wire):
        update = update_of(frame)
        if update.get("sessionUpdate") == "usage_update" and not update.get("size"):
            yield f"a context of size 0: {_shown(frame)}"


def _stop_reasons(wire: Wire) -> Iterator[str]:
    prompts: set[str] = set()
    for entry in wire.entries:
        frame = entry.frame
        key = encode(frame.get("id"))
        if entry.sender == "client" and frame.get("method") == "session/prompt" and "id" in frame:
            prompts.add(key)
        elif entry.sender == "agent" and _kind(frame) == "result" and key in prompts:
            prompts.discard(key)
            reason = (as_object(frame["result"]) or {}).get("stopReason")
            if reason not in _STOP_REASONS:
                yield f"{reason!r} is no stop reason: {_shown(frame)}"


JUDGES: Mapping[str, Judge] = {
    "WIRE-01": _lines,
    "WIRE-03": _classes,
    "WIRE-05": _answered_once,
    "WIRE-13": _errors,
    "WIRE-14": _definitions,
    "WIRE-15": _absolute,
    "PROMPT-01": _stop_reasons,
    "UPD-03": _chunks,
    "UPD-06": _usage,
    "TOOL-02": _announced_once,
    "TOOL-03": _forward,
    "TOOL-05": _raw_values,
    "PERM-01": _options,
    "PERM-07": _option_kinds,
}
"""Rule id → what finds its breaches in a wire."""
