"""DSH_SNAPSHOT=replay, from the outside: no key, no socket, a clock of its own, and an end that tells."""

from pathlib import Path

import pytest

from tests.support.agent_process import agent, agent_home

pytestmark = pytest.mark.usefixtures("measured")

RECORDED = Path(__file__).parents[3] / "snapshots" / "text-turn" / "session.jsonl"
PROMPT = "In one sentence: what does `set -o pipefail` do?"


def replaying(root, fixture=RECORDED, **env):
    return agent_home(root, key=None, DSH_SNAPSHOT="replay", DSH_SNAPSHOT_FILE=str(fixture), **env)


async def test_a_recorded_session_is_played_without_a_key_under_a_clock_that_stands(tmp_path):
    async with agent(replaying(tmp_path, DSH_SNAPSHOT_CLOCK="1700000000000")) as editor:
        assert (await editor.initialize())["authMethods"] == []
        session = await editor.new_session()
        await editor.call("_dsh/clock/advance", ms=2500)
        assert await editor.prompt(session, PROMPT) == "end_turn"
    times = {record["time"] for record in editor.home.session_log(session)[1:]}
    assert times == {1700000002500}


async def test_a_call_that_was_not_recorded_fails_its_turn_and_the_exit_code_tells(tmp_path):
    async with agent(replaying(tmp_path), code=3) as editor:
        await editor.initialize()
        session = await editor.new_session()
        prompt = await editor.send_prompt(session, "something else")
        error = (await editor.answer(prompt))["error"]
    assert error["data"]["reason"] == "replay_mismatch"
    assert "messages" in error["data"]["details"], "the first differing path is named"


async def test_without_a_recording_it_ends_at_once_and_says_what_to_do(tmp_path):
    async with agent(replaying(tmp_path, tmp_path / "nothing.jsonl"), code=2) as editor:
        await editor.initialize()
        await editor.exited()
    assert "record" in editor.stderr
    assert "nothing.jsonl" in editor.stderr


async def test_a_recording_without_fingerprints_is_played_with_a_warning(tmp_path):
    plain = tmp_path / "plain.jsonl"
    lines = RECORDED.read_bytes().split(b"\n")
    plain.write_bytes(b"\n".join(line for line in lines if b"request/header" not in line))
    async with agent(replaying(tmp_path, plain)) as editor:
        await editor.initialize()
        session = await editor.new_session()
        assert await editor.prompt(session, "something else") == "end_turn"
    assert "no request fingerprints" in editor.stderr
