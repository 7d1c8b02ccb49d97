"""The replay layer over real sessions, hooks and the real service; recordings are files."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks
from agent_loop.llm.fingerprint import Scrub, fingerprint
from agent_loop.llm.replay import Replay, install_replay
from agent_loop.llm.replay_script import ReplayFixtureError
from agent_loop.llm.service import LlmService
from agent_loop.session.log import Session
from agent_loop.session.memory import MemorySessionStore
from tests.support.llm_request import llm_request
from tests.support.session_world import SessionWorld, session_world

HEADER = {"type": "session", "version": 1, "id": "{{sessionId}}", "createdAt": 0, "cwd": "{{cwd}}"}
STOP = {"type": "finish", "reason": {"kind": "stop"}}
HANG = [
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "text-delta", "index": 0, "text": "partial"},
]


def said(text: str) -> list[dict[str, Any]]:
    return [{"type": "text-delta", "index": 0, "text": text}, STOP]


def write_log(path: Path, *events: tuple[str, dict[str, Any]], header: dict[str, Any] | None = None) -> Path:
    rows = [{"type": kind, "seq": seq, "time": 0, "data": data} for seq, (kind, data) in enumerate(events)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [header or HEADER, *rows]))
    return path


def chunks(turn: int, step: int, *texts: str, finish: bool = True) -> list[tuple[str, dict[str, Any]]]:
    pieces = [{"type": "text-delta", "index": 0, "text": text} for text in texts] + ([STOP] if finish else [])
    return [("assistant/chunk", {"turn": turn, "step": step, "chunk": piece}) for piece in pieces]


def start(turn: int, step: int, text: str = "hi") -> list[tuple[str, dict[str, Any]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    if step == 1:
        events.append(("turn/start", {"turn": turn, "trigger": {"kind": "message", "source": {"kind": "user"}}}))
        events.append(("user/message", {"content": [{"type": "text", "text": text}], "source": {"kind": "user"}}))
    return [*events, ("step/start", {"turn": turn, "step": step})]


def end(turn: int, step: int) -> list[tuple[str, dict[str, Any]]]:
    return [("step/end", {"turn": turn, "step": step}), ("turn/end", {"turn": turn, "reason": {"kind": "completed"}})]


class Play:
    """A replay at work: `ask` makes the call of a step and returns the texts that came."""

    def __init__(self, world: SessionWorld, replay: Replay) -> None:
        self.world = world
        self.replay = replay
        self.service = LlmService(world.hooks, world.runtime)

    def session(self, session_id: str | None = None, cwd: str = "/live") -> Session:
        return self.world.live.create(session_id=session_id, cwd=cwd)

    async def ask(self, session: Session, turn: int, step: int, **fields: Any) -> list[dict[str, Any]]:
        request = llm_request(session_id=session.id, turn=turn, step=step, messages=await session.messages(), **fields)
        return [dict(chunk) async for chunk in self.service.stream(request)]


@asynccontextmanager
async def playing(
    fixture: Path,
    *,
    override: Path | None = None,
    report: Path | None = None,
    store: MemorySessionStore | None = None,
    spill_root: str | None = None,
) -> AsyncIterator[Play]:
    async with session_world(store or MemorySessionStore()) as world:
        replay = install_replay(world.hooks, fixture=fixture, override=override, report=report, spill_root=spill_root)
        yield Play(world, replay)


def log(session: Session, events: list[tuple[str, dict[str, Any]]]) -> None:
    for kind, data in events:
        session.append(kind, data)


# -- scripts ----------------------------------------------------------------------------------------------------------


async def test_each_step_gets_the_chunks_that_were_recorded_for_it(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "a", "b"), *chunks(1, 2, "c"), *chunks(2, 1, "d"))
    async with playing(fixture) as play:
        session = play.session()
        assert await play.ask(session, 1, 1) == [said("a")[0], *said("b")]
        assert await play.ask(session, 1, 2) == said("c")
        assert await play.ask(session, 2, 1) == said("d")
        assert not play.replay.failed


def test_a_missing_recording_asks_for_one(tmp_path):
    with pytest.raises(ReplayFixtureError, match=r"record first \(bin/record NAME\)") as caught:
        install_replay_at(tmp_path / "session.jsonl")
    assert caught.value.path == tmp_path / "session.jsonl"
    assert caught.value.code == "REPLAY_FIXTURE"


def install_replay_at(fixture: Path, override: Path | None = None) -> None:
    install_replay(Hooks(lambda _name, _error: None), fixture=fixture, override=override, report=None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1 is not JSON"),
        ("[]\n", "line 1 is no line of a session log: it needs type, version, id, createdAt"),
        (json.dumps(HEADER) + '\n{"type":"x"}\n', "line 2 is no line of a session log: it needs type, seq, time, data"),
    ],
)
def test_a_file_that_is_no_log_is_refused_with_its_line(tmp_path, text, problem):
    path = tmp_path / "session.jsonl"
    path.write_text(text)
    with pytest.raises(ReplayFixtureError, match=problem):
        install_replay_at(path)


def test_a_call_that_was_cut_asks_for_an_override(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(3, 2, "a", finish=False))
    with pytest.raises(ReplayFixtureError, match=r"turn 3 step 2 was cut .* replay\.override\.json"):
        install_replay_at(fixture)


@pytest.mark.parametrize("text", ["{", '[{"kind":"dance"}]', "[{}]", "7", '[{"kind":"throw"}]'])
def test_an_override_of_unknown_shape_is_refused(tmp_path, text):
    override = tmp_path / "replay.override.json"
    override.write_text(text)
    with pytest.raises(ReplayFixtureError, match="no list of replay entries"):
        install_replay_at(write_log(tmp_path / "session.jsonl"), override)


def test_an_override_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ReplayFixtureError, match="no list of replay entries"):
        install_replay_at(write_log(tmp_path / "session.jsonl"), tmp_path / "replay.override.json")


async def test_a_line_separator_inside_a_delta_is_text(tmp_path):
    path = tmp_path / "session.jsonl"
    event = {"type": "assistant/chunk", "seq": 0, "time": 0, "data": {"turn": 1, "step": 1, "chunk": STOP}}
    first = {**event, "data": {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": "a\u2028b"}}}
    rows = [HEADER, first, {**event, "seq": 1}]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    async with playing(path) as play:
        assert await play.ask(play.session(), 1, 1) == said("a\u2028b")


# -- sessions ---------------------------------------------------------------------------------------------------------


async def test_sessions_take_their_recordings_in_the_order_of_creation(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "one"))
    write_log(tmp_path / "session.2.jsonl", *chunks(1, 1, "two"))
    async with playing(fixture) as play:
        first, second = play.session(), play.session()
        assert await play.ask(second, 1, 1) == said("two")
        assert await play.ask(first, 1, 1) == said("one")


async def test_a_session_without_a_recording_overruns(tmp_path):
    async with playing(write_log(tmp_path / "session.jsonl")) as play:
        play.session()
        with pytest.raises(LlmError, match=r"session 2 made a model call .* no more than 1 recorded session") as caught:
            await play.ask(play.session(), 1, 1)
        assert caught.value.code == "REPLAY_OVERRUN"
        assert play.replay.failed


async def test_the_second_session_has_an_override_of_its_own(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl")
    override = tmp_path / "replay.override.json"
    for number, text in (("", "one"), (".2", "two")):
        (tmp_path / f"replay.override{number}.json").write_text(json.dumps([{"kind": "chunks", "chunks": said(text)}]))
    write_log(tmp_path / "session.2.jsonl")
    write_log(tmp_path / "session.3.jsonl", *chunks(1, 1, "three"))
    async with playing(fixture, override=override) as play:
        sessions = [play.session() for _ in range(3)]
        assert [await play.ask(session, 1, 1) for session in sessions] == [said("one"), said("two"), said("three")]


async def test_consumed_calls_are_reported_and_a_restart_keeps_the_bindings(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "one"))
    write_log(tmp_path / "session.2.jsonl", *chunks(1, 1, "two"), *chunks(2, 1, "more"))
    write_log(tmp_path / "session.3.jsonl", *chunks(1, 1, "three"))
    report, store = tmp_path / "report.jsonl", MemorySessionStore()
    async with playing(fixture, report=report, store=store) as play:
        play.session("a")
        second = play.session("b")
        log(second, start(1, 1))
        await play.ask(second, 1, 1)
        log(second, end(1, 1))
    async with playing(fixture, report=report, store=store) as play:
        again = await play.world.live.load("b", "/live")
        assert await play.ask(again, 2, 1) == said("more")
        assert await play.ask(play.session("c"), 1, 1) == said("three")
    assert [json.loads(line) for line in report.read_text().splitlines()] == [
        {"session": 2, "turn": 1, "step": 1, "id": "b"},
        {"session": 2, "turn": 2, "step": 1, "id": "b"},
        {"session": 3, "turn": 1, "step": 1, "id": "c"},
    ]
    assert report.stat().st_mode & 0o777 == 0o600


async def test_the_override_skips_the_calls_of_the_loaded_log(tmp_path):
    fixture, override = write_log(tmp_path / "session.jsonl"), tmp_path / "replay.override.json"
    override.write_text(json.dumps([{"kind": "chunks", "chunks": said(text)} for text in ("1", "2", "3")]))
    store = MemorySessionStore()
    async with playing(fixture, override=override, store=store) as play:
        session = play.session("a")
        log(session, start(1, 1))
        assert await play.ask(session, 1, 1) == said("1")
        log(session, [("step/end", {"turn": 1, "step": 1}), *start(1, 2)])
        assert await play.ask(session, 1, 2) == said("2")
        log(session, end(1, 2))
    async with playing(fixture, override=override, store=store) as play:
        session = await play.world.live.load("a", "/live")
        log(session, start(2, 1))
        assert await play.ask(session, 2, 1) == said("3")
        with pytest.raises(LlmError, match=r"no more than the 3 call\(s\) of the override, found turn 2 step 2"):
            await play.ask(session, 2, 2)


# -- kinds ------------------------------------------------------------------------------------------------------------


async def test_a_throw_says_its_chunks_and_then_fails(tmp_path):
    override = tmp_path / "replay.override.json"
    entry = {"kind": "throw", "chunks": HANG, "message": "bad key", "code": "AUTH", "status": 401}
    override.write_text(json.dumps([entry]))
    async with playing(write_log(tmp_path / "session.jsonl"), override=override) as play:
        session = play.session()
        stream = play.service.stream(llm_request(session_id=session.id))
        assert [await anext(stream), await anext(stream)] == HANG
        with pytest.raises(LlmError, match="bad key") as caught:
            await anext(stream)
        assert (caught.value.code, caught.value.status) == ("AUTH", 401)
        assert not play.replay.failed


async def test_a_hang_says_partial_and_waits_for_the_abort(tmp_path):
    override = tmp_path / "replay.override.json"
    override.write_text('[{"kind":"hang"}]')
    signal = AbortController()
    async with playing(write_log(tmp_path / "session.jsonl"), override=override) as play:
        stream = play.service.stream(llm_request(session_id=play.session().id, signal=signal))
        assert [await anext(stream), await anext(stream)] == HANG
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.lowlevel.checkpoint)
                tasks.start_soon(abort_soon, signal)
                with pytest.raises(LlmError) as caught:
                    await anext(stream)
        assert caught.value.code == "ABORTED"


async def abort_soon(signal: AbortController) -> None:
    await anyio.lowlevel.checkpoint()
    signal.abort("session/cancel")


async def test_an_abort_is_seen_before_every_chunk(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "a", "b"))
    signal = AbortController()
    async with playing(fixture) as play:
        stream = play.service.stream(llm_request(session_id=play.session().id, signal=signal))
        assert await anext(stream) == said("a")[0]
        signal.abort("session/cancel")
        with pytest.raises(LlmError) as caught:
            await anext(stream)
        assert caught.value.code == "ABORTED"
        assert not play.replay.failed


# -- overrun and mismatch ---------------------------------------------------------------------------------------------


async def test_an_unrecorded_call_overruns_and_names_what_was_expected(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "a"), *chunks(2, 1, "b"))
    async with playing(fixture) as play:
        session = play.session()
        await play.ask(session, 1, 1)
        with pytest.raises(LlmError, match="expected turn 2 step 1, found turn 1 step 2"):
            await play.ask(session, 1, 2)
        await play.ask(session, 2, 1)
        with pytest.raises(LlmError, match="expected no further call, found turn 2 step 1"):
            await play.ask(session, 2, 1)
        assert play.replay.failed


async def test_a_recording_without_fingerprints_is_played_with_a_warning(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "a"))
    async with playing(fixture) as play:
        assert play.replay.warning == "session.jsonl: no request fingerprints; replayed by position, unchecked"
        assert await play.ask(play.session(), 1, 1) == said("a")


async def test_a_log_without_events_needs_no_warning(tmp_path):
    async with playing(write_log(tmp_path / "session.jsonl")) as play:
        assert play.replay.warning is None


async def request_header(
    session: Session, turn: int, step: int, scrub: Scrub, **fields: Any
) -> tuple[str, dict[str, Any]]:
    request = llm_request(session_id=session.id, turn=turn, step=step, messages=await session.messages(), **fields)
    parts = {"system": request.system, "tools": request.tools, "parameters": {}}
    return "request/header", {
        "turn": turn,
        "step": step,
        "model": request.model,
        "provider": "p",
        "fingerprint": fingerprint(request, scrub=scrub),
        # an empty part of the first request is no change, and not logged
        **({name: part for name, part in parts.items() if part} if step == 1 else {}),
    }


async def record(path: Path, *, text: str = "in /rec", system: str = "be good", cwd: str = "/rec") -> Path:
    """A log as our own step writes it: one turn of two steps, with headers."""
    async with session_world(MemorySessionStore()) as world:
        session = world.live.create(session_id="rec", cwd=cwd)
        scrub = Scrub(cwd=cwd, session_id="rec")
        log(session, start(1, 1, text))
        log(session, [await request_header(session, 1, 1, scrub, system=system)])
        log(session, chunks(1, 1, "a"))
        log(session, [("assistant/message", {"turn": 1, "step": 1, "content": [{"type": "text", "text": "a"}]})])
        log(session, [("step/end", {"turn": 1, "step": 1}), *start(1, 2)])
        log(session, [await request_header(session, 1, 2, scrub, system=system)])
        log(session, [*chunks(1, 2, "b"), *end(1, 2)])
        events = [(event.type, event.data) async for event in session.events()]
        header = session.header.to_json()
    return write_log(path, *events, header=header)


async def live_turn(
    play: Play, *, text: str = "in /live", system: str = "be good", answer: str = "a", **fields: Any
) -> Session:
    session = play.session("live")
    scrub = Scrub(cwd="/live", session_id="live", spill_root="/spill")
    log(session, start(1, 1, text))
    log(session, [await request_header(session, 1, 1, scrub, system=system, **fields)])
    await play.ask(session, 1, 1, system=system, **fields)
    log(session, [("assistant/message", {"turn": 1, "step": 1, "content": [{"type": "text", "text": answer}]})])
    log(session, [("step/end", {"turn": 1, "step": 1}), *start(1, 2)])
    log(session, [await request_header(session, 1, 2, scrub, system=system, **fields)])
    assert await play.ask(session, 1, 2, system=system, **fields) == said("b")
    return session


async def test_equal_requests_replay_in_another_directory(tmp_path):
    async with playing(await record(tmp_path / "session.jsonl"), spill_root="/spill") as play:
        await live_turn(play)
        assert play.replay.warning is None
        assert not play.replay.failed


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"text": "in /other"}, r'messages\[0\]\.content\[0\]\.text: recorded "in {{cwd}}", now "in /other"'),
        ({"system": "be bad"}, 'system: recorded "be good", now "be bad"'),
        ({"answer": "A"}, r'messages\[1\]\.content\[0\]\.text: recorded "a", now "A"'),
        ({"answer": "x" * 400}, r'messages\[1\].* recorded "a", now "x{199}…'),
        ({"temperature": 0.5}, "parameters.temperature: recorded nothing, now 0.5"),
        ({"tools": [{"name": "t"}]}, r'tools\[0\]: recorded nothing, now \{"name": "t"\}'),
    ],
)
async def test_a_mismatch_names_the_call_and_the_first_difference(tmp_path, change, where):
    async with playing(await record(tmp_path / "session.jsonl")) as play:
        with pytest.raises(LlmError, match=where) as caught:
            await live_turn(play, **change)
        assert caught.value.code == "REPLAY_MISMATCH"
        assert "of session 1 turn 1 step" in caught.value.message
        assert play.replay.failed


async def test_a_missing_message_is_a_difference(tmp_path):
    async with playing(await record(tmp_path / "session.jsonl")) as play:
        session = play.session()
        log(session, [*start(1, 1, "in /live"), *end(1, 1)])
        with pytest.raises(
            LlmError, match=r"no request/header in the log; .*messages\[1\]: recorded \{.*\}, now nothing"
        ):
            await play.ask(session, 1, 2, system="be good")


async def test_an_equal_request_with_another_fingerprint_says_so(tmp_path):
    async with playing(await record(tmp_path / "session.jsonl")) as play:
        session = play.session()
        log(session, start(1, 1, "in /live"))
        with pytest.raises(LlmError, match="are equal: the normaliser or the fingerprint has changed"):
            await play.ask(session, 1, 1, system="be good")


async def test_an_override_beside_recorded_requests_is_checked_too(tmp_path):
    fixture, override = await record(tmp_path / "session.jsonl"), tmp_path / "replay.override.json"
    override.write_text(json.dumps([{"kind": "chunks", "chunks": said("b")}] * 3))
    async with playing(fixture, override=override) as play:
        session = await live_turn(play)
        with pytest.raises(
            LlmError, match=r"only the requests whose headers stand in session\.jsonl, found turn 1 step 3"
        ):
            await play.ask(session, 1, 3)


# -- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "recorded", "live"),
    [
        (HEADER, "cat {{cwd}}/a of {{sessionId}}", "cat /live/a of s1"),
        ({**HEADER, "id": "0-0", "cwd": "/tmp/rec"}, "cat /tmp/rec/a of 0-0", "cat /live/a of s1"),
        ({**HEADER, "cwd": "/"}, "cat /etc/hosts", "cat /etc/hosts"),
    ],
)
async def test_what_the_model_said_about_its_directory_and_session_is_said_about_ours(tmp_path, header, recorded, live):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, recorded), header=header)
    async with playing(fixture) as play:
        assert await play.ask(play.session("s1"), 1, 1) == said(live)


async def test_a_session_without_a_directory_keeps_the_recorded_text(tmp_path):
    fixture = write_log(tmp_path / "session.jsonl", *chunks(1, 1, "in {{cwd}}"))
    async with playing(fixture) as play:
        assert await play.ask(play.world.live.create(), 1, 1) == said("in {{cwd}}")
