"""MCP servers below the real agent: whatever ends it ends them and what they have started, with one exit in time."""

import signal
import sys

import anyio
import pytest

from acp_bridge.testing.model_server import model_server
from tests.support import mcp_server
from tests.support.agent_process import LIMIT, agent, agent_home
from tests.support.processes import all_ended, is_alive, numbers

ASKS = {"tool_calls": [{"id": "c1", "name": "s__pids", "arguments": ["{}"]}]}


def answers(body):
    return ASKS if body["messages"][-1]["role"] == "user" else {"text": ["done"]}


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("end", ["EOF", pytest.param("SIGTERM", marks=pytest.mark.long), "SIGKILL"])
async def test_the_servers_of_an_agent_and_their_children_end_with_it(tmp_path, end):
    async with model_server(answers) as model:
        home = agent_home(tmp_path, base_url=model.base_url)
        server = {"name": "s", "command": sys.executable, "args": ["-S", mcp_server.__file__, "family"], "env": []}
        async with agent(home, "--permission-mode", "full") as editor:
            await editor.initialize()
            session = await editor.new_session(mcpServers=[server])
            pids: list[int] = []
            # the first prompt waits for the server, but not as long as a busy machine may need to start it
            with anyio.fail_after(LIMIT):
                while len(pids) != 2:
                    await editor.prompt(session, "who are you?")
                    pids = numbers(home.events(session, "tool/result")[-1]["content"][0]["text"])
            assert all(map(is_alive, pids))
            if end == "EOF":
                editor.close_stdin()
            elif end == "SIGTERM":
                editor.signal(signal.SIGTERM)
            else:
                await editor.kill()
            with anyio.fail_after(LIMIT):
                await all_ended(pids)
            if end != "SIGKILL":
                await editor.exited()
