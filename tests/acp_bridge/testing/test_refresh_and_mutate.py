"""What happens to a recording of the stub, which checks fingerprints when STUB_STRICT says so."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.json_values import read_lines, write_lines
from acp_bridge.testing.judge import judge
from acp_bridge.testing.mutate import RecordedRequest, mutation_survives, recorded_requests
from acp_bridge.testing.record import RecordingError, accept, record
from acp_bridge.testing.refresh import refresh
from acp_bridge.testing.scenario import Scenario
from acp_bridge.testing.validate import Referee
from tests.support.stub_scenario import prompt, stub_scenario


def recorded(tmp_path: Path, *steps, **fields) -> Scenario:
    scenario = stub_scenario(tmp_path / "s", *steps, **{"has_model_turn": True, "env": {"STUB_STRICT": "1"}, **fields})
    record(scenario, environment={})
    return scenario


def verdict(scenario: Scenario) -> list[str]:
    return judge(scenario, run_scenario(scenario), Referee(environment={}))


def files(scenario: Scenario) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in scenario.directory.iterdir()}


def test_a_refresh_of_what_is_still_right_changes_nothing(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"))
    before = files(scenario)
    assert refresh(scenario, environment={}) == []
    assert files(scenario) == before


def test_a_refresh_reports_the_misses_and_rewrites_headers_log_and_golden(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"))
    write_lines(scenario.fixture, [altered(row) for row in read_lines(scenario.fixture)])
    assert any("fingerprint mismatch at session 1 turn 1 step 1" in finding for finding in verdict(scenario))
    miss, log = refresh(scenario, environment={})
    assert miss.startswith("session 1 turn 1 step 1: fingerprint 0000, now ")
    assert "session.jsonl differs at record 3" in log
    assert verdict(scenario) == []


def altered(row):
    if row["type"] != "request/header":
        return row
    return {**row, "data": {**row["data"], "fingerprint": "0000"}}


def test_a_recording_without_fingerprints_gets_them(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"))
    write_lines(scenario.fixture, [row for row in read_lines(scenario.fixture) if row["type"] != "request/header"])
    assert refresh(scenario, environment={})[0].startswith("session 1 turn 1 step 1: fingerprint nothing, now ")
    assert verdict(scenario) == []


def test_a_script_that_no_longer_fits_is_not_refreshed(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"), prompt("call ho"))
    (scenario.directory / "input.json").write_text(
        json.dumps({"steps": [{"op": "initialize"}, {"op": "newSession"}, prompt("call hi")]})
    )
    before = files(scenario)
    with pytest.raises(RecordingError, match=r"record it anew:\n.*were not made: \[\(2, 1\)\]"):
        refresh(scenario, environment={})
    assert files(scenario) == before


def test_an_authored_scenario_is_refreshed_from_its_override(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("call hi"), source="authored", has_model_turn=True)
    (scenario.directory / "replay.override.json").write_text('[{"kind":"hang"}]')
    assert len(refresh(scenario, environment={})) == 1  # no log, no golden: all of it is new
    assert refresh(scenario, environment={}) == []
    assert verdict(scenario) == []


def test_a_secret_in_a_transcript_is_not_accepted(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("say token-of-mine"))
    with pytest.raises(RecordingError, match=r"stdout\.golden\.jsonl: the value of MY_TOKEN at line 4") as refused:
        accept(scenario, run_scenario(scenario), environment={"MY_TOKEN": "token-of-mine"})
    assert "token-of-mine" not in str(refused.value)
    assert not scenario.golden.exists()


def test_a_secret_in_a_log_is_not_recorded(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("call token-of-mine"), has_model_turn=True)
    with pytest.raises(RecordingError, match=r"session\.jsonl: the value of MY_TOKEN") as refused:
        record(scenario, environment={"MY_TOKEN": "token-of-mine"})
    assert "stdout.golden.jsonl: the value of MY_TOKEN" in str(refused.value)
    assert [path.name for path in scenario.directory.iterdir()] == ["input.json"]


# -- mutations --------------------------------------------------------------------------------------------------------


def test_every_fingerprinted_request_is_known(tmp_path):
    scenario = recorded(
        tmp_path,
        {"op": "newSession", "session": "b"},
        prompt("call a"),
        prompt("call b"),
        prompt("call c", session="b"),
    )
    requests = list(recorded_requests(scenario))
    assert requests == [RecordedRequest(1, 1, 1), RecordedRequest(1, 2, 1), RecordedRequest(2, 1, 1)]
    assert str(requests[2]) == "session 2 turn 1 step 1"


def test_a_strict_replay_notices_each_altered_request(tmp_path):
    scenario = recorded(tmp_path, prompt("call a"), prompt("call b"))
    before = files(scenario)
    assert [mutation_survives(scenario, request) for request in recorded_requests(scenario)] == [None, None]
    assert files(scenario) == before


def test_a_replay_that_checks_nothing_is_a_survivor(tmp_path):
    scenario = recorded(tmp_path, prompt("call a"))
    lax = replace(scenario, env={})
    (request,) = recorded_requests(lax)
    assert mutation_survives(lax, request) == (
        "the recorded request of session 1 turn 1 step 1 was altered, and the replay went on as if nothing were"
    )


def test_a_failure_that_does_not_name_the_call_is_a_survivor(tmp_path):
    scenario = recorded(tmp_path, prompt("call a"))
    mute = replace(scenario, env={"STUB_STRICT": "mute"})
    (request,) = recorded_requests(mute)
    survived = mutation_survives(mute, request)
    assert survived is not None
    assert "and the failure does not name it: ['step 3 (prompt): answered with an error" in survived
