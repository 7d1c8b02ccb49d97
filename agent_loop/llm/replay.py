"""Plays a recording in the model's place (contract snapshots.md §5): the `llm/stream` layer of `DSH_SNAPSHOT=replay`.

May not know: providers, keys, sockets, editors. Invariant: an answer belongs to one (session, turn, step) and is given
once; sessions take `session.jsonl`, `session.2.jsonl`, … in the order of their creation, also over restarts, so that
any interleaving plays the same; a call that was not recorded, or not like this, fails and is remembered in `failed`.
"""

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

import anyio.lowlevel

from agent_loop.abort import AbortSignal
from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks, Layer
from agent_loop.llm.replay_diff import first_difference
from agent_loop.llm.replay_script import (
    CallKey,
    ChunksEntry,
    HangEntry,
    ReplayEntry,
    ReplayScript,
    ThrowEntry,
    load_scripts,
)
from agent_loop.llm.seam import LlmRequest
from agent_loop.session.events import SessionEvent
from agent_loop.session.log import Session
from agent_loop.vocabulary import StreamChunk

_HANG: list[StreamChunk] = [
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "text-delta", "index": 0, "text": "partial"},
]


@dataclass(slots=True)
class _Binding:
    """A live session and the number of its recording. `loaded` events were in its log when it was bound."""

    session: Session
    number: int
    loaded: int
    calls: int = 0
    skip: int | None = None
    request: tuple[CallKey, str] | None = None  # the last request/header: which call, which fingerprint

    async def position(self, call: int) -> int:
        """Index of the override's entry for this process's `call` (0-based): the loaded log had its share already."""
        if self.skip is None:
            self.skip = 0
            if self.loaded:
                async for event in self.session.events():
                    self.skip += event.seq < self.loaded and event.type == "step/start"
        return self.skip + call


class Replay:
    """The player. `failed` after an overrun or a mismatch (the process then exits with 3); `warning` is said once."""

    def __init__(self, scripts: list[ReplayScript], *, report: Path | None, spill_root: str | None) -> None:
        self.failed = False
        self.warning: str | None = None
        unsigned = [script.path.name for script in scripts if script.events and not script.fingerprints]
        if unsigned:
            self.warning = f"{', '.join(unsigned)}: no request fingerprints; replayed by position, unchecked"
        self._scripts = scripts
        self._report = report
        self._spill_root = spill_root
        self._numbers = _known_numbers(report)
        self._bindings: dict[str, _Binding] = {}
        self._consumed: set[tuple[int, CallKey]] = set()

    def bind(self, session: Session) -> None:
        """Give a created or loaded session its number (`session/created`)."""
        number = self._numbers.setdefault(session.id, max(self._numbers.values(), default=0) + 1)
        self._bindings[session.id] = _Binding(session, number, session.next_seq)

    def observe(self, session: Session, event: SessionEvent) -> None:
        """Remember the fingerprint of the request that is about to be made (`session/event`)."""
        if event.type == "request/header":
            key = (event.data["turn"], event.data["step"])
            self._bindings[session.id].request = (key, event.data["fingerprint"])

    def stream(self, request: LlmRequest, _next: object) -> AsyncIterator[StreamChunk]:
        """The layer: never calls the next one. The position is taken now, not at the first chunk."""
        binding = self._bindings[request.session_id]
        binding.calls += 1
        return self._play(binding, request, binding.calls - 1)

    async def _play(self, binding: _Binding, request: LlmRequest, call: int) -> AsyncIterator[StreamChunk]:
        try:
            script, entry = await self._find(binding, (request.turn, request.step), call)
            await self._verify(script, binding, request)
        except LlmError:
            self.failed = True
            raise
        self._consume(binding, request)
        chunks = _HANG if isinstance(entry, HangEntry) else _localised(entry.chunks, script, binding.session)
        for chunk in chunks:
            await anyio.lowlevel.checkpoint()
            if request.signal.aborted:
                raise _aborted(request.signal)
            yield chunk
        match entry:
            case ChunksEntry():
                return
            case ThrowEntry():
                raise LlmError(entry.message, entry.code, status=entry.status)
            case HangEntry():
                await request.signal.wait()
                raise _aborted(request.signal)
            case _:
                assert_never(entry)

    async def _find(self, binding: _Binding, key: CallKey, call: int) -> tuple[ReplayScript, ReplayEntry]:
        number = binding.number
        if number > len(self._scripts):
            raise _overrun(number, key, f"no more than {len(self._scripts)} recorded session(s)")
        script = self._scripts[number - 1]
        if script.ordered is not None:
            position = await binding.position(call)
            if position >= len(script.ordered):
                raise _overrun(number, key, f"no more than the {len(script.ordered)} call(s) of the override")
            return script, script.ordered[position]
        if key not in script.keyed or (number, key) in self._consumed:
            left = [recorded for recorded in script.keyed if (number, recorded) not in self._consumed]
            raise _overrun(number, key, f"turn {left[0][0]} step {left[0][1]}" if left else "no further call")
        return script, script.keyed[key]

    async def _verify(self, script: ReplayScript, binding: _Binding, request: LlmRequest) -> None:
        if not script.fingerprints:
            return
        key = (request.turn, request.step)
        if key not in script.fingerprints:
            raise _overrun(binding.number, key, f"only the requests whose headers stand in {script.path.name}")
        seq, expected = script.fingerprints[key]
        found = binding.request[1] if binding.request and binding.request[0] == key else "no request/header in the log"
        if found != expected:
            difference = await first_difference(script, seq, binding.session, request, spill_root=self._spill_root)
            raise LlmError(
                f"replay: the request of session {binding.number} turn {key[0]} step {key[1]} is not the recorded one: "
                f"expected {expected}, found {found}; {difference}",
                "REPLAY_MISMATCH",
            )

    def _consume(self, binding: _Binding, request: LlmRequest) -> None:
        self._consumed.add((binding.number, (request.turn, request.step)))
        if self._report is None:
            return
        row = {"session": binding.number, "turn": request.turn, "step": request.step, "id": request.session_id}
        descriptor = os.open(self._report, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, json.dumps(row, separators=(",", ":")).encode() + b"\n")
        finally:
            os.close(descriptor)


def install_replay(
    hooks: Hooks, *, fixture: Path, override: Path | None, report: Path | None, spill_root: str | None = None
) -> Replay:
    """Load the recording and answer every `llm/stream` from it. Raises `ReplayFixtureError`, before anything runs."""
    replay = Replay(load_scripts(fixture, override), report=report, spill_root=spill_root)
    hooks.on("session/created", replay.bind)
    hooks.on("session/event", replay.observe)
    layer: Layer = replay.stream
    hooks.wrap("llm/stream", layer)
    return replay


def _known_numbers(report: Path | None) -> dict[str, int]:
    """Session id → number, as an earlier process of the same run reported it: a restart keeps the bindings."""
    if report is None or not report.exists():
        return {}
    rows: list[dict[str, Any]] = [json.loads(line) for line in report.read_bytes().split(b"\n") if line]
    return {row["id"]: row["session"] for row in rows}


def _overrun(number: int, key: CallKey, expected: str) -> LlmError:
    return LlmError(
        f"replay: session {number} made a model call that was not recorded: "
        f"expected {expected}, found turn {key[0]} step {key[1]}",
        "REPLAY_OVERRUN",
    )


def _aborted(signal: AbortSignal) -> LlmError:
    return LlmError(f"the model call was cancelled ({signal.reason})", "ABORTED")


def _localised(chunks: list[StreamChunk], script: ReplayScript, session: Session) -> list[StreamChunk]:
    """What the recording says about its own directory and id is said about the live ones, so that calls still work."""
    live = {"{{cwd}}": session.cwd, "{{sessionId}}": session.id}
    live |= {script.header["id"]: session.id, script.header.get("cwd", "{{cwd}}"): session.cwd}
    text = said = json.dumps(chunks, ensure_ascii=False)
    for recorded, now in live.items():
        if now is not None and len(recorded) > 1:
            text = text.replace(_escaped(recorded), _escaped(now))
    return chunks if text == said else json.loads(text)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
