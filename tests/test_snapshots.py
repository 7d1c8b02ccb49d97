"""The recordings of the snapshot tier. The scenarios themselves are run by the plugin (`--acp-scenarios snapshots`)."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.json_values import JsonObject, read_lines
from acp_bridge.testing.scenario import Scenario, load_scenarios
from agent_loop.llm.history import normalise
from tests.support.history import history
from tests.support.official import agent_command

ROOT = Path(__file__).parent.parent / "snapshots"
SCENARIOS = load_scenarios(ROOT)


def named(scenario: Scenario) -> str:
    return scenario.name


def test_the_scenarios_are_part_of_every_run(pytestconfig):
    assert pytestconfig.getoption("--acp-scenarios", None) == "snapshots"
    assert "snapshots" in pytestconfig.getini("testpaths")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_history_of_a_recording_is_valid_for_its_provider(scenario):
    for path in scenario.logs():
        messages = history(read_lines(path))
        assert normalise(messages, reasoning="echo", merge_users=False) == messages


def test_every_recorded_call_has_its_fingerprint():
    for scenario in SCENARIOS:
        for path in scenario.logs():
            records = read_lines(path)
            steps = [(row["data"]["turn"], row["data"]["step"]) for row in records if row["type"] == "step/start"]
            headers = [row["data"] for row in records if row["type"] == "request/header"]
            assert [(header["turn"], header["step"]) for header in headers] == steps, path
            assert all(len(header["fingerprint"]) == 64 for header in headers), path


def changed_copy(tmp_path: Path, *steps: JsonObject) -> Scenario:
    """`text-turn`, with other steps after the session was opened."""
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == "text-turn"]
    copy = replace(scenario, directory=tmp_path / scenario.name)
    shutil.copytree(scenario.directory, copy.directory)
    opening = [{"op": "initialize"}, {"op": "newSession"}]
    (copy.directory / "input.json").write_text(json.dumps({"steps": [*opening, *steps]}))
    return copy


def test_another_prompt_than_the_recorded_one_is_a_mismatch_and_an_exit_code(tmp_path):
    scenario = changed_copy(tmp_path, {"op": "promptExpectError", "text": "Something else."})
    run = run_scenario(scenario, command=agent_command())
    assert run.failures == ["the agent exited with 3"]
    message = run.transcript[-1]["error"]["message"]
    assert "the request of session 1 turn 1 step 1 is not the recorded one" in message
    assert 'first difference at messages[0].content[0].text: recorded "In one sentence' in message
    assert 'now "Something else."' in message


def test_a_prompt_too_many_is_an_overrun_and_an_exit_code(tmp_path):
    recorded = json.loads((ROOT / "text-turn" / "input.json").read_text())["steps"][-1]
    scenario = changed_copy(tmp_path, recorded, {"op": "promptExpectError", "text": "And more."})
    run = run_scenario(scenario, command=agent_command())
    assert run.failures == ["the agent exited with 3"]
    assert "expected no further call, found turn 2 step 1" in run.transcript[-1]["error"]["message"]


def test_a_replay_without_a_recording_asks_for_one(tmp_path):
    scenario = changed_copy(tmp_path)
    scenario.fixture.unlink()
    run = run_scenario(scenario, command=agent_command())
    assert run.failures
    assert "there is no recording here; record first (bin/record NAME)" in run.stderr
