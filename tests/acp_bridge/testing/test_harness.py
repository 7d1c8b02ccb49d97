import os
import sys
from pathlib import Path

from acp_bridge.testing.harness import run_scenario
from tests.support.stub_scenario import STUB, prompt, stub_scenario


def test_a_run_has_a_world_of_its_own_that_is_gone_afterwards(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("call hi"))
    (scenario.directory / "workspace" / "deep").mkdir(parents=True)
    (scenario.directory / "workspace" / "deep" / "x.txt").write_text("x")
    code = "import os, sys; sys.stderr.write(str(sorted(os.environ.items())) + os.getcwd() + str(os.listdir('deep')))"
    run = run_scenario(scenario, command=(sys.executable, "-S", "-c", code), env={"EXTRA": "1"})
    assert "('EXTRA', '1')" in run.stderr
    assert "('DSH_SNAPSHOT', 'replay')" in run.stderr
    assert "['x.txt']" in run.stderr
    (home,) = [part for part in run.stderr.split("'") if part.endswith("/home")]
    assert Path(home) != Path.home()
    assert not Path(home).parent.exists()


def test_no_variable_of_this_machine_reaches_the_agent(tmp_path):
    os.environ["HARNESS_TEST_VARIABLE"] = "x"
    try:
        code = "import os, sys; sys.stderr.write(' '.join(os.environ))"
        run = run_scenario(stub_scenario(tmp_path / "s"), command=(sys.executable, "-S", "-c", code))
    finally:
        del os.environ["HARNESS_TEST_VARIABLE"]
    assert "HARNESS_TEST_VARIABLE" not in run.stderr
    assert "PATH" in run.stderr


def test_paths_of_the_recording_are_absolute(tmp_path):
    scenario = stub_scenario(tmp_path / "s", env={"FROM": "scenario"})
    (scenario.directory / "replay.override.json").write_text("[]")
    code = "import os, sys; sys.stderr.write('|'.join(f'{k}={v}' for k, v in os.environ.items()))"
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        relative = type(scenario)(Path("s"), True, "authored", env=scenario.env, profile=scenario.profile)
        run = run_scenario(relative, command=(sys.executable, "-S", "-c", code))
    finally:
        os.chdir(here)
    table = dict(part.split("=", 1) for part in run.stderr.split("|"))
    assert table["DSH_SNAPSHOT_FILE"] == str(tmp_path / "s" / "session.jsonl")
    assert table["DSH_SNAPSHOT_OVERRIDE"] == str(tmp_path / "s" / "replay.override.json")
    assert table["FROM"] == "scenario"


def test_logs_are_harvested_in_the_order_of_creation_and_normalised(tmp_path):
    steps = [{"op": "newSession", "session": "b"}, {"op": "newSession", "session": "c"}]
    run = run_scenario(stub_scenario(tmp_path / "s", *steps, prompt("call second", session="b"), prompt("call first")))
    assert run.failures == []
    first, second, third = run.logs
    assert third is None
    assert first is not None
    assert second is not None
    header = {"type": "session", "version": 1, "id": "{{sessionId}}", "createdAt": 0, "cwd": "{{cwd}}"}
    assert first[0] == second[0] == header
    assert [log[2]["data"]["chunk"]["text"] for log in (first, second)] == ["first", "second"]
    assert all(event["time"] == 0 for event in first[1:])
    assert run.report == [{"session": 2, "turn": 1, "step": 1}, {"session": 1, "turn": 1, "step": 1}]


def test_a_recording_run_gets_no_report(tmp_path):
    run = run_scenario(stub_scenario(tmp_path / "s", prompt("call hi")), mode="record")
    assert run.report == []
    assert run.failures == []


def test_a_log_of_a_session_that_nobody_opened_is_a_failure(tmp_path):
    code = (
        "import os, sys, json; root = os.environ['DSH_SNAPSHOT_SESSIONS_ROOT'];"
        "open(root + '/x.jsonl', 'w').write(json.dumps({'type': 'session', 'id': 'stranger', 'createdAt': 1}));"
        f"os.execv({STUB[0]!r}, {STUB!r})"
    )
    run = run_scenario(stub_scenario(tmp_path / "s"), command=(sys.executable, "-S", "-c", code))
    assert run.failures == ["a log of the unknown session stranger"]


def test_an_exit_code_is_a_failure_even_if_every_step_went_well(tmp_path):
    run = run_scenario(stub_scenario(tmp_path / "s", prompt("say x"), env={"STUB_EXIT": "3"}))
    assert run.failures == ["the agent exited with 3"]


def test_an_agent_that_dies_leaves_its_stderr(tmp_path):
    run = run_scenario(stub_scenario(tmp_path / "s", prompt("die")))
    assert run.failures == ["step 3 (prompt): the agent ended before its response to session/prompt"]
    assert run.stderr == "last words\n"


def test_an_agent_that_does_not_exit_is_reported_and_dead(tmp_path):
    run = run_scenario(stub_scenario(tmp_path / "s", prompt("deaf")), seconds=4)
    assert run.failures == ["the agent did not exit within 4 s of the end of its input"]


def test_what_was_no_frame_is_reported_once(tmp_path):
    run = run_scenario(stub_scenario(tmp_path / "s", prompt("garbage")))
    # seen while the answer is awaited, or at the end
    (failure,) = run.failures
    assert failure.endswith("stdout holds a line that is no JSON object: b'this is a print'")
    assert b"this is a print\n" in run.raw


def test_what_was_no_frame_at_the_very_end_is_reported(tmp_path):
    run = run_scenario(stub_scenario(tmp_path / "s", prompt("nan", wait=False)))
    assert run.failures[-1].startswith("stdout holds a line that is no JSON object")


def test_the_spill_root_is_masked_where_the_profile_says_it_is(tmp_path):
    scenario = stub_scenario(tmp_path / "s", prompt("say x"))
    profile = type(scenario.profile)(
        command=(
            sys.executable,
            "-S",
            "-c",
            f"import os; os.environ['X'] = os.environ['HOME']; os.execv({STUB[0]!r}, {STUB!r})",
        ),
        spill_root="state/spill",
    )
    run = run_scenario(type(scenario)(scenario.directory, False, "recorded", profile=profile))
    assert run.failures == []


def test_frames_of_concurrent_sessions_are_told_session_by_session(tmp_path):
    steps = [
        {"op": "newSession", "session": "b"},
        prompt("say one", session="b"),
        prompt("say two"),
        prompt("say three", session="b"),
    ]
    scenario = stub_scenario(tmp_path / "s", *steps, concurrent=True)
    run = run_scenario(scenario)
    assert run.failures == []
    rows = [
        frame.get("id") or frame["params"]["update"].get("content", {}).get("text") or "commands"
        for frame in run.transcript
    ]
    assert rows == [1, 2, 3, "commands", "two", 5, "commands", "one", 4, "three", 6]
