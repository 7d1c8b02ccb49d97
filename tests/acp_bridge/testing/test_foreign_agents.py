"""Scenarios of an agent that knows nothing of recordings: the scripted model plays, the proxy records."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from acp_bridge.testing.guards import check_folders
from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.judge import judge
from acp_bridge.testing.model_thread import served
from acp_bridge.testing.pacing import RandomPacing
from acp_bridge.testing.record import RecordingError, record
from acp_bridge.testing.refresh import refresh
from acp_bridge.testing.scenario import AgentProfile, Scenario
from acp_bridge.testing.validate import Referee
from tests.support.scenario_folder import FOREIGN
from tests.support.stub_scenario import prompt, stub_scenario

PROFILE = AgentProfile(command=FOREIGN, settles_session="available_commands_update")
SECRET = "header-of-the-provider"


def foreign(tmp_path: Path, *steps, model=None, **fields) -> Scenario:
    scenario = stub_scenario(tmp_path / "s", *steps, profile=PROFILE, **{"has_model_turn": True, **fields})
    if model is not None:
        scenario.model.write_text(json.dumps(model))
    return scenario


def texts(run) -> list[str]:
    updates = [frame["params"]["update"] for frame in run.transcript if "update" in frame.get("params", {})]
    return [update["content"]["text"] for update in updates if "content" in update]


def test_the_model_script_is_played_to_it(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"), prompt("model ho"), model=[{"text": ["a", "b"]}, {"text": ["c"]}])
    run = run_scenario(scenario)
    assert (run.failures, run.logs, texts(run)) == ([], [], ["a", "b", "c"])


def test_its_script_may_speak_of_the_working_directory(tmp_path):
    run = run_scenario(foreign(tmp_path, prompt("model hi"), model=[{"text": ["look: {{cwd}}/x"]}]))
    said = [entry.frame for entry in run.entries if "look" in str(entry.frame)]
    assert said[0]["params"]["update"]["content"]["text"] == f"look: {run.cwd}/x"
    assert texts(run) == ["look: {{cwd}}/x"]


def test_a_model_in_single_bytes_is_heard_the_same(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"), model=[{"text": ["größe", "\u2028b"]}])
    fuzzed = run_scenario(scenario, pacing=RandomPacing(1))
    assert fuzzed.failures == []
    assert fuzzed.transcript == run_scenario(scenario).transcript


def test_calls_too_many_and_too_few_are_failures(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"), model=[{"text": ["a"]}, {"text": ["b"]}])
    assert run_scenario(scenario).failures == [f"{scenario.model}: 1 of 2 recorded model calls were not made"]
    scenario.model.write_text("[]")
    failures = run_scenario(scenario).failures
    assert failures[-1] == f"{scenario.model}: the agent made 1 model calls, 0 are recorded"


def test_it_finds_its_model_under_a_name_of_its_own(tmp_path):
    code = "import os, sys; sys.stderr.write(os.environ['MY_MODEL'] + ' ' + os.environ['PLAIN'])"
    command = (FOREIGN[0], "-S", "-c", code)
    run = run_scenario(foreign(tmp_path), command=command, env={"MY_MODEL": "{model_url}/v1", "PLAIN": "x"})
    assert run.stderr.startswith("http://127.0.0.1:")
    assert run.stderr.endswith("/v1 x")


def test_what_leads_to_a_model_stays_unset_where_there_is_none(tmp_path):
    command = (FOREIGN[0], "-S", "-c", "import os, sys; sys.stderr.write(str('MY_MODEL' in os.environ))")
    assert (
        run_scenario(stub_scenario(tmp_path / "s"), command=command, env={"MY_MODEL": "{model_url}"}).stderr == "False"
    )


def provider_answer(*parts, **headers):
    return {"text": list(parts), "headers": {"set-cookie": SECRET, "x-request-id": SECRET, **headers}}


def environment(url, **rest):
    return {"OPENAI_API_KEY": "key-of-the-provider", "OPENAI_BASE_URL": url, **rest}


def test_a_recording_keeps_what_the_provider_said_and_replays_without_it(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"), prompt("model ho"))

    def answer(body):
        cwd = body["messages"][0]["content"].rsplit(" ", 1)[1]
        return provider_answer("in ", cwd[:7], cwd[7:])

    with served(answer) as provider:
        record(scenario, environment=environment(provider.base_url))
    assert sorted(path.name for path in scenario.directory.iterdir()) == [
        "input.json",
        "model.json",
        "stdout.golden.jsonl",
    ]
    written = scenario.model.read_text() + scenario.golden.read_text()
    for unwanted in (SECRET, "key-of-the-provider", "cookie", "/cwd"):
        assert unwanted not in written
    run = run_scenario(scenario)
    assert judge(scenario, run, Referee(environment={})) == []
    assert texts(run) == ["in ", "{{cwd}}"] * 2
    assert check_folders(tmp_path, [scenario]) == []


def test_a_turn_that_was_cancelled_is_recorded_and_replays(tmp_path):
    scenario = foreign(tmp_path, {"op": "promptAndCancel", "text": "endless count"}, prompt("model that will do"))
    endless = {"stream": [{"text": ["1"]}, {"silence": True}]}
    with served([endless, provider_answer("as you like")]) as provider:
        record(scenario, environment=environment(provider.base_url))
    broken_off, whole = json.loads(scenario.model.read_text())
    assert broken_off["stream"][0]["event"]["choices"][0]["delta"] == {"content": "1"}
    assert (broken_off["stream"][1:], whole["stream"][-1]) == ([{"silence": True}], {"done": True})
    results = [json.loads(line).get("result", {}) for line in scenario.golden.read_text().splitlines()]
    assert [row["stopReason"] for row in results if "stopReason" in row] == ["cancelled", "end_turn"]


def test_the_other_provider_name_does_as_well(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"))
    with served([provider_answer("x")]) as provider:
        record(scenario, environment={"DEEPSEEK_API_KEY": "k", "DEEPSEEK_BASE_URL": provider.base_url})
    assert '"x"' in scenario.golden.read_text()


def test_a_recording_that_fails_writes_nothing(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"))
    with served([]) as provider, pytest.raises(RecordingError, match=r"s was not recorded:\nstep 3 .* answered 400"):
        record(scenario, environment=environment(provider.base_url))
    assert [path.name for path in scenario.directory.iterdir()] == ["input.json"]


def test_a_recording_without_a_provider_says_what_it_needs(tmp_path):
    with pytest.raises(RecordingError, match="set OPENAI_API_KEY with OPENAI_BASE_URL or DEEPSEEK_API_KEY with"):
        record(foreign(tmp_path, prompt("model hi")), environment={"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize("said", ["sk-0123456789abcdef0123", "key-of-the-provider"])
def test_a_recording_with_a_secret_in_it_is_refused(tmp_path, said):
    scenario = foreign(tmp_path, prompt("model hi"), model=[{"text": ["old"]}])
    with (
        served([provider_answer("your key is ", said)]) as provider,
        pytest.raises(RecordingError, match=r"it holds secrets:\nmodel.json: .* at line 2, .*\nstdout") as refused,
    ):
        record(scenario, environment=environment(provider.base_url))
    assert said not in str(refused.value)
    assert [path.name for path in sorted(scenario.directory.iterdir())] == ["input.json", "model.json"]
    assert "old" in scenario.model.read_text()


def test_an_authored_script_is_kept(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"), model=[{"text": ["mine"]}], source="authored")
    record(scenario, environment={})
    assert json.loads(scenario.model.read_text()) == [{"text": ["mine"]}]
    assert judge(scenario, run_scenario(scenario), Referee(environment={})) == []


def test_a_scenario_without_a_model_needs_no_provider(tmp_path):
    scenario = foreign(tmp_path, prompt("say x"), has_model_turn=False)
    record(scenario, environment={})
    assert judge(scenario, run_scenario(scenario), Referee(environment={})) == []


def test_a_refresh_writes_the_transcript_anew(tmp_path):
    scenario = foreign(tmp_path, prompt("model hi"), model=[{"text": ["a"]}])
    (first,) = refresh(scenario, environment={})
    assert "stdout.golden.jsonl differs at record 1 (expected 0 records" in first
    scenario.model.write_text('[{"text":["b"]}]')
    (changed,) = refresh(scenario, environment=os.environ)
    assert 'expected "a", found "b"' in changed
    assert refresh(replace(scenario, has_model_turn=False)) == []
