"""Settings: who wins over whom, and how a value that cannot be used is named."""

from pathlib import Path

import pytest

from acp_bridge.config_file import Flags, RawConfig
from acp_bridge.settings import SettingsError, load_settings

PROVIDERS = {"mine": {"base_url": "http://x/v1", "models": [{"id": "m"}]}}


def settings(table=None, *, flags=None, **environment):
    return load_settings(RawConfig("/c.toml", table or {}), flags or Flags(), environment)


def test_without_any_source_there_are_defaults(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = settings()
    assert (made.provider, made.model, made.deepseek_url, made.permission_mode) == ("deepseek", None, None, "ask")
    assert made.sessions_root == tmp_path / "dsh-acp-agent" / "sessions"
    assert made.spill_root == tmp_path / "dsh-acp-agent" / "spill"
    assert made.snapshot is None
    assert made.config.executor == "local"


def test_a_flag_wins_over_the_environment_and_that_over_the_file():
    table = {
        "model": "mine/m",
        "permission": {"mode": "full"},
        "sessions": {"root": "/file"},
        "providers": {**PROVIDERS, "deepseek": {"base_url": "http://file"}},
    }
    made = settings(table)
    assert (made.provider, made.model, made.permission_mode) == ("mine", "m", "full")
    assert (made.deepseek_url, made.sessions_root) == ("http://file", Path("/file"))
    environment = {
        "DSH_MODEL": "pro",
        "DSH_PERMISSION_MODE": "ask",
        "DEEPSEEK_BASE_URL": "http://env",
        "DSH_SNAPSHOT_SESSIONS_ROOT": "/env",
    }
    made = settings(table, **environment)
    assert (made.provider, made.model, made.permission_mode) == ("deepseek", "pro", "ask")
    assert (made.deepseek_url, made.sessions_root) == ("http://env", Path("/env"))
    made = settings(table, flags=Flags(model="mine", permission_mode="full"), **environment)
    assert (made.provider, made.model, made.permission_mode) == ("mine", None, "full")


def test_the_root_of_sessions_may_begin_with_the_home_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert settings({"sessions": {"root": "~/logs"}}).sessions_root == Path("/home/me/logs")


def test_the_sandbox_reaches_nothing_more_unless_told():
    made = settings({"executor": "sandbox"}).config
    assert (made.executor, made.sandbox.network, made.sandbox.allow_read, made.sandbox.allow_write) == (
        "sandbox",
        False,
        (),
        (),
    )


def test_what_the_sandbox_reaches_may_begin_with_the_home_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    table = {"network": True, "allow_read": ["~/.gitconfig", "/srv"], "allow_write": ["~"]}
    made = settings({"sandbox": table}).config.sandbox
    assert (made.network, made.allow_read, made.allow_write) == (True, ("/home/me/.gitconfig", "/srv"), ("/home/me",))


def test_forks_are_off_unless_switched_on():
    assert settings().config.unstable.fork is False
    assert settings({"unstable": {"fork": True}}).config.unstable.fork is True


def test_commands_are_allowed_and_forbidden_by_their_first_words():
    made = settings({"permission": {"allow": ["git status"], "deny": ["sudo", "git push"]}}).config.permission
    assert (made.allow, made.deny) == (("git status",), ("sudo", "git push"))


def test_the_snapshot_variables_are_read_and_empty_ones_are_absent():
    made = settings(DSH_SNAPSHOT="replay", DSH_SNAPSHOT_FILE="/f", DSH_SNAPSHOT_OVERRIDE="", DSH_SNAPSHOT_REPORT="/r")
    assert made.snapshot.mode == "replay"
    assert (made.snapshot.file, made.snapshot.override, made.snapshot.report) == (Path("/f"), None, Path("/r"))
    assert settings(DSH_SNAPSHOT="", DSH_SNAPSHOT_FILE="/f").snapshot is None


@pytest.mark.parametrize(
    ("table", "environment", "says"),
    [
        ({"surplus": 1}, {}, "configuration file /c.toml: surplus: there is no such setting"),
        ({"modle": "x"}, {}, "modle: there is no such setting; did you mean 'model'?"),
        ({"sandbox": {"netwrok": True}}, {}, "sandbox.netwrok: there is no such setting; did you mean 'network'?"),
        (
            {"providers": {"mine": {"base_url": "http://x", "models": [{"id": "m", "contxt": 1}]}}},
            {},
            "providers.mine.models.0.contxt: there is no such setting; did you mean 'context'?",
        ),
        ({"providers": {"mine": {"base_url": "http://x"}}}, {}, "[providers.mine] needs base_url and at least one"),
        ({"providers": {"mine": {"models": [{"id": "m"}]}}}, {}, "[providers.mine] needs base_url and at least one"),
        ({"providers": {"mine": {"models": [{"id": "", "context": 0}]}}}, {}, "providers.mine.models.0.context: "),
        ({"env": {"allow": "X"}}, {}, "env.allow: "),
        ({"executor": "cloud"}, {}, "executor: Input should be 'local' or 'sandbox'"),
        ({"sandbox": {"allow_read": ["x"]}}, {}, "sandbox.allow_read.0: Value error, must be absolute or begin with ~"),
        ({"sandbox": {"allow_exec": []}}, {}, "sandbox.allow_exec: "),
        ({"terminal": "remote"}, {}, "terminal: Input should be 'local' or 'client'"),
        ({"executor": "sandbox", "terminal": "client"}, {}, 'would run commands outside of executor = "sandbox"'),
        (
            {"permission": {"allow": ["git status", "a | b"]}},
            {},
            "permission.allow.1: Value error, must be the first words of a command",
        ),
        ({"permission": {"allow": ["sudo ls"]}}, {}, "permission.allow.0: Value error, would allow every command"),
        ({"permission": {"deny": ["a 'b'"]}}, {}, "permission.deny.0: Value error, must be the first words"),
        ({"unstable": {"fork": "true"}}, {}, "unstable.fork: Input should be a valid boolean"),
        (
            {},
            {"DSH_PERMISSION_MODE": "yolo"},
            "environment: DSH_PERMISSION_MODE: Input should be 'read-only', 'ask', 'auto-edit' or 'full'",
        ),
        ({}, {"DEEPSEEK_BASE_URL": "localhost:80"}, "environment: DEEPSEEK_BASE_URL: String should match"),
        ({}, {"DSH_SNAPSHOT": "replay"}, "environment: snapshot.DSH_SNAPSHOT_FILE: Field required"),
        ({}, {"DSH_SNAPSHOT": "x", "DSH_SNAPSHOT_FILE": "/f"}, "environment: snapshot.DSH_SNAPSHOT: Input should be"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_place(table, environment, says):
    with pytest.raises(SettingsError) as caught:
        settings(table, **environment)
    assert says in str(caught.value)


def test_a_file_that_could_not_be_read_is_named():
    with pytest.raises(SettingsError, match=r"configuration file /c\.toml: broken"):
        load_settings(RawConfig("/c.toml", {}, "broken"), Flags(), {})


def test_a_key_shows_in_no_repr_and_in_no_error():
    providers = {"deepseek": {"key": "sk-planted"}}
    assert "sk-planted" not in repr(settings({"providers": providers}))
    with pytest.raises(SettingsError) as caught:
        settings({"providers": {"deepseek": {"key": ["sk-planted"]}}})
    assert "sk-planted" not in str(caught.value)
