from dataclasses import replace

import pytest

from acp_bridge.testing.guards import check_folders
from tests.support.stub_scenario import stub_scenario

FILES = {"session.jsonl": "{}\n", "stdout.golden.jsonl": "{}\n"}


def folder(tmp_path, source="recorded", **files):
    scenario = stub_scenario(tmp_path / "one", source=source)
    for name, text in {**FILES, **files}.items():
        path = scenario.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    return scenario


def findings(tmp_path, *scenarios):
    return [finding.removeprefix(f"{tmp_path}/") for finding in check_folders(tmp_path, scenarios)]


def test_a_complete_folder_has_no_findings(tmp_path):
    extra = {"session.2.jsonl": "{}\n", "model.json": "[]\n", "workspace/a.txt": "a\n"}
    assert findings(tmp_path, folder(tmp_path, **extra)) == []


def test_an_authored_folder_has_an_override(tmp_path):
    scenario = folder(tmp_path, "authored", **{"replay.override.json": "[]", "replay.override.2.json": "[]"})
    assert findings(tmp_path, scenario) == []


def test_folders_are_exactly_those_declared(tmp_path):
    declared = stub_scenario(tmp_path / "gone")
    for path in sorted(declared.directory.iterdir()):
        path.unlink()
    declared.directory.rmdir()
    folder(tmp_path)
    assert findings(tmp_path, declared) == [
        "gone: declared, but there is no such folder",
        "one: not declared in scenarios.toml",
    ]


@pytest.mark.parametrize(
    ("source", "files", "found"),
    [
        ("authored", {}, ["one: an override stands exactly in authored scenarios, and this one is authored"]),
        (
            "recorded",
            {"replay.override.json": "[]"},
            ["one: an override stands exactly in authored scenarios, and this one is recorded"],
        ),
        (
            "authored",
            {"replay.override.json": "[]", "model.json": "[]"},
            ["one/model.json: an authored scenario has no model to record"],
        ),
        ("recorded", {"notes.txt": "x"}, ["one/notes.txt: no file of a scenario"]),
        ("recorded", {"session.jsonl": "{}\r\n", "workspace/a": "x\r\n"}, ["one/session.jsonl: line ends are LF"]),
        (
            "recorded",
            {"session.jsonl": '{"code":"UNKNOWN_TOOL"}'},
            ["one/session.jsonl: an UNKNOWN_TOOL result was recorded"],
        ),
        (
            "recorded",
            {"workspace/env": "KEY=sk-0123456789abcdef0123"},
            ["one/workspace/env: looks like a secret at character 4"],
        ),
        (
            "recorded",
            {"model.json": "https://me:hunter22@host/"},
            ["one/model.json: looks like a secret at character 6"],
        ),
    ],
)
def test_a_wrong_folder_is_named(tmp_path, source, files, found):
    assert findings(tmp_path, folder(tmp_path, source, **files)) == found


def test_missing_files_are_named(tmp_path):
    scenario = folder(tmp_path)
    for name in ("input.json", *FILES):
        (scenario.directory / name).unlink()
    assert findings(tmp_path, scenario) == [
        "one/input.json: missing",
        "one/session.jsonl: missing",
        "one/stdout.golden.jsonl: missing",
    ]


def test_a_foreign_agent_needs_a_model_script_and_no_log(tmp_path):
    scenario = folder(tmp_path)
    foreign = replace(scenario, has_model_turn=True, profile=replace(scenario.profile, replay_env=None, log_glob=None))
    assert findings(tmp_path, foreign) == ["one/model.json: missing"]
    assert findings(tmp_path, replace(foreign, has_model_turn=False)) == []
    (scenario.directory / "session.jsonl").unlink()
    (scenario.directory / "model.json").write_text("[]\n")
    assert findings(tmp_path, replace(foreign, source="authored")) == []
