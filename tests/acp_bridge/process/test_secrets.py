"""Keys of the environment: no command, no frame and no file ever holds one."""

import anyio

from acp_bridge.testing.model_server import model_server
from tests.support.agent_process import agent, agent_home
from tests.support.bash_calls import bash_call, done

PLANTED = {
    "DEEPSEEK_API_KEY": "sk-9f8e7d6c5b4a-first",
    "LOCAL_PASS": "lp-1a2b3c4d5e6f-second",
    "MY_SERVICE_TOKEN": "st-0192837465aa-third",
    "COPY_OF_IT": "Bearer lp-1a2b3c4d5e6f-second",
}
SPIES = [
    "env; set; export -p",
    "tr '\\0' '\\n' < /proc/$PPID/environ",
    "tr '\\0' '\\n' < /proc/$AGENT/environ",
    # every process above this one, up to and including the agent
    """p=$$; while [ "$p" -gt 1 ]; do tr "\\0" "\\n" < /proc/$p/environ; [ "$p" = $AGENT ] && break
    p=$(awk '/^PPid/{print $2}' /proc/$p/status); done; echo end of the line $p""",
]
CONFIG = """
model = "local"
env.allow = ["LOCAL_PASS"]
[providers.local]
base_url = "{url}"
key_variable = "LOCAL_PASS"
[[providers.local.models]]
id = "m"
"""


def found(data):
    """Which of the planted values stand in `data`."""
    values = {value.removeprefix("Bearer ") for value in PLANTED.values()}
    return sorted(value for value in values if value.encode() in data)


async def test_a_planted_key_is_in_no_command_frame_log_file_or_error(tmp_path):
    agents = []
    echo = f"invalid key: {PLANTED['LOCAL_PASS']}"
    ends = iter(
        [
            {"status": 401, "body": {"error": {"message": echo, "type": "authentication_error"}}},
            {"status": 400, "body": echo},
            {"stream": [{"text": ["x"]}, {"event": {"error": {"message": echo}}}]},
        ]
    )
    spies = iter(SPIES)

    def answers(body):
        last = body["messages"][-1]
        if last["role"] == "tool":
            return done()
        if last["content"] == "spy":
            return bash_call(f"AGENT={agents[-1].pid}; {next(spies)}")
        return next(ends)

    async with model_server(answers) as server:
        home = agent_home(tmp_path, **PLANTED, DSH_PERMISSION_MODE="full")
        home.write_config(CONFIG.format(url=server.base_url))
        async with agent(home) as editor:
            agents.append(editor)
            await editor.initialize(terminal=True)
            session = await editor.new_session()
            environ = await anyio.Path("/proc", str(editor.pid), "environ").read_bytes()
            assert b"MY_SERVICE_TOKEN=" in environ
            assert found(environ) == []
            for _ in SPIES:
                assert await editor.prompt(session, "spy") == "end_turn"
            told = [request.body["messages"][-1]["content"] for request in server.requests[1::2]]
            for _ in range(3):
                error = await editor.answer(await editor.send_prompt(session, "fail"))
                assert error["error"]["code"] == -32603
            await editor.prompt(session, "/status")
            assert all(request.headers["authorization"] == "present" for request in server.requests)
    # the spies did see something
    assert "NO_COLOR=1" in told[0]
    assert all(f"HOME={home.env['HOME']}" in text for text in told)
    assert f"end of the line {editor.pid}" in told[-1]
    assert found(repr([request.body for request in server.requests]).encode()) == []
    assert found(bytes(editor.raw_out)) == []
    written = {path: found(data) for path, data in home.written() if path != home.config}
    assert {path.name for path in written} >= {"agent.log", "stderr-0", f"{session}.jsonl"}
    assert {path: values for path, values in written.items() if values} == {}


async def test_a_key_of_the_config_file_stays_in_that_file(tmp_path):
    key = "ck-5566778899-configured"
    async with model_server([bash_call('env; echo "$SAME"'), done(), {"status": 401, "body": key}]) as server:
        home = agent_home(tmp_path, key=None, base_url=server.base_url, SAME=key, DSH_PERMISSION_MODE="full")
        home.write_config(f'[providers.deepseek]\nkey = "{key}"\n')
        async with agent(home) as editor:
            await editor.initialize()
            session = await editor.new_session()
            assert await editor.prompt(session) == "end_turn"
            assert "error" in await editor.answer(await editor.send_prompt(session))
        assert key not in repr([request.body for request in server.requests])
    assert key.encode() not in editor.raw_out
    assert [path for path, data in home.written() if key.encode() in data] == [home.config]
