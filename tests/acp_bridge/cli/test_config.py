"""`dsh-acp-agent config`: every setting, its value, and where that comes from."""

import io
import json
import subprocess

import pytest

from acp_bridge.cli.config import run
from acp_bridge.cli.parts import Streams
from acp_bridge.credential_file import CredentialFile, Entry, credentials_path
from tests.support.official import agent_command

CONFIG = """
model = "mine"
[permission]
mode = "auto-edit"
[providers.mine]
base_url = "http://mine/v1"
key_variable = "MINE_KEY"
key = "sk-planted-in-the-file"
[[providers.mine.models]]
id = "llama"
context = 8000
[providers.open]
base_url = "http://open/v1"
[[providers.open.models]]
id = "m"
"""


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """(exit code, what was written, what was said) of a `config` with the file above, in an empty project."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "project").mkdir()

    def show(*argv, **environment):
        streams = Streams(io.StringIO(), io.StringIO(), io.StringIO())
        place = ["--cwd", str(tmp_path / "project")]
        environment = {"DSH_CONFIG": str(tmp_path / "config.toml")} | environment
        code = run([*place, *argv], environment, streams)
        return code, streams.out.getvalue(), streams.err.getvalue()

    return show


def rows(out):
    return {row["key"]: (row["value"], row["origin"]) for row in json.loads(out)["settings"]}


def test_each_value_says_where_it_comes_from(shown, tmp_path):
    found = rows(shown("--json", DEEPSEEK_BASE_URL="http://env")[1])
    assert found["model"] == ("mine/llama", "user file")
    assert found["permission.mode"] == ("auto-edit", "user file")
    assert found["executor"] == ("local", "default")
    assert found["thinking"] == (None, "default")
    assert found["providers.mine.base_url"] == ("http://mine/v1", "user file")
    assert found["providers.mine.models"] == ([{"id": "llama", "context": 8000}], "user file")
    assert found["providers.deepseek.base_url"] == ("http://env", "environment DEEPSEEK_BASE_URL")
    assert found["sessions.root"] == (str(tmp_path / "home/.local/state/dsh-acp-agent/sessions"), "default")
    assert len(found) == len(json.loads(shown("--json")[1])["settings"]), "no setting stands there twice"


def test_flags_and_the_environment_are_named(shown):
    found = rows(shown("--json", "--model", "deepseek-v4-pro", DSH_PERMISSION_MODE="full")[1])
    assert found["model"] == ("deepseek/deepseek-v4-pro", "flag --model")
    assert found["permission.mode"] == ("full", "environment DSH_PERMISSION_MODE")
    assert rows(shown("--json", "--permission-mode", "ask")[1])["permission.mode"] == ("ask", "flag --permission-mode")


def test_of_a_key_only_whether_it_is_set_is_told(shown):
    assert rows(shown("--json")[1])["providers.deepseek.key"] == ("not set", "default")
    CredentialFile(credentials_path()).change(lambda _entries: {"deepseek": Entry("sk-planted-by-login")})
    assert rows(shown("--json")[1])["providers.deepseek.key"] == ("set", "login")
    found = rows(shown("--json", DEEPSEEK_API_KEY="sk-planted-in-the-environment")[1])
    assert found["providers.mine.key"] == ("set", "user file")
    assert found["providers.open.key"] == ("not set", "default")
    assert found["providers.deepseek.key"] == ("set", "environment DEEPSEEK_API_KEY")
    assert "sk-planted" not in "".join(shown()[1:]) + shown("--json")[1]


def test_a_key_that_login_left_in_the_system_keyring_is_set(shown):
    CredentialFile(credentials_path()).change(lambda _entries: {"deepseek": Entry(ticket="t")})
    assert rows(shown("--json")[1])["providers.deepseek.key"] == ("set", "login")


def test_a_project_is_shown_with_what_it_sets_and_what_it_may_not(shown, tmp_path):
    path = tmp_path / "project" / ".dsh-acp-agent.toml"
    path.write_text('model = "deepseek-v4-pro"\nenv.allow = ["X"]\n')
    code, out, said = shown("--json")
    assert (code, said) == (0, "")
    assert rows(out)["model"] == ("deepseek-v4-pro", "project file")
    assert json.loads(out)["project_file"] == str(path)
    assert "env.allow" in json.loads(out)["problems"][0]
    _code, out, said = shown()
    assert f"# {path}\n" in out
    assert 'model = "deepseek-v4-pro" # project file\n' in out
    assert "env.allow" in said


def test_without_a_file_that_is_said(shown, tmp_path):
    nothing = str(tmp_path / "nothing.toml")
    code, out, said = shown("--config", nothing)
    assert (code, out) == (1, "")
    assert "the file does not exist" in said
    code, out, _said = shown(DSH_CONFIG="")
    assert code == 0
    assert out.startswith(f"# {tmp_path}/home/.config/dsh-acp-agent/config.toml (there is none)\nmodel = ")


def test_a_configuration_that_cannot_be_used_names_the_nearest_setting(shown, tmp_path):
    (tmp_path / "config.toml").write_text("executer = 'local'")
    code, _out, said = shown()
    assert code == 1
    assert "executer: there is no such setting; did you mean 'executor'?" in said


def test_the_console_script_has_it(tmp_path):
    ran = subprocess.run(
        [*agent_command(), "config", "--json", "--cwd", str(tmp_path)], capture_output=True, timeout=30, check=True
    )
    assert "model" in {row["key"] for row in json.loads(ran.stdout)["settings"]}
