"""`kill -9` in the middle of a turn: nothing that the client has seen is lost, and no command outlives the agent."""

import random

import anyio
import pytest

from acp_bridge.testing.model_server import model_server
from agent_loop.session.codec import decode_header
from agent_loop.session.layout import log_path
from tests.support.agent_process import agent, agent_home, update_in
from tests.support.bash_calls import bash_call, done
from tests.support.crash_facts import assert_repaired
from tests.support.log_folder import log_folder
from tests.support.processes import all_ended

# a killed process reports no coverage, so none is asked for: these turns are about timing
UNMEASURED = {"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""}
# one in each part of the turn; a long run adds many anywhere
MOMENTS = 4
MANY = [pytest.param(moment, marks=pytest.mark.long) for moment in range(MOMENTS, 200)]
BEFORE = [f"before {number}, " for number in range(20)]
AFTER = [f"after {number}, " for number in range(20)]
CALL = bash_call("for n in 1 2 3 4 5; do echo line $n; sleep 0.02; done; echo to-stderr >&2", call_id="the-call")
# frames of the turn that are events: both texts, a thought, the card and its result
FRAMES = len(BEFORE) + 1 + 2 + len(AFTER)


def answers(body):
    """The turn that is killed never ends by itself; every later prompt is answered at once."""
    last = body["messages"][-1]
    if last["role"] == "user" and "again" in last["content"]:
        return done("still here")
    if last["role"] == "user":
        return {"reasoning": ["thinking"], "text": BEFORE, **CALL, "pace_ms": 3}
    return {"stream": [{"text": [piece]} for piece in AFTER] + [{"silence": True}], "pace_ms": 3}


def is_event(frame):
    """Whether a frame shows something that is logged (live terminal bytes are not)."""
    update = update_in(frame)
    kind = update and update["sessionUpdate"]
    return kind in {"agent_message_chunk", "agent_thought_chunk", "tool_call"} or "status" in (update or {})


def texts(updates):
    """The text of each message."""
    joined = {}
    for update in updates:
        if update["sessionUpdate"].endswith("_chunk"):
            joined[update["messageId"]] = joined.get(update["messageId"], "") + update["content"]["text"]
    return joined


def cards(updates):
    """What stays of each card."""
    screen = {}
    for update in updates:
        if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
            card = screen.setdefault(update["toolCallId"], {"output": ""})
            meta = update.get("_meta") or {}
            card |= {key: update[key] for key in ("title", "kind", "rawInput", "rawOutput", "status") if key in update}
            card["output"] += meta.get("terminal_output", {}).get("data", "")
    return screen


async def count_events(editor, wanted):
    """Return when the client has read that many."""
    since = len(editor.entries)
    while sum(is_event(entry.frame) for entry in editor.entries[since:] if entry.sender == "agent") < wanted:
        seen = len(editor.entries)
        await editor.until(is_event, since=seen)


def frames_until_the_kill(moment):
    part = FRAMES / MOMENTS
    if moment < MOMENTS:
        return random.Random(moment).randint(int(moment * part) + 1, int((moment + 1) * part))
    return random.Random(moment).randint(1, FRAMES)


async def assert_loaded_once_and_for_all(log):
    """What a load has made of a log is whole, and no later load changes a byte of it."""
    with log_folder(decode_header(log.splitlines()[0])) as folder:
        folder.path.write_bytes(log)
        assert_repaired(await folder.load())
        assert folder.path.read_bytes() == log


@pytest.mark.parametrize("moment", [*range(MOMENTS), *MANY])
async def test_everything_that_was_seen_is_loaded_and_the_next_prompt_works(tmp_path, moment):
    async with model_server(answers) as server:
        home = agent_home(tmp_path, base_url=server.base_url, DSH_PERMISSION_MODE="full", **UNMEASURED)
        async with agent(home) as victim:
            await victim.initialize(terminal=True)
            session = await victim.new_session()
            await victim.update("available_commands_update")
            await victim.send_prompt(session)
            await count_events(victim, frames_until_the_kill(moment))
            await victim.kill()
        async with agent(home) as editor:
            await editor.initialize(terminal=True)
            await editor.load(session)
            loaded = editor.updates()
            log = log_path(home.sessions, session, home.cwd).read_bytes()
            assert home.events(session, "turn/end") == [{"turn": 1, "reason": {"kind": "interrupted"}}]
            assert await editor.prompt(session, "again") == "end_turn"
            assert editor.text().endswith("still here")
    await assert_loaded_once_and_for_all(log)
    now = texts(loaded)
    for message, text in texts(victim.updates()).items():
        assert now[message].startswith(text)
    after = cards(loaded)
    for call, card in cards(victim.updates()).items():
        if card["status"] == "completed":
            assert after[call] == card
        else:
            kept = {"title", "kind", "rawInput"}
            assert {key: after[call][key] for key in kept} == {key: card[key] for key in kept}
            assert after[call]["status"] in {"completed", "failed"}


async def test_the_commands_of_a_killed_agent_die_plain_in_the_background_in_pipelines_and_with_setsid(tmp_path):
    command = "sleep 301 & sleep 302 | cat & setsid sleep 303 & setsid -f sleep 304; echo started; sleep 305"
    async with model_server([bash_call(command)]) as server:
        home = agent_home(tmp_path, base_url=server.base_url, DSH_PERMISSION_MODE="full", **UNMEASURED)
        async with agent(home) as victim:
            await victim.initialize(terminal=True)
            session = await victim.new_session()
            await victim.send_prompt(session)
            await victim.until(lambda frame: "started" in str(frame.get("params", {}).get("update", {}).get("_meta")))
            running = home.processes()
            assert len(running) > 7
            await victim.kill()
            with anyio.fail_after(30):
                await all_ended(running)
            assert home.processes() == []
