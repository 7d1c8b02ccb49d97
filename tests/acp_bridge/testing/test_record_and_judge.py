"""Recording a scenario and judging its replay, end to end on the stub agent, and the command line over both."""

import json
import os
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acp_bridge.testing import __main__
from acp_bridge.testing.__main__ import main
from acp_bridge.testing.editor import Entry
from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.json_values import read_lines, write_lines
from acp_bridge.testing.judge import judge
from acp_bridge.testing.record import RecordingError, record
from acp_bridge.testing.scenario import Scenario
from acp_bridge.testing.validate import Referee
from tests.support.stub_scenario import STUB, prompt, stub_scenario


def verdict(scenario: Scenario) -> list[str]:
    return judge(scenario, run_scenario(scenario), Referee(environment={}))


def recorded(tmp_path: Path, *steps, **fields) -> Scenario:
    scenario = stub_scenario(tmp_path / "s", *steps, **{"has_model_turn": True, **fields})
    record(scenario)
    return scenario


def test_a_recording_replays_to_itself(tmp_path):
    scenario = recorded(
        tmp_path, {"op": "newSession", "session": "b"}, prompt("call hi"), capabilities=("loadSession",)
    )
    assert verdict(scenario) == []
    assert sorted(path.name for path in scenario.directory.iterdir()) == [
        "input.json",
        "session.2.jsonl",
        "session.jsonl",
        "stdout.golden.jsonl",
    ]
    assert read_lines(scenario.log_path(2)) == [
        {"type": "session", "version": 1, "id": "{{sessionId}}", "createdAt": 0, "cwd": "{{cwd}}"}
    ]


def test_a_recording_replaces_the_one_before(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("call hi"), has_model_turn=True)
    for number in (1, 2, 3):
        write_lines(scenario.log_path(number), [{"old": number}])
    record(scenario)
    assert [path.name for path in scenario.logs()] == ["session.jsonl"]


def test_a_script_without_a_session_is_recorded_with_an_empty_log(tmp_path):
    scenario = stub_scenario(tmp_path / "s")
    (scenario.directory / "input.json").write_text('{"steps":[{"op":"initialize"}]}')
    record(scenario)
    assert [len(read_lines(path)) for path in scenario.logs()] == [1]


def test_an_authored_scenario_is_replayed_from_its_override_beside_empty_logs(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("call hi"), source="authored", has_model_turn=True)
    (scenario.directory / "replay.override.json").write_text('[{"kind":"hang"}]')
    record(scenario)
    assert verdict(scenario) == []
    (scenario.directory / "replay.override.json").write_text('[{"kind":"hang"},{"kind":"hang"}]')
    assert verdict(scenario) == [f"{scenario.override}: 1 of 2 entries were not used"]


def test_the_override_of_a_second_session_is_counted_on_its_own(tmp_path):
    steps = [{"op": "newSession", "session": name} for name in ("b", "c")]
    scenario = stub_scenario(
        tmp_path / "s", *steps, prompt("call hi"), prompt("call ho", session="b"), source="authored"
    )
    (scenario.directory / "replay.override.json").write_text("[{}]")
    (scenario.directory / "replay.override.2.json").write_text("[{},{}]")
    record(scenario)
    assert verdict(scenario) == [f"{scenario.directory / 'replay.override.2.json'}: 1 of 2 entries were not used"]


def test_a_run_that_fails_writes_nothing(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("die"))
    with pytest.raises(RecordingError, match=r"s was not recorded:\nstep 3 \(prompt\): the agent ended .*\nlast words"):
        record(scenario)
    assert [path.name for path in scenario.directory.iterdir()] == ["input.json"]


def test_a_run_that_does_not_replay_writes_nothing(tmp_path):
    # the stub says a number that no mask knows
    scenario = stub_scenario(tmp_path / "s", prompt("call hi"))
    counter = tmp_path / "counter"
    wrapper = tmp_path / "agent.py"
    wrapper.write_text(
        "import sys, pathlib\n"
        f"counter = pathlib.Path({str(counter)!r})\n"
        "counter.write_text((counter.read_text() if counter.exists() else '') + 'x')\n"
        f"sys.path.insert(0, {str(Path(STUB[-1]).parent)!r})\n"
        "import stub_agent\n"
        "old = stub_agent.say\n"
        "stub_agent.say = lambda session, text: old(session, text + counter.read_text())\n"
        "stub_agent.main()\n"
    )
    with pytest.raises(RecordingError, match=r"the transcript of the replay differs at record 3"):
        record(scenario, command=(sys.executable, "-S", str(wrapper)))
    assert [path.name for path in scenario.directory.iterdir()] == ["input.json"]


def test_a_recording_talks_to_the_model_of_its_script(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("say x"))
    (scenario.directory / "model.json").write_text('[{"text":["hello"]}]')
    seen = tmp_path / "seen.json"
    code = (
        "import os, json, urllib.request\n"
        "if base := os.environ.get('DEEPSEEK_BASE_URL'):\n"
        "    body = json.dumps({'model': 'm', 'messages': []}).encode()\n"
        "    head = {'Authorization': 'Bearer ' + os.environ['DEEPSEEK_API_KEY'], 'Content-Type': 'application/json'}\n"
        "    request = urllib.request.Request(base + '/chat/completions', body, head)\n"
        f"    open({str(seen)!r}, 'wb').write(urllib.request.urlopen(request).read())\n"
        f"os.execv({STUB[0]!r}, {STUB!r})\n"
    )
    record(scenario, command=(sys.executable, "-S", "-c", code))
    assert "hello" in seen.read_text()


def test_without_a_script_a_recording_talks_to_the_provider_of_the_environment(tmp_path):
    seen = tmp_path / "seen"
    note = f"open({str(seen)!r}, 'a').write(os.environ.get('DEEPSEEK_API_KEY', '-'))"
    code = f"import os; {note}; os.execv({STUB[0]!r}, {STUB!r})"
    os.environ["DEEPSEEK_API_KEY"] = "k"
    try:
        record(stub_scenario(tmp_path / "s"), command=(sys.executable, "-S", "-c", code))
    finally:
        del os.environ["DEEPSEEK_API_KEY"]
    assert seen.read_text() == "k-"  # recorded with the key, replayed without


# -- verdicts ---------------------------------------------------------------------------------------------------------


def change(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_a_changed_transcript_is_shown_with_the_command_that_accepts_it(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"))
    change(scenario.golden, '"text":"hi"', '"text":"ho"')
    (finding,) = verdict(scenario)
    assert '$.params.update.content.text: expected "ho", found "hi"' in finding
    assert f"python -m acp_bridge.testing accept --root {tmp_path} s" in finding


def test_a_changed_log_is_shown(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"))
    change(scenario.fixture, '"text":"hi"', '"text":"ho"')
    (finding,) = verdict(scenario)
    assert 'data.chunk.text: expected "ho", found "hi"' in finding
    assert "bin/record s" in finding


def test_a_model_turn_without_a_log_is_a_finding(tmp_path):
    scenario = recorded(tmp_path, prompt("say x"))
    assert verdict(scenario) == [f"{scenario.directory}: the agent wrote no log of a run with a model turn"]


def test_another_number_of_sessions_is_a_finding(tmp_path):
    scenario = recorded(tmp_path, has_model_turn=False)
    write_lines(scenario.log_path(2), read_lines(scenario.fixture))
    assert verdict(scenario) == [f"{scenario.directory}: 2 session logs are recorded, the run opened 1 sessions"]


def test_a_recorded_call_that_was_not_made_is_a_finding(tmp_path):
    scenario = recorded(tmp_path, prompt("call hi"))
    change(scenario.directory / "input.json", "call hi", "say hi")
    findings = verdict(scenario)
    assert f"{scenario.fixture}: recorded model calls (turn, step) that were not made: [(1, 1)]" in findings


@pytest.mark.parametrize("name", ["fork", "sessionCapabilities.fork", "loadSession.x"])
def test_a_capability_that_is_not_advertised_is_a_finding(tmp_path, name):
    scenario = recorded(tmp_path, has_model_turn=False, capabilities=(name, "sessionCapabilities.list"))
    assert verdict(scenario) == [f"{name} is not advertised"]


def test_broken_rules_of_the_protocol_and_stderr_are_findings(tmp_path):
    scenario = recorded(tmp_path, has_model_turn=False)
    (scenario.directory / "input.json").write_text(
        '{"steps":[{"op":"initialize"},{"op":"newSession"},{"op":"prompt","text":"card"}]}'
    )
    findings = verdict(scenario)
    assert "card c1 is still in_progress when its prompt is answered" in findings
    change(scenario.directory / "input.json", "card", "die")
    assert verdict(scenario)[-1] == "stderr of the agent:\nlast words\n"


def test_an_answer_of_null_says_nothing_about_capabilities(tmp_path):
    scenario = recorded(tmp_path, has_model_turn=False, capabilities=("sessionCapabilities.list",))
    run = run_scenario(scenario)
    answer = Entry("client", {"jsonrpc": "2.0", "id": 1, "result": None})
    run = replace(run, entries=(answer, *run.entries))
    assert "sessionCapabilities.list is not advertised" not in judge(scenario, run, Referee(environment={}))


def test_a_run_without_an_answer_to_initialize_advertises_nothing(tmp_path):
    scenario = recorded(tmp_path, has_model_turn=False, capabilities=("loadSession",))
    run = run_scenario(scenario, command=(sys.executable, "-S", "-c", "pass"))
    assert "loadSession is not advertised" in judge(scenario, run, Referee(environment={}))


# -- command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path) -> Path:
    for name in ("one", "two"):
        stub_scenario(tmp_path / name, prompt(f"call {name}"))
    rows = "".join(f'[[scenario]]\nname="{name}"\nhas_model_turn=true\nsource="recorded"\n' for name in ("one", "two"))
    agent = f'[agent]\ncommand={json.dumps(STUB)}\nsettles_session="available_commands_update"\n'
    agent += 'replay_env="DSH_SNAPSHOT"\nlog_glob="**/*.jsonl"\n'
    (tmp_path / "scenarios.toml").write_text(agent + rows)
    return tmp_path


def test_scenarios_are_recorded_and_checked_from_the_command_line(root, capsys):
    assert main(["record", "--root", str(root)], {}) == 0
    assert main(["check", "--root", str(root)], {}) == 0
    assert capsys.readouterr().out == "ok   one\nok   two\n" * 2 + "ok   the folders\n"


def test_a_difference_is_an_exit_code_and_can_be_accepted(root, capsys):
    main(["record", "--root", str(root)], {})
    change(root / "two" / "stdout.golden.jsonl", '"text":"two"', '"text":"2"')
    capsys.readouterr()
    assert main(["check", "--root", str(root)], {}) == 1
    out = capsys.readouterr().out
    assert out.startswith("ok   one\nFAIL two\n")
    assert 'expected "2", found "two"' in out
    assert main(["accept", "--root", str(root), "two"], {}) == 0
    assert main(["check", "--root", str(root), "two"], {}) == 0


def test_a_recording_that_fails_is_an_exit_code(root, capsys):
    change(root / "one" / "input.json", "call one", "die")
    assert main(["record", "--root", str(root), "one"], {}) == 1
    assert "one was not recorded" in capsys.readouterr().out


def test_a_refresh_says_what_changed(root, capsys):
    main(["record", "--root", str(root)], {})
    change(root / "two" / "stdout.golden.jsonl", '"text":"two"', '"text":"2"')
    capsys.readouterr()
    assert main(["refresh", "--root", str(root)], {}) == 0
    out = capsys.readouterr().out
    assert "one is as it was\nok   one\n" in out
    assert 'expected "2", found "two"' in out


def test_an_orphan_is_a_finding(root, capsys):
    main(["record", "--root", str(root)], {})
    (root / "three").mkdir()
    assert main(["check", "--root", str(root)], {}) == 1
    assert "three: not declared" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["record", "refresh", "accept"])
def test_ci_never_writes(root, capsys, action):
    assert main([action, "--root", str(root)], {"CI": "1"}) == 2
    assert capsys.readouterr().out.startswith(f"{action} writes into the scenarios, and CI never writes")
    assert not (root / "one" / "session.jsonl").exists()


def test_an_unknown_name_is_an_error(root, capsys):
    assert main(["check", "--root", str(root), "three"], {}) == 2
    assert "declares no three" in capsys.readouterr().out


def test_the_module_is_a_command(root, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["testing", "check", "--root", str(root), "nothing"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(__main__.__file__, run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (2, f"{root}/scenarios.toml: declares no nothing\n")
