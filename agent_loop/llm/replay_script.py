"""Reads what a recorded model said (contract snapshots.md §5): from a session log, or from an override beside it.

May not know: live sessions, hooks. Invariant: a script that loads can be played to its end — an unknown kind, a call
that was cut before its `finish`, or a missing file is refused at the start, with the fix in the message.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from agent_loop.errors import HarnessError
from agent_loop.session.events import SessionEvent, make_event
from agent_loop.vocabulary import JsonObject, StreamChunk

CallKey = tuple[int, int]
"""(turn, step), both 1-based."""


class ReplayFixtureError(HarnessError):
    """The recording cannot be played. `path` is the file."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}", "REPLAY_FIXTURE")
        self.path = path


@dataclass(frozen=True, slots=True)
class ChunksEntry:
    """The model said this and finished."""

    chunks: list[StreamChunk]


@dataclass(frozen=True, slots=True)
class ThrowEntry:
    """The model said this, then the call failed. `status` is the HTTP status."""

    chunks: list[StreamChunk]
    message: str
    code: str
    status: int | None


@dataclass(frozen=True, slots=True)
class HangEntry:
    """The model said "partial" and nothing more until the caller gave up."""


ReplayEntry = ChunksEntry | ThrowEntry | HangEntry


@dataclass(frozen=True, slots=True)
class ReplayScript:
    """One session's recording. `ordered` (from an override) answers by position, else `keyed` by (turn, step).

    `fingerprints` maps a call to (seq of its `request/header`, fingerprint); empty: the log is older than those.
    """

    path: Path
    header: JsonObject
    events: list[SessionEvent]
    keyed: dict[CallKey, ReplayEntry]
    ordered: list[ReplayEntry] | None
    fingerprints: dict[CallKey, tuple[int, str]]


def load_scripts(fixture: Path, override: Path | None) -> list[ReplayScript]:
    """The scripts of `session.jsonl`, `session.2.jsonl`, … (with `replay.override.2.json`, …), in that order.

    Raises `ReplayFixtureError`.
    """
    if not fixture.exists():
        raise ReplayFixtureError(fixture, "there is no recording here; record first (bin/record NAME)")
    scripts = [_load(fixture, override)]
    while (path := _numbered(fixture, len(scripts) + 1)).exists():
        own = _numbered(override, len(scripts) + 1) if override else None
        scripts.append(_load(path, own if own and own.exists() else None))
    return scripts


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def _load(path: Path, override: Path | None) -> ReplayScript:
    header, events = _read_log(path)
    if override is None:
        keyed, ordered = dict(_derive(path, events)), None
    else:
        keyed, ordered = {}, _read_override(override)
    fingerprints = {
        (event.data["turn"], event.data["step"]): (event.seq, event.data["fingerprint"])
        for event in events
        if event.type == "request/header"
    }
    return ReplayScript(path, header, events, keyed, ordered, fingerprints)


def _read_log(path: Path) -> tuple[JsonObject, list[SessionEvent]]:
    # only 0x0A ends a line: `splitlines` would also cut at U+2028
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    header, *events = [_record(path, number, line) for number, line in enumerate(lines, start=1)]
    return header, [make_event(item["type"], item["seq"], item["time"], item["data"]) for item in events]


def _record(path: Path, number: int, line: str) -> JsonObject:
    wanted = ("type", "version", "id", "createdAt") if number == 1 else ("type", "seq", "time", "data")
    try:
        record: Any = json.loads(line)
    except ValueError as error:
        raise ReplayFixtureError(path, f"line {number} is not JSON ({error})") from error
    if not isinstance(record, dict) or not set(wanted) <= record.keys():
        raise ReplayFixtureError(path, f"line {number} is no line of a session log: it needs {', '.join(wanted)}")
    return cast("JsonObject", record)


def _derive(path: Path, events: list[SessionEvent]) -> Iterator[tuple[CallKey, ReplayEntry]]:
    chunks = [event.data for event in events if event.type == "assistant/chunk"]
    for (turn, step), group in groupby(chunks, key=lambda data: (data["turn"], data["step"])):
        said: list[StreamChunk] = [data["chunk"] for data in group]
        if said[-1]["type"] != "finish":
            raise ReplayFixtureError(
                path,
                f"the model call of turn {turn} step {step} was cut before its finish, so it cannot be derived; "
                "say how it ended in a replay.override.json",
            )
        yield (turn, step), ChunksEntry(said)


def _read_override(path: Path) -> list[ReplayEntry]:
    try:
        rows: Any = json.loads(path.read_text(encoding="utf-8"))
        return [_entry(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReplayFixtureError(path, f"this is no list of replay entries ({error!r})") from error


def _entry(row: JsonObject) -> ReplayEntry:
    match row["kind"]:
        case "chunks":
            return ChunksEntry(row["chunks"])
        case "throw":
            return ThrowEntry(row["chunks"], row["message"], row["code"], row.get("status"))
        case "hang":
            return HangEntry()
        case kind:
            raise ValueError(f"unknown kind {kind!r}; known are chunks, throw, hang")
