"""The real agent while the kernel refuses every byte of a file: it says so, goes on, and loses nothing."""

import resource

from acp_bridge.testing.model_server import model_server
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from tests.support.agent_process import agent, agent_home
from tests.support.bash_calls import bash_call, done
from tests.support.crash_facts import assert_repaired


def limit_files(pid: int, size: int) -> None:
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


async def test_a_full_disk_is_told_runs_no_tool_and_is_made_up_for(tmp_path):
    script = [done("one"), bash_call("touch ran"), done("three")]
    async with model_server(script) as server:
        home = agent_home(tmp_path, base_url=server.base_url, DSH_PERMISSION_MODE="full")
        async with agent(home) as editor:
            await editor.initialize()
            session = await editor.new_session()
            assert await editor.prompt(session, "first") == "end_turn"
            limit_files(editor.pid, 0)
            answer = await editor.answer(await editor.send_prompt(session, "second"))
            assert answer["error"]["data"]["reason"] == "persistence"
            assert editor.text().count("This conversation may be lost") == 1
            assert "File too large" in editor.text()
            limit_files(editor.pid, resource.RLIM_INFINITY)
            assert await editor.prompt(session, "third") == "end_turn"
            assert editor.text().count("This conversation may be lost") == 1
    assert not (tmp_path / "work" / "ran").exists()
    events = []
    opened = await JsonlSessionStore(home.sessions, VirtualRuntime()).load(session, home.cwd, on_event=events.append)
    await opened.journal.close()
    assert_repaired(events)
    said = [event.data["content"][0]["text"] for event in events if event.type == "user/message"]
    assert said == ["first", "second", "third"]
