import json

import pytest

from acp_bridge.testing.scenario import ScenarioError, load_model, load_scenarios, load_script


def toml(tmp_path, text):
    (tmp_path / "scenarios.toml").write_text(text)
    return load_scenarios(tmp_path)


def test_scenarios_are_read_with_their_profile(tmp_path):
    first, second = toml(
        tmp_path,
        """
        [agent]
        command = ["my-agent", "--acp"]
        settles_session = "available_commands_update"
        spill_root = "spill"
        [[scenario]]
        name = "one"
        has_model_turn = true
        source = "recorded"
        env = {A = "1"}
        capabilities = ["loadSession"]
        [[scenario]]
        name = "two"
        has_model_turn = false
        source = "authored"
        """,
    )
    assert (first.name, first.directory, first.has_model_turn) == ("one", tmp_path / "one", True)
    assert (first.env, first.capabilities) == ({"A": "1"}, ("loadSession",))
    assert first.profile.command == ("my-agent", "--acp")
    assert (first.profile.settles_session, first.profile.spill_root) == ("available_commands_update", "spill")
    assert (second.source, second.env, second.capabilities, second.profile) == ("authored", {}, (), first.profile)


def test_a_profile_has_defaults(tmp_path):
    (only,) = toml(tmp_path, '[[scenario]]\nname="a"\nhas_model_turn=false\nsource="recorded"')
    assert only.profile.command == ("dsh-acp-agent",)
    assert only.profile.settles_session is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[scenario", "scenarios.toml: "),
        ("[[scenario]]\nsource='recorded'", "a scenario without a name"),
        ("[[scenario]]\nname='a'\ncolour='red'", "a: unknown colour"),
        ("[[scenario]]\nname='a'\nsource='recorded'", "a: has_model_turn .* are needed"),
        ("[[scenario]]\nname='a'\nhas_model_turn=true\nsource='bought'", r"source \(recorded or authored\)"),
        ("[agent]\nspeed=3", r"\[agent\]: unknown speed"),
    ],
)
def test_a_wrong_declaration_is_named(tmp_path, text, problem):
    with pytest.raises(ScenarioError, match=problem):
        toml(tmp_path, text)


def test_a_missing_declaration_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"scenarios\.toml"):
        load_scenarios(tmp_path)


def test_a_scenario_knows_its_files(tmp_path):
    (scenario,) = toml(tmp_path, '[[scenario]]\nname="a"\nhas_model_turn=false\nsource="recorded"')
    assert scenario.logs() == []
    assert scenario.override is None
    scenario.directory.mkdir()
    for name in ("session.jsonl", "session.2.jsonl", "session.4.jsonl", "replay.override.json"):
        (scenario.directory / name).touch()
    assert [path.name for path in scenario.logs()] == ["session.jsonl", "session.2.jsonl"]
    assert scenario.override == scenario.directory / "replay.override.json"
    assert scenario.golden.name == "stdout.golden.jsonl"


def script(tmp_path, document):
    path = tmp_path / "input.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return load_script(path)


def test_steps_and_answers_are_read(tmp_path):
    loaded = script(
        tmp_path,
        {
            "steps": [{"op": "newSession", "session": "a"}, {"op": "prompt", "text": "hi", "wait": False}],
            "permissionAnswers": [{"kind": "allow_once"}, {"never": True}],
            "fsAnswers": [{"result": {"content": ""}}],
        },
    )
    first, second = loaded.steps
    assert (first.number, first.op, first.session, first.fields) == (1, "newSession", "a", {})
    assert (second.number, second.session, second.fields) == (2, "", {"text": "hi", "wait": False})
    assert loaded.answers == {
        "permission": ({"kind": "allow_once"}, {"never": True}),
        "fs": ({"result": {"content": ""}},),
    }


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "input.json: "),
        ([], "this is no"),
        ({"steps": 3}, "this is no"),
        ({"steps": [], "notes": ""}, "unknown notes"),
        ({"steps": [{"op": "dance"}]}, "step 1: unknown operation"),
        ({"steps": [3]}, "step 1: unknown operation 3"),
        ({"steps": [{"op": "initialize"}, {"op": "setMode"}]}, r"step 2 \(setMode\): needs modeId"),
        ({"steps": [{"op": "cancel", "text": "x"}]}, r"step 1 \(cancel\): unknown text"),
        ({"steps": [{"op": "prompt"}]}, "needs either text or blocks"),
        ({"steps": [{"op": "prompt", "text": "", "blocks": []}]}, "needs either text or blocks"),
        (
            {"steps": [], "permissionAnswers": [{"kind": "x"}, {"yes": 1}]},
            "permissionAnswers 2: .* is not one of error, kind",
        ),
        ({"steps": [], "terminalAnswers": ["x"]}, "terminalAnswers 1: 'x' is not one of"),
    ],
)
def test_a_wrong_script_is_named_with_its_step(tmp_path, document, problem):
    with pytest.raises(ScenarioError, match=problem):
        script(tmp_path, document)


def test_an_agent_that_replays_its_log_says_how(tmp_path):
    agent = '[agent]\nreplay_env="X"\nlog_glob="*.jsonl"\n'
    row = '[[scenario]]\nname="a"\nhas_model_turn=true\nsource="authored"\nconcurrent=true'
    (only,) = toml(tmp_path, agent + row)
    assert (only.profile.replay_env, only.profile.log_glob, only.concurrent) == ("X", "*.jsonl", True)
    with pytest.raises(ScenarioError, match="replay_env and log_glob stand together"):
        toml(tmp_path, '[agent]\nreplay_env="X"')


def test_an_answer_can_name_its_session(tmp_path):
    path = tmp_path / "input.json"
    path.write_text('{"steps":[],"permissionAnswers":[{"kind":"allow_once","session":"a"}]}')
    assert load_script(path).answers["permission"] == ({"kind": "allow_once", "session": "a"},)
    path.write_text('{"steps":[],"permissionAnswers":[{"session":"a"}]}')
    with pytest.raises(ScenarioError, match="is not one of"):
        load_script(path)


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "No such file"), ("[", "Expecting"), ("{}", "no list of answers")]
)
def test_a_wrong_model_script_is_named(tmp_path, text, problem):
    path = tmp_path / "model.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ScenarioError, match=problem):
        load_model(path)


def test_a_model_script_is_a_list_of_answers(tmp_path):
    (tmp_path / "model.json").write_text('[{"text":["hi"]}]')
    assert load_model(tmp_path / "model.json") == [{"text": ["hi"]}]
