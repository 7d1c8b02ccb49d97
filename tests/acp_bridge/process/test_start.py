"""How the console script starts: what it imports, what it reads, what it says without a key or a usable config."""

import os
import pty
import subprocess

import anyio
import pytest

import acp_bridge
from acp_bridge.permission.ledger import Ledger
from acp_bridge.testing.model_server import model_server
from tests.support.agent_process import agent, agent_home, script
from tests.support.bash_calls import bash_call, done
from tests.support.official import agent_command

HEAVY = {
    "pydantic",
    "pydantic_core",
    "anyio",
    "structlog",
    "asyncio",
    "httptools",
    "jsonrpc_base",
    "logging",
    "dataclasses",
    "argparse",
}
SERVER_CONFIG = """
model = "local/big"

[providers.local]
base_url = "{url}/v1"
key_variable = "LOCAL_MODEL_KEY"

[[providers.local.models]]
id = "small"
context = 1000

[[providers.local.models]]
id = "big"
context = 2000
"""


async def run(*argv, **options):
    """(exit code, stdout, stderr) of the console script with nothing on its stdin."""
    result = await anyio.run_process([*agent_command(), *argv], check=False, stdin=subprocess.DEVNULL, **options)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


async def test_initialize_and_the_session_behind_it_are_answered_before_anything_heavy_is_imported(tmp_path):
    home = agent_home(tmp_path, IMPORT_PROBE=str(tmp_path / "imports"))

    def imported():
        return [set(line.split()) for line in home.read(tmp_path / "imports").splitlines()]

    async with agent(home, command=script("import_probe.py")) as editor:
        asked = [await editor.request("initialize", protocolVersion=1)]
        asked.append(await editor.request("session/new", cwd=home.cwd, mcpServers=[]))
        for request in asked:
            assert "result" in await editor.answer(request)
        assert [each & HEAVY for each in imported()[:2]] == [set(), set()]
        await editor.update("available_commands_update")
        # the client has what it asked for: now everything is loaded that a first prompt needs
        assert HEAVY - imported()[-1] == {"argparse", "structlog"}


async def test_where_a_setting_has_to_be_read_http_waits_for_the_first_prompt(tmp_path):
    async with model_server([done("hello")]) as server:
        home = agent_home(tmp_path, base_url=server.base_url, IMPORT_PROBE=str(tmp_path / "imports"))
        home.write_config('[permission]\nmode = "full"\n')
        async with agent(home, command=script("import_probe.py")) as editor:
            await editor.initialize()
            session = await editor.new_session()
            await editor.update("available_commands_update")
            assert "httptools" not in home.read(tmp_path / "imports")
            assert await editor.prompt(session) == "end_turn"
            assert "httptools" in home.read(tmp_path / "imports")


async def test_without_a_key_sessions_open_and_the_first_prompt_names_the_fix(tmp_path):
    home = agent_home(tmp_path, key=None)
    async with agent(home) as editor:
        (method,) = (await editor.initialize())["authMethods"]
        assert method["id"] == "api-key"
        assert "DEEPSEEK_API_KEY" in method["description"]
        session = await editor.new_session()
        fix = (
            "run `dsh-acp-agent login` in a terminal, or set DEEPSEEK_API_KEY in the environment that your editor "
            "gives to the agent and restart it"
        )
        refused = {
            "code": -32000,
            "message": f"Authentication required: {fix}",
            "data": {"authRequired": True, "methods": ["api-key"], "details": f"Authentication required: {fix}"},
        }
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
        assert await editor.error("session/prompt", **prompt) == refused
        assert await editor.error("authenticate", methodId="api-key") == refused
        assert await editor.prompt(session, "/status") == "end_turn"
    assert [path for path, _ in home.written() if session in path.name and b"hello" in path.read_bytes()] == []


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('model = "x"\n[providers\n', "(at line 2, column 11)"),
        ("colour = 1\n", "colour: there is no such setting"),
        (
            'permission = {mode = "never"}\n',
            "permission.mode: Input should be 'read-only', 'ask', 'auto-edit' or 'full'",
        ),
        ("[providers.mine]\n", "[providers.mine] needs base_url"),
        ('[providers.mine]\nbase_url = "ftp://x"\n', "providers.mine.base_url: "),
        ("providers = 3\n", "providers: "),
    ],
)
async def test_a_broken_config_never_stops_initialize_and_is_named_when_a_session_is_wanted(tmp_path, config, says):
    home = agent_home(tmp_path)
    path = home.write_config(config)
    async with agent(home) as editor:
        assert (await editor.initialize())["protocolVersion"] == 1
        for method in ("session/new", "session/load"):
            error = await editor.error(method, sessionId="s", cwd=home.cwd, mcpServers=[])
            assert error["code"] == -32603
            assert str(path) in error["message"]
            assert says in error["message"]
            assert error["data"]["reason"] == "config"


@pytest.mark.parametrize("variable", ["--config", "DSH_CONFIG"])
async def test_a_config_that_was_asked_for_by_name_must_exist(tmp_path, variable):
    home = agent_home(tmp_path)
    argv, env = (["--config", "gone.toml"], {}) if variable == "--config" else ([], {variable: "gone.toml"})
    async with agent(home, *argv, env=env) as editor:
        await editor.initialize()
        error = await editor.error("session/new", cwd=home.cwd, mcpServers=[])
        assert error["message"] == f"configuration file {home.cwd}/gone.toml: the file does not exist"


async def test_a_configured_provider_is_used_with_its_own_url_key_and_models(tmp_path):
    async with model_server([done("one"), done("two")]) as server:
        home = agent_home(tmp_path, key=None, LOCAL_MODEL_KEY="local-secret-1")
        home.write_config(SERVER_CONFIG.format(url=server.base_url))
        async with agent(home) as editor:
            (method,) = (await editor.initialize())["authMethods"]
            assert "LOCAL_MODEL_KEY" in method["description"]
            session = await editor.new_session()
            assert await editor.prompt(session) == "end_turn"
            await editor.call("authenticate", methodId="api-key")
            await editor.prompt(session, "/status")
            assert "local" in editor.text()
        async with agent(home, "--model", "local/small") as editor:
            await editor.initialize()
            assert await editor.prompt(await editor.new_session()) == "end_turn"
        first, second = server.requests
    assert (first.path, first.body["model"]) == ("/v1/chat/completions", "big")
    assert first.headers["authorization"] == "present"
    assert second.body["model"] == "small"


@pytest.mark.usefixtures("measured")
async def test_a_provider_without_key_variable_needs_no_key(tmp_path):
    async with model_server([done()]) as server:
        home = agent_home(tmp_path, key=None)
        text = SERVER_CONFIG.format(url=server.base_url).replace('key_variable = "LOCAL_MODEL_KEY"', "")
        home.write_config(text)
        async with agent(home, "--model", "local") as editor:
            assert (await editor.initialize())["authMethods"] == []
            assert await editor.prompt(await editor.new_session()) == "end_turn"
        (request,) = server.requests
    assert "authorization" not in request.headers
    assert request.body["model"] == "small"


async def test_a_key_in_the_config_is_used_when_the_environment_has_none(tmp_path):
    async with model_server([done()]) as server:
        home = agent_home(tmp_path, key=None, base_url=server.base_url)
        home.write_config('[providers.deepseek]\nkey = "configured-key-1"\n')
        async with agent(home) as editor:
            await editor.initialize()
            assert await editor.prompt(await editor.new_session()) == "end_turn"
        assert server.requests[0].headers["authorization"] == "present"


async def test_the_environment_wins_over_the_config_and_a_flag_over_both(tmp_path):
    asked = []

    def answers(body):
        asked.append(body["model"])
        return done()

    async with model_server(answers) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        home.write_config(
            'model = "in-file"\npermission.mode = "full"\n[providers.deepseek]\nbase_url = "http://127.0.0.1:9"\n'
        )
        rows = [
            ([], {}, "in-file", "full"),
            ([], {"DSH_MODEL": "in-env", "DSH_PERMISSION_MODE": "ask"}, "in-env", "ask"),
            (
                ["--model", "deepseek/in-flag", "--permission-mode", "full"],
                {"DSH_MODEL": "in-env", "DSH_PERMISSION_MODE": "ask"},
                "in-flag",
                "full",
            ),
        ]
        for argv, env, model, mode in rows:
            async with agent(home, *argv, env=env) as editor:
                await editor.initialize()
                new = await editor.call("session/new", cwd=home.cwd, mcpServers=[])
                assert new["modes"]["currentModeId"] == mode
                assert await editor.prompt(new["sessionId"]) == "end_turn"
            assert asked.pop() == model


async def test_the_config_says_where_sessions_lie_and_what_commands_may_see(tmp_path):
    async with model_server([bash_call('echo "$MY_TOKEN"'), done()]) as server:
        home = agent_home(tmp_path, base_url=server.base_url, MY_TOKEN="harmless-token")
        home.write_config(f'sessions.root = "{tmp_path}/elsewhere"\nenv.allow = ["MY_TOKEN"]\n')
        async with agent(home) as editor:
            await editor.initialize()
            session = await editor.new_session()
            await editor.prompt(session)
    assert [path.name for path in (tmp_path / "elsewhere").rglob("*.jsonl")] == [f"{session}.jsonl"]
    assert "harmless-token" in str(server.requests[1].body)


async def test_a_wrong_setting_of_the_environment_is_named_when_a_session_is_wanted(tmp_path):
    home = agent_home(tmp_path)
    async with agent(home, env={"DSH_PERMISSION_MODE": "yolo"}) as editor:
        await editor.initialize()
        error = await editor.error("session/new", cwd=home.cwd, mcpServers=[])
        assert "DSH_PERMISSION_MODE" in error["message"]
        assert "'auto-edit' or 'full'" in error["message"]


async def test_a_wrong_log_level_and_an_unwritable_state_directory_do_not_stop_the_agent(tmp_path):
    home = agent_home(tmp_path)
    home.touch("no-directory")
    env = {"DSH_LOG_LEVEL": "shouting", "XDG_STATE_HOME": f"{home.cwd}/no-directory"}
    async with agent(home, env=env) as editor:
        await editor.initialize()
        await editor.new_session()
    assert "no log file" in editor.stderr
    assert "SHOUTING" in editor.stderr


async def test_version_and_help_are_for_people():
    assert await run("--version") == (0, f"dsh-acp-agent {acp_bridge.VERSION}\n", "")
    code, out, err = await run("--help")
    assert (code, err) == (0, "")
    for flag in ("--config", "--model", "--permission-mode", "--version"):
        assert flag in out


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("argv", [["--turbo"], ["--permission-mode", "yolo"], ["surplus"]])
async def test_an_unknown_flag_is_refused_on_stderr(argv):
    code, out, err = await run(*argv)
    assert (code, out) == (2, "")
    assert "usage: dsh-acp-agent" in err
    assert argv[-1] in err


@pytest.mark.usefixtures("measured")
async def test_started_in_a_terminal_it_says_what_it_is_for_and_leaves_at_end_of_input(tmp_path):
    ours, theirs = pty.openpty()
    try:
        async with agent(agent_home(tmp_path), stdin=theirs) as person:
            os.write(ours, b"\x04")
            await person.exited()
    finally:
        os.close(ours)
        os.close(theirs)
    assert person.stderr.startswith("dsh-acp-agent speaks the Agent Client Protocol on stdin/stdout")
    assert person.raw_out == b""


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
async def test_closed_standard_descriptors_end_it_in_order(tmp_path, closed):
    home = agent_home(tmp_path)
    command = ["sh", "-c", f'exec "$0" {closed}', *agent_command()]
    async with agent(home, command=command, conversation=False) as editor:
        request = await editor.request("initialize", protocolVersion=1)
        if closed == "2>&-":
            await editor.answer(request)
            await editor.new_session()
    assert bool(editor.raw_out) == (closed == "2>&-")


async def test_a_regular_file_can_be_stdin(tmp_path):
    home = agent_home(tmp_path)
    lines = (
        '{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":1}}\n'
        f'{{"jsonrpc":"2.0","id":"b","method":"session/new","params":{{"cwd":"{home.cwd}","mcpServers":[]}}}}'
    )
    home.write_config("")
    (tmp_path / "input").write_text(lines)
    descriptor = os.open(tmp_path / "input", os.O_RDONLY)
    try:
        async with agent(home, stdin=descriptor, conversation=False) as editor:
            await editor.exited()
    finally:
        os.close(descriptor)
    assert [frame.get("id") for frame in editor.frames][:2] == ["a", "b"]
    assert "sessionId" in editor.frames[1]["result"]


async def test_nothing_of_the_log_goes_to_stdout_and_its_file_is_private(tmp_path):
    home = agent_home(tmp_path)
    async with agent(home, conversation=False) as editor:
        await editor.initialize()
        await editor.send_line(b"42")
        await editor.answer(None)
    (log,) = [path for path, _ in home.written() if path.name == "agent.log"]
    assert "invalid_frame" in home.read(log)
    assert "invalid_frame" in editor.stderr
    assert [oct(path.stat().st_mode & 0o777) for path in (log, log.parent, log.parent.parent)] == [
        "0o600",
        "0o700",
        "0o700",
    ]


def damage_permissions(home):
    path = Ledger(home.root / "state" / "dsh-acp-agent" / "permissions").path(os.path.realpath(home.cwd))
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_text("{")


@pytest.mark.usefixtures("measured")
async def test_saved_permissions_that_cannot_be_read_are_told_of_once(tmp_path):
    async with model_server([bash_call("true"), bash_call("true"), done()]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        damage_permissions(home)
        async with agent(home) as editor:
            await editor.initialize()
            assert await editor.prompt(await editor.new_session()) == "end_turn"
            told = [
                update for update in editor.updates() if "permissions of this project cannot be read" in str(update)
            ]
    assert len(told) == 1


@pytest.mark.usefixtures("measured")
async def test_a_conversation_is_exported_beside_what_it_is_about(tmp_path):
    async with model_server([{"text": ["It is blue."]}]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home) as editor:
            await editor.initialize()
            session = await editor.new_session()
            await editor.prompt(session)
            assert await editor.prompt(session, "/export talk.md") == "end_turn"
    assert "It is blue." in (tmp_path / "work" / "talk.md").read_text()
