"""`dsh-acp-agent login` and `logout` as people and editors run them, and the agent that lives from what they store."""

import io
import os
import pty
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from acp_bridge.composition.signing_in import sign_in_or_out
from acp_bridge.config_file import Flags
from acp_bridge.testing.model_server import model_server
from tests.support.agent_process import agent, agent_home
from tests.support.bash_calls import done
from tests.support.official import agent_command
from tests.support.processes import ended

pytestmark = pytest.mark.usefixtures("measured")

STORED = "sk-stored-0123456789"


def home_of_a_dock(root, **env):
    """What an editor that was started from a dock has: nothing of the shell's. The keyring there works for nobody."""
    broken = root / "packages" / "keyring"
    broken.mkdir(parents=True)
    (broken / "__init__.py").touch()
    (broken / "__main__.py").write_text("raise SystemExit('it is locked')")
    home = agent_home(root, key=None, PYTHONPATH=str(broken.parent), **env)
    for name in ("LANG", "LC_ALL", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        home.env.pop(name, None)
    return home


async def command(home, *argv, given=b""):
    """(exit code, stdout, stderr) of the console script with `given` on its stdin."""
    result = await anyio.run_process([*agent_command(), *argv], input=given, check=False, env=home.env)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


async def test_an_agent_without_any_environment_works_with_the_key_that_login_has_stored(tmp_path):
    answers = iter([done("accepted"), done("hello"), done("again")])
    async with model_server(lambda _body: next(answers)) as server:
        home = home_of_a_dock(tmp_path, DEEPSEEK_BASE_URL=server.base_url)
        code, out, err = await command(home, "--model", "x", "login", given=f"{STORED}\n".encode())
        assert (code, out) == (0, "")
        assert "deepseek accepts the key" in err
        assert "the system keyring cannot be used: it is locked" in err
        assert STORED not in err
        assert [path for path, data in home.written() if STORED.encode() in data] == [
            tmp_path / "home" / ".config" / "dsh-acp-agent" / "credentials.json"
        ]
        async with agent(home) as editor:
            methods = (await editor.initialize(auth={"terminal": True}))["authMethods"]
            assert [method["id"] for method in methods] == ["api-key", "login"]
            session = await editor.new_session()
            assert await editor.prompt(session, f"my key is {STORED}") == "end_turn"
            assert (await command(home, "logout"))[0] == 0
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
            refused = await editor.error("session/prompt", **prompt)
            assert (refused["code"], refused["data"]["methods"]) == (-32000, ["api-key", "login"])
        assert [request.headers.get("authorization") for request in server.requests if request.method == "POST"] == [
            "present"
        ] * 2
    assert [path for path, data in home.written() if STORED.encode() in data] == []
    assert STORED.encode() not in editor.raw_out


def started(words, home):
    return subprocess.Popen(words, env=home.env, start_new_session=True)


async def test_in_a_terminal_the_key_is_not_shown_and_ctrl_c_at_a_question_leaves_without_a_word(tmp_path):
    home = home_of_a_dock(tmp_path, DEEPSEEK_BASE_URL="http://127.0.0.1:1")
    ours, theirs = pty.openpty()
    # whoever leads a session and opens a terminal is controlled by it
    process = started(["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs), *agent_command(), "login"], home)
    seen = b""

    async def until(text):
        nonlocal seen
        with anyio.fail_after(60):
            while text not in seen:
                await anyio.wait_readable(ours)
                seen += os.read(ours, 4096)

    try:
        await until(b"(what you type is not shown): ")
        os.write(ours, STORED.encode() + b"\n")
        await until(b"Store the key all the same, unchecked? [y/N] ")
        os.write(ours, b"\x03")
        with anyio.fail_after(60):
            await ended(process.pid)
        assert process.wait() == 130
        await until(b"[y/N] ^C")
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"cannot reach http://127.0.0.1:1" in seen
    assert STORED.encode() not in seen
    assert b"Traceback" not in seen
    assert [path for path, data in home.written() if STORED.encode() in data] == []


def in_process(monkeypatch, capsys, word, *argv, config="", environment=None, given=b""):
    """(exit code, stdout, stderr) of the command with this `config`, and `given` on stdin."""
    home = Path(os.environ["HOME"])
    (home / "config.toml").write_text(config)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    variables = {"DSH_CONFIG": str(home / "config.toml"), **(environment or {})}
    code = sign_in_or_out(word, Flags(), list(argv), variables)
    return (code, *capsys.readouterr())


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`in_process`, in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return partial(in_process, monkeypatch, capsys)


PROVIDER = """
[providers.mine]
base_url = "http://127.0.0.1:99999"
key_variable = "MINE"
key = "k-0123456789"
models = [{id = "m"}]
"""


@pytest.mark.parametrize(
    ("config", "argv", "says"),
    [
        ("", ["--provider", "nope"], "there is no provider 'nope'; the configuration knows deepseek"),
        ("[providers\n", [], "config.toml: "),
    ],
)
def test_what_cannot_be_understood_is_named(run, config, argv, says):
    code, out, err = run("login", *argv, config=config)
    assert (code, out) == (2, "")
    assert says in err


def test_the_status_names_every_provider_and_a_broken_setting_elsewhere_does_not_matter(run):
    status = partial(run, "login", "--status", config=f"colour = 1\n{PROVIDER}")
    assert status() == (1, "deepseek: no key\nmine: the configuration\n", "")
    chosen = {"DSH_MODEL": "mine/m", "DSH_PERMISSION_MODE": "yolo", "MINE": "k"}
    assert status(environment=chosen) == (0, "mine: the environment (MINE)\ndeepseek: no key\n", "")


def test_a_configuration_may_be_named_behind_the_word_and_one_provider_shown_alone(run, tmp_path):
    (tmp_path / "other.toml").write_text(PROVIDER)
    asked = ["--config", str(tmp_path / "other.toml"), "--provider", "mine", "--status"]
    assert run("login", *asked)[:2] == (0, "mine: the configuration\n")


def test_a_key_for_an_address_that_is_none_cannot_be_checked(run):
    code, _out, err = run("login", "--provider", "mine", config=PROVIDER, given=b"sk-0123456789\n")
    assert code == 3
    assert "is no valid address" in err


def test_a_logout_removes_what_is_stored_for_one_provider_or_for_all(run):
    assert run("logout") == (0, "", "no key of deepseek is stored\n")
    assert run("logout", "--all") == (0, "", "")
