"""`executor = "sandbox"` through the wire: the configuration chooses it, and nothing runs where it cannot be had."""

import pytest

from acp_bridge.testing.model_server import model_server
from tests.support.agent_process import agent, agent_home
from tests.support.bash_calls import bash_call, done
from tests.support.bubblewrap import needs_bwrap

pytestmark = pytest.mark.usefixtures("measured")

CONFIG = """
executor = "sandbox"
[sandbox]
allow_read = ["~/.gitconfig"]
"""


async def told_after(home, editor, server):
    """What the model is told of the command of one turn."""
    await editor.initialize()
    session = await editor.new_session()
    assert await editor.prompt(session) == "end_turn"
    return server.requests[-1].body["messages"][-1]["content"]


@needs_bwrap
async def test_a_configured_sandbox_shows_the_sessions_directory_and_hides_the_home(tmp_path):
    home = agent_home(tmp_path, DSH_PERMISSION_MODE="full")
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n")
    (tmp_path / "home" / ".netrc").write_text("password\n")
    command = "echo made > out; ls -A ~; cat ~/.gitconfig; ls ~/../state; echo end"
    async with model_server([bash_call(command), done()]) as server:
        home.env["DEEPSEEK_BASE_URL"] = server.base_url
        home.write_config(CONFIG)
        async with agent(home) as editor:
            told = await told_after(home, editor, server)
    assert told.startswith(".gitconfig\n[user]\nend\n")
    assert "state': No such file" in told
    assert home.read("out") == "made\n"


async def test_without_bubblewrap_the_model_is_told_and_nothing_runs(tmp_path):
    home = agent_home(tmp_path, DSH_PERMISSION_MODE="full", PATH=str(tmp_path))
    async with model_server([bash_call("echo made > out"), done()]) as server:
        home.env["DEEPSEEK_BASE_URL"] = server.base_url
        home.write_config(CONFIG)
        async with agent(home) as editor:
            told = await told_after(home, editor, server)
    assert "the sandbox cannot start: 'bwrap': No such file or directory; install bubblewrap" in told
    assert not (tmp_path / "work" / "out").exists()
