"""Keys of the environment: no command, no frame and no file ever holds one."""

import base64
import json
from urllib.parse import quote

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


KEYS = {
    "LOCAL_PASS": "lp/1a2b3c4d5e6f+second",
    "providers.spare.key": "ck/5566778899+configured",
    "MY_SERVICE_TOKEN": 'st"0192837465aa\\third é',
}
PLANTED_CONFIG = """
model = "local"
[providers.local]
base_url = "{url}"
key_variable = "LOCAL_PASS"
[[providers.local.models]]
id = "m"
[providers.spare]
base_url = "{url}"
key = "{key}"
[[providers.spare.models]]
id = "m"
"""


def forms(value):
    """How `value` may be printed; of base64 the part that does not depend on its neighbours."""
    data = value.encode()
    found = {value, data.hex(), data.hex().upper(), quote(value), quote(value, safe=""), json.dumps(value)[1:-1]}
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"x" * before + data).decode()
            found.add(whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6])
    return (
        found
        | {json.dumps(form)[1:-1] for form in found}
        | {json.dumps(form, ensure_ascii=False)[1:-1] for form in found}
    )


def leaks(data):
    """Which secrets stand in `data`, in whatever form."""
    return sorted({f"{name}: {form}" for name, value in KEYS.items() for form in forms(value) if form.encode() in data})


def in_deltas(text, size):
    return {"text": [text[at : at + size] for at in range(0, len(text), size)]}


def printing(value):
    """Commands that print a secret: whole, encoded, in single writes, with colour inside, into a spill file."""
    half = len(value) // 2
    word = "'" + value.replace("'", "'\\''") + "'"
    return [
        f"printf '%s\\n' {word}; printf '%s\\n' {word} >&2",
        f"printf %s {word} | base64 -w0; echo; printf x%s {word} | base64 -w0; echo; printf xy%s {word} | base64 -w0",
        f"printf %s {word} | od -An -v -tx1 | tr -d ' \\n'",
        f"printf '%s\\n' {quote(value)} {quote(value, safe='')}",
        f'v={word}; for ((i=0; i<${{#v}}; i++)); do printf %s "${{v:i:1}}"; done',
        f'v={word}; printf \'%s\\033[6n%s\' "${{v:0:{half}}}" "${{v:{half}}}"',
        f"for i in $(seq 3000); do printf 'line %s: %s\\n' $i {word}; done",
        f"no-such-program {word}",
    ]


async def test_a_planted_secret_is_in_no_byte_that_the_process_writes(tmp_path):
    commands = [command for value in KEYS.values() for command in printing(value)]
    texts = [f"It is {form}." for value in KEYS.values() for form in sorted(forms(value))]
    script = []
    for number, command in enumerate(commands):
        raw = json.dumps({"command": command, "description": f"{command} shows it"})
        pieces = [raw[at : at + 5] for at in range(0, len(raw), 5)]
        calls = [{"id": f"c{number}", "name": "bash", "arguments": pieces}]
        script += [
            {"reasoning": [command[at : at + 4] for at in range(0, len(command), 4)], "tool_calls": calls},
            done(),
        ]
    script += [in_deltas(text, size % 9 + 1) for size, text in enumerate(texts)]
    script += [{"status": 401, "body": {"error": {"message": f"invalid key: {value}"}}} for value in KEYS.values()]
    background = bash_call(f"sleep 600 & echo {KEYS['LOCAL_PASS']}", run_in_background=True)
    script += [background, done(), bash_call("sleep 600 & true", description=KEYS["LOCAL_PASS"]), done()]
    async with model_server(script) as server:
        home = agent_home(tmp_path, key=None, **{name: value for name, value in KEYS.items() if "." not in name})
        key = KEYS["providers.spare.key"]
        home.write_config(PLANTED_CONFIG.format(url=server.base_url, key=key))
        async with agent(home, conversation=False) as editor:
            await editor.initialize(terminal=True)
            session = await editor.new_session()
            for _ in commands:
                assert await editor.prompt(session, "run it") == "end_turn"
            for text in texts:
                assert await editor.prompt(session, text) == "end_turn"
            for value in KEYS.values():
                error = await editor.answer(await editor.send_prompt(session, f"again: {value}"))
                assert "invalid key: [" in error["error"]["message"]
                await editor.error(f"no/{value}")
                await editor.error("session/load", sessionId=value, cwd=home.cwd, mcpServers=[])
                await editor.prompt(session, f"/status {value}")
            assert await editor.prompt(session, "in the background") == "end_turn"
            assert await editor.prompt(session, "leave something behind") == "end_turn"
            await editor.prompt(session, "/status")
            await editor.load(session)
        # each request says again what those before it said: once is enough
        asked = {
            json.dumps(part)
            for request in server.requests
            for part in [*request.body["messages"], {**request.body, "messages": []}]
        }
    assert leaks("\n".join(asked).encode()) == []
    assert leaks(bytes(editor.raw_out)) == []
    written = {path: data for path, data in home.written() if path != home.config}
    assert {path: leaks(data) for path, data in written.items() if leaks(data)} == {}
    log = next(data for path, data in written.items() if path.name == f"{session}.jsonl")
    for name in KEYS:
        assert log.count(f"[redacted:{name}]".encode()) > 20
    assert sum("spill" in path.parts for path in written) >= len(KEYS)
    # and what was no secret came through
    assert "[redacted:LOCAL_PASS]: command not found" not in editor.text()
    assert b"no-such-program [redacted:LOCAL_PASS]" in bytes(editor.raw_out).replace(b"'", b"")
