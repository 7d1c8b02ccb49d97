"""Sorts the wire of a run into lanes, one per session, with the time of each frame.

May not know: HTML, files, goldens. Invariant: pure; every frame stands in exactly one lane; the directory and the
session ids of the run are masked as they are in its transcript.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject, as_object, encode
from acp_bridge.testing.normalise import Masks
from acp_bridge.testing.report_rows import asked_methods, kind

CONNECTION = "connection"
"""The lane of what belongs to no session."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One frame on its lane. `at` is in seconds since the editor was made; `frame` is masked."""

    at: float
    lane: str
    sender: Literal["client", "agent"]
    kind: str
    frame: JsonObject


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt from its request to its response, in seconds; one without a response ends with the wire."""

    lane: str
    start: float
    end: float


def signals(entries: Sequence[Entry]) -> list[Signal]:
    """The wire in its order. Sessions are named `session 1`, `session 2`, … in the order of their creation."""
    sessions, cwd = _sessions(entries)
    masks = Masks(cwd=cwd, session_ids=sessions)
    lanes = {session_id: f"session {number}" for number, session_id in enumerate(sessions, start=1)}
    asked = {"client": asked_methods(entries, "client"), "agent": asked_methods(entries, "agent")}
    requests: dict[tuple[str, str], str] = {}  # (who asked, request id) → lane
    found: list[Signal] = []
    for entry in entries:
        frame, other = entry.frame, "agent" if entry.sender == "client" else "client"
        named = as_object(frame.get("params")) or as_object(frame.get("result")) or {}
        lane = lanes.get(str(named.get("sessionId")), CONNECTION)
        if "method" not in frame:
            # what answers a request stands on the request's lane
            lane = lanes.get(str(named.get("sessionId"))) or requests.get((other, encode(frame.get("id"))), CONNECTION)
        elif "id" in frame:
            requests[entry.sender, encode(frame["id"])] = lane
        found.append(Signal(entry.at, lane, entry.sender, kind(frame, asked[other]), masks.value(frame)))
    return found


def turns(wire: Sequence[Signal]) -> list[Turn]:
    """The prompts of a wire."""
    open_prompts: dict[str, Signal] = {}
    found: list[Turn] = []
    for signal in wire:
        key = encode(signal.frame.get("id"))
        if signal.sender == "client" and signal.frame.get("method") == "session/prompt":
            open_prompts[key] = signal
        elif signal.sender == "agent" and "method" not in signal.frame and key in open_prompts:
            prompt = open_prompts.pop(key)
            found.append(Turn(prompt.lane, prompt.at, signal.at))
    return found + [Turn(prompt.lane, prompt.at, wire[-1].at) for prompt in open_prompts.values()]


def _sessions(entries: Sequence[Entry]) -> tuple[list[str], str | None]:
    """The ids of the sessions that were created, and the directory of the first one."""
    opening = [entry.frame for entry in entries if entry.sender == "client"]
    asked = {encode(frame["id"]): frame for frame in opening if frame.get("method") == "session/new"}
    ids: dict[str, str] = {}
    for entry in entries:
        frame = entry.frame
        request = asked.get(encode(frame.get("id"))) if "method" not in frame and entry.sender == "agent" else None
        result = as_object(frame.get("result")) or {}
        if request is not None and "sessionId" in result:
            ids.setdefault(str(result["sessionId"]), str(request["params"]["cwd"]))
    return list(ids), next(filter(os.path.isabs, ids.values()), None)
