"""The pytest plugin, run inside pytest against the stub agents."""

import json
import os
import subprocess
import sys
from pathlib import Path

import acp.schema  # noqa: F401 - once for all: what a pytest inside this one imports is gone afterwards
import pytest

from acp_bridge.testing import plugin_items, plugin_results, plugin_rules, report, run_record  # noqa: F401 - once for all, too
from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.plugin_options import found_command
from acp_bridge.testing.scenario import load_scenarios
from tests.support.measuring import UNMEASURED
from tests.support.scenario_folder import FOREIGN, PARALLEL, PLAIN, scenario_folder
from tests.support.stub_scenario import STUB, prompt

pytest_plugins = ["pytester"]

AGENT = " ".join(STUB)


@pytest.fixture
def run(pytester, monkeypatch):
    """Pytest in a folder of its own, in this process; not on CI unless the test says so."""
    monkeypatch.delenv("CI", raising=False)
    return lambda *arguments: pytester.runpytest_inprocess(*PLAIN, *arguments)


@pytest.fixture
def folder(pytester) -> Path:
    """Two recorded scenarios, `one` and `two`."""
    return scenario_folder(pytester.path / "snapshots", one=[prompt("call one")], two=[prompt("call two")])


SCENARIOS = ("--acp-scenarios", "snapshots")
RECORD = (*SCENARIOS, "--acp-mode", "record", "-q")


def change(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def names(result) -> list[str]:
    return [
        line.split(" ")[0] for line in result.outlines if "::" in line and not line.startswith(("FAILED", "SKIPPED"))
    ]


# -- collection -------------------------------------------------------------------------------------------------------


def test_scenarios_are_items_beside_one_for_the_folders(run, folder):
    assert names(run(*SCENARIOS, "--collect-only", "-q")) == [
        "snapshots/scenarios.toml::one",
        "snapshots/scenarios.toml::two",
        "snapshots/scenarios.toml::folders",
    ]


def test_a_scenario_is_selected_by_name_and_by_node_id(run, folder):
    assert names(run(*SCENARIOS, "--collect-only", "-q", "-k", "two")) == ["snapshots/scenarios.toml::two"]
    chosen = "snapshots/scenarios.toml::one"
    assert names(run(*SCENARIOS, "--collect-only", "-q", chosen)) == [chosen]


def test_on_the_command_line_scenarios_are_all_that_runs_unless_paths_say_more(run, folder, pytester):
    pytester.makepyfile(test_mine="def test_mine(): pass")
    assert len(names(run(*SCENARIOS, "--collect-only", "-q"))) == 3
    assert len(names(run(*SCENARIOS, "--collect-only", "-q", "test_mine.py"))) == 4


def test_in_a_configuration_they_join_what_is_collected(run, folder, pytester, monkeypatch):
    pytester.makepyfile(test_mine="def test_mine(): pass")
    pytester.makeini("[pytest]\naddopts = --acp-scenarios snapshots\n")
    assert len(names(run("--collect-only", "-q"))) == 4
    assert names(run("--collect-only", "-q", "test_mine.py")) == ["test_mine.py::test_mine"]
    pytester.mkdir("deeper")
    monkeypatch.chdir("deeper")
    assert len(names(run("--collect-only", "-q", "../snapshots"))) == 3


def test_without_an_option_nothing_is_collected(run, folder, pytester):
    pytester.makepyfile(test_mine="def test_mine(): pass")
    assert names(run("--collect-only", "-q")) == ["test_mine.py::test_mine"]


def test_other_folders_are_not_collected(run, folder, pytester):
    scenario_folder(pytester.path / "others", three=[])
    assert len(names(run(*SCENARIOS, "--collect-only", "-q", "others", "snapshots"))) == 3


def test_scenarios_that_cannot_be_read_are_an_error_of_the_collection(run, folder):
    (folder / "scenarios.toml").write_text("[[scenario]]\n")
    result = run(*SCENARIOS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*scenarios.toml: a scenario without a name*"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--acp-scenarios", "nowhere"], "--acp-scenarios: there is no */nowhere/scenarios.toml"),
        (["--acp-conformance"], '--acp-conformance needs --acp-agent "COMMAND"'),
        (["--acp-agent", ""], "--acp-agent: the command is empty"),
        (["--acp-env", "NAME"], "--acp-env: 'NAME' is not NAME=VALUE"),
        (["--acp-update", "--acp-mode", "record"], "--acp-update belongs to --acp-mode replay; *"),
        (["--acp-conformance", "--acp-agent", "x", "--acp-known", "A-1,B-2"], "--acp-known: no such rule: A-1, B-2"),
    ],
)
def test_an_option_that_cannot_be_followed_is_a_usage_error(run, arguments, problem):
    result = run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {problem}"])


@pytest.mark.parametrize("word", [["--acp-update"], ["--acp-mode", "record"], ["--acp-mode", "refresh"]])
def test_ci_never_writes(run, folder, monkeypatch, word):
    monkeypatch.setenv("CI", "true")
    result = run(*SCENARIOS, *word)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {' '.join(word)} writes into the scenarios, and CI never writes: *"])
    assert not (folder / "one" / "stdout.golden.jsonl").exists()


def test_an_unused_plugin_imports_nothing_of_the_harness():
    code = (
        "import pytest, acp_bridge.testing.plugin, sys; print(*[n for n in sys.modules if n.startswith('acp_bridge.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(name.rpartition(".")[2] for name in done.stdout.split()) == [
        "fixtures",
        "plugin",
        "plugin_options",
        "testing",
    ]


def test_a_command_can_be_started_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("agent.py").touch()
    beside = str(Path(sys.executable).with_name("pytest"))
    assert found_command(["sh", "agent.py", "--flag"]) == ("sh", str(tmp_path / "agent.py"), "--flag")
    assert found_command(["./agent.py"]) == (str(tmp_path / "agent.py"),)
    assert found_command(["no-such-program"]) == ("no-such-program",)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found_command(["pytest"]) == (beside,)


# -- replay, record, refresh, update ----------------------------------------------------------------------------------


def test_scenarios_are_recorded_and_then_replay(run, folder):
    result = run(*RECORD)
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*= ACP scenarios =*", "recorded one", "recorded two"])
    run(*SCENARIOS, "--acp-agent", AGENT).assert_outcomes(passed=3)


def test_a_scenario_without_a_golden_fails_with_the_command_that_writes_it(run, folder):
    result = run(*SCENARIOS, "-k", "one")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*golden.jsonl: there is none; pytest --acp-scenarios snapshots --acp-update -k one writes it"]
    )


def test_a_difference_is_told_field_by_field_with_the_commands_that_take_it(run, folder):
    run(*RECORD)
    change(folder / "one" / "stdout.golden.jsonl", '"text":"one"', '"text":"eins"')
    change(folder / "two" / "session.jsonl", '"text":"two"', '"text":"zwei"')
    result = run(*SCENARIOS, "--acp-agent", AGENT)
    result.assert_outcomes(passed=1, failed=2)
    accept = f"pytest --acp-agent '{AGENT}' --acp-scenarios snapshots"
    result.stdout.fnmatch_lines(
        [
            "snapshots/one/stdout.golden.jsonl differs at record 4 *",
            '  $.params.update.content.text: expected "eins", found "one"',
            f"  if the new one is right: {accept} --acp-update -k one",
            '  $.data.chunk.text: expected "zwei", found "two"',
            f"  if the new one is right: {accept} --acp-mode record -k two, or refresh",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_an_update_takes_the_transcript_and_never_the_log(run, folder):
    run(*RECORD)
    change(folder / "one" / "stdout.golden.jsonl", '"text":"one"', '"text":"eins"')
    change(folder / "two" / "session.jsonl", '"text":"two"', '"text":"zwei"')
    before = (folder / "two" / "session.jsonl").read_text()
    run(*SCENARIOS, "--acp-update").assert_outcomes(passed=1, failed=1, skipped=1)
    assert (folder / "two" / "session.jsonl").read_text() == before
    run(*SCENARIOS, "-k", "one").assert_outcomes(passed=1)


def test_a_run_that_failed_is_not_taken(run, folder):
    change(folder / "one" / "input.json", "call one", "die")
    run(*SCENARIOS, "--acp-update", "-k", "one").assert_outcomes(failed=1)
    assert not (folder / "one" / "stdout.golden.jsonl").exists()


def test_a_recording_that_fails_is_told_without_a_traceback(run, folder):
    change(folder / "one" / "input.json", "call one", "die")
    result = run(*RECORD, "-k", "one")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["one was not recorded:", "last words"])
    assert "Traceback" not in result.stdout.str()


def test_a_refresh_says_what_changed(run, folder):
    run(*RECORD)
    change(folder / "one" / "stdout.golden.jsonl", '"text":"one"', '"text":"eins"')
    result = run(*SCENARIOS, "--acp-mode", "refresh")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        ["refreshed one: 1 changes", '*expected "eins", found "one"*', "refreshed two: no changes"]
    )
    run(*SCENARIOS).assert_outcomes(passed=3)


def test_what_was_not_checked_is_named_once(run, folder):
    run(*RECORD)
    result = run(*SCENARIOS)
    named = [line for line in result.outlines if line.startswith("frames are not fully checked: ")]
    assert len(named) == len(set(named)) == len(plugin_items.referee().skipped)


def test_an_authored_scenario_is_not_recorded(run, pytester):
    authored = {"steps": [prompt("call x")], "source": "authored", "override": [{}]}
    scenario_folder(pytester.path / "snapshots", one=authored)
    run(*RECORD).assert_outcomes(skipped=2)


def test_a_wrong_folder_fails(run, folder):
    run(*RECORD)
    (folder / "orphan").mkdir()
    result = run(*SCENARIOS)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["snapshots/orphan: not declared in scenarios.toml"])


def test_a_check_of_the_product_can_fail_a_scenario(run, folder, pytester):
    run(*RECORD)
    pytester.makeconftest(
        "def acp_scenario_checks(scenario, run):\n"
        "    return [f'{scenario.name}: {len(run.logs)} is one too many'] if scenario.name == 'one' else None\n"
    )
    result = run(*SCENARIOS, "snapshots")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["one: 1 is one too many"])


def test_an_agent_that_is_no_agent_is_a_failure_of_the_scenario(run, folder):
    run(*SCENARIOS, "--acp-agent", "no-such-program", "-k", "one").assert_outcomes(failed=1)


def test_what_is_wrong_with_the_plugin_has_its_traceback(run, folder, pytester):
    run(*RECORD, "-k", "one")
    pytester.makeconftest("def acp_scenario_checks(scenario, run): raise RuntimeError('a bug')")
    result = run(*SCENARIOS, "snapshots", "-k", "one")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*RuntimeError: a bug*"])


def test_a_foreign_agent_gets_its_model_and_its_variables(run, pytester):
    one = {"steps": [prompt("model hi")], "model": [{"text": ["from the script"]}], "source": "authored"}
    folder = scenario_folder(pytester.path / "snapshots", foreign=True, one=one)
    agent = [*SCENARIOS, "--acp-agent", " ".join(FOREIGN), "--acp-env", "OPENAI_BASE_URL={model_url}/v1"]
    run(*agent, "--acp-update").assert_outcomes(passed=1, skipped=1)
    assert "from the script" in (folder / "one" / "stdout.golden.jsonl").read_text()
    run(*agent).assert_outcomes(passed=2)


# -- mutations, fuzz, report ------------------------------------------------------------------------------------------


def strict(folder: Path) -> None:
    change(folder / "scenarios.toml", 'source="recorded"\n', 'source="recorded"\nenv={STUB_STRICT="1"}\n')


def test_every_recorded_request_is_altered_once(run, folder):
    strict(folder)
    run(*RECORD)
    result = run(*SCENARIOS, "--acp-mutate", "-v")
    result.assert_outcomes(passed=5)
    assert "snapshots/scenarios.toml::one[mutate session 1 turn 1 step 1]" in result.stdout.str()


def test_a_mutation_that_nobody_notices_fails(run, folder):
    strict(folder)
    run(*RECORD)
    change(folder / "scenarios.toml", 'env={STUB_STRICT="1"}\n', "")
    result = run(*SCENARIOS, "--acp-mutate", "-k", "mutate and one")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["the recorded request of session 1 turn 1 step 1 was altered, and the replay went on*"]
    )


def test_scenarios_are_fuzzed_and_update_leaves_fuzzed_runs_alone(run, folder):
    run(*RECORD, "-k", "one")
    result = run(*SCENARIOS, "--acp-fuzz", "2", "--acp-update", "-v", "-k", "one")
    result.assert_outcomes(passed=3)
    assert "snapshots/scenarios.toml::one[fuzz 2]" in result.stdout.str()


def test_a_report_is_written_about_the_runs(run, folder):
    run(*RECORD)
    change(folder / "one" / "stdout.golden.jsonl", '"text":"one"', '"text":"eins"')
    result = run(*SCENARIOS, "--acp-report", "out.html")
    result.stdout.fnmatch_lines(["ACP report: */out.html"])
    page = (folder.parent / "out.html").read_text()
    assert "Scenarios: 2, failed: 1, passed: 1" in page
    assert "eins" in page


def test_a_report_does_not_need_a_golden(run, folder):
    run(*SCENARIOS, "--acp-report", "out.html", "-k", "one")
    assert "Scenarios: 1, failed: 1, passed: 0" in (folder.parent / "out.html").read_text()


def test_a_run_travels_as_json_and_comes_back_whole(folder):
    before = run_scenario(load_scenarios(folder)[0])
    after = run_record.run_from_record(json.loads(json.dumps(run_record.run_record(before))))
    assert after == before
    assert [entry.at for entry in after.entries] == [entry.at for entry in before.entries]


# -- rules ------------------------------------------------------------------------------------------------------------

RULES = ("--acp-conformance", "--acp-agent", AGENT)


def test_every_rule_is_an_item_and_needs_no_file(run):
    collected = names(run(*RULES, "--collect-only", "-q"))
    assert len(collected) > 120
    assert "conformance::INIT-01" in collected


def test_rules_run_beside_tests_when_paths_say_so(run, pytester):
    pytester.makepyfile(test_mine="def test_mine(): pass")
    run(*RULES, "test_mine.py", "-k", "INIT-01 or mine").assert_outcomes(passed=2)
    pytester.makeini("[pytest]\naddopts = --acp-conformance\n")
    run("--acp-agent", AGENT, "-k", "INIT-01 or mine").assert_outcomes(passed=2)


def test_only_a_broken_must_fails_and_all_verdicts_are_in_the_table(run):
    chosen = "INIT-01 or LIST-01 or INIT-04 or CLOSE-01 or UPD-01"
    result = run(*RULES, "-k", chosen, "--acp-json", "out.json", "-rs")
    result.assert_outcomes(passed=2, failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "LIST-01 (MUST, session-list): *",
            "*= ACP conformance =*",
            "ok           MUST    INIT-01 *",
            "warning      SHOULD  INIT-04 *",
            "broken       MUST    LIST-01 *",
            "skipped      MUST    CLOSE-01 *",
            "not-provoked MUST    UPD-01 *",
            "5 rules: *",
            "ACP results: */out.json",
        ]
    )
    result.stdout.fnmatch_lines(["SKIPPED * skipped: sessionCapabilities.close is not advertised"])
    rows = {row["id"]: row["verdict"] for row in json.loads(Path("out.json").read_text())}
    assert rows["INIT-04"] == "warning"


def test_strict_fails_on_warnings_too(run):
    run(*RULES, "-k", "INIT-04", "--acp-strict").assert_outcomes(failed=1)


def test_a_known_break_runs_and_fails_nothing(run):
    result = run(*RULES, "-k", "LIST-01 or INIT-04", "--acp-known", "LIST-01,INIT-04", "--acp-strict")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["known        MUST    LIST-01 *"])


def test_what_the_frames_of_another_rule_broke_fails_the_run(run, pytester):
    agent = pytester.makepyfile(
        noisy=f"""
        import sys
        sys.path.insert(0, {str(Path(STUB[-1]).parent)!r})
        import stub_agent
        handle = stub_agent.handle
        def noisy(frame):
            if frame["method"] == "session/list":
                stub_agent.write({{"id": 4711, "result": {{}}}})
            return handle(frame)
        stub_agent.handle = noisy
        stub_agent.main()
        """
    )
    noisy = ("--acp-conformance", "--acp-agent", f"{sys.executable} -S {agent.name}")
    run(*noisy, "-k", "WIRE-05").assert_outcomes(passed=1)
    result = run(*noisy, "-k", "WIRE-05 or LIST-03")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    late = "FAILED by the frames of other rules, though passed alone: WIRE-05"
    result.stdout.fnmatch_lines(
        [
            "WIRE-05 (MUST, jsonrpc, prompt-turn): *",
            "*4711* (in LIST-03)",
            "broken       MUST    WIRE-05 *",
            "*4711* (in LIST-03)",
            "2 rules: 1 broken, 1 ok",
            late,
            "FAILED conformance::WIRE-05*",
        ]
    )


def test_a_process_of_xdist_sends_what_its_items_left(run, pytester, folder):
    run(*RECORD, *SCENARIOS)
    wanted = [*SCENARIOS, *RULES, "--acp-report", "out.html", "--acp-json", "out.json", "-k", "one or two or INIT-01"]
    command = [sys.executable, "-m", "pytest", *PARALLEL, "-n", "1", *wanted]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **UNMEASURED})
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "Scenarios: 2, failed: 0, passed: 2" in Path("out.html").read_text()
    assert [row["id"] for row in json.loads(Path("out.json").read_text())] == ["INIT-01"]
