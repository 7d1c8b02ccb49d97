"""Where the sessions lie: as for the agent, without a key, and whatever else is wrong with the configuration."""

from pathlib import Path

import pytest

from acp_bridge.cli.sessions import sessions_root
from acp_bridge.config_file import RawConfig
from acp_bridge.settings import SettingsError
from tests.support.session_commands import CommandWorld
from tests.support.session_turns import text_turn

DEFAULT = "/state/dsh-acp-agent/sessions"
VARIABLE = "DSH_SNAPSHOT_SESSIONS_ROOT"


@pytest.mark.parametrize(
    ("table", "problem", "environment", "root"),
    [
        ({}, None, {}, DEFAULT),
        ({"sessions": {"root": "/kept"}}, None, {}, "/kept"),
        ({"sessions": {"root": "/kept"}}, None, {VARIABLE: "/named"}, "/named"),
        ({"sessions": {"root": "/kept"}, "providers": {"x": 1}, "model": 7, "odd": 1}, None, {}, "/kept"),
        ({"sessions": 7}, None, {VARIABLE: "/named"}, "/named"),
        ({}, "broken", {VARIABLE: "/named"}, "/named"),
        (
            {},
            None,
            {VARIABLE: "", "DSH_SNAPSHOT": "nonsense", "DSH_PERMISSION_MODE": "odd"},
            "/state/dsh-acp-agent/sessions",
        ),
    ],
)
def test_the_root_is_known_however_broken_the_rest_is(monkeypatch, table, problem, environment, root):
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert sessions_root(RawConfig("/c.toml", table, problem), environment) == Path(root)


@pytest.mark.parametrize(
    ("table", "problem"), [({"sessions": {"root": 7}}, None), ({"sessions": 7}, None), ({}, "broken")]
)
def test_a_root_that_cannot_be_known_is_said(table, problem):
    with pytest.raises(SettingsError, match=r"configuration file /c.toml"):
        sessions_root(RawConfig("/c.toml", table, problem), {})


def test_the_configuration_names_the_root_and_the_keys_that_are_taken_out(tmp_path):
    world = CommandWorld(tmp_path / "kept")
    world.write("s", text_turn(1, reply="value-of-the-key-42"))
    del world.environment["DSH_SNAPSHOT_SESSIONS_ROOT"]
    config = tmp_path / "c.toml"
    config.write_text(f'model = 1\nsessions.root = "{tmp_path}/kept"\nproviders.mine.key = "value-of-the-key-42"\n')
    ran = world.run("--config", str(config), "export", "s")
    assert ran.code == 0
    assert ran.err == "taken out: providers.mine.key (2×)\n"
    config.write_text("[")
    ran = world.run("list", "--config", str(config))
    assert ran.code == 1
    assert ran.err.startswith(f"dsh-acp-agent sessions: configuration file {config}: ")
    assert ran.err.count("\n") == 1
