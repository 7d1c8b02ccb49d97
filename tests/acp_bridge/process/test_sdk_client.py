"""The official Python SDK's client drives the console script: what an editor built on it will meet."""

import os

import anyio
import pytest
from acp import text_block

from acp_bridge.testing.model_server import model_server
from tests.support import sdk_story, typescript_sdk
from tests.support.agent_process import LIMIT, agent_home
from tests.support.bash_calls import bash_call, done
from tests.support.sdk_client import sdk_client
from tests.support.sdk_story_client import tell_the_story


async def test_the_official_client_prompts_runs_a_command_cancels_and_loads_in_a_new_process(tmp_path):
    endless = {"stream": [{"text": ["still going"]}, {"silence": True}]}
    script = [
        {"reasoning": ["hm"], "text": ["hello ", "there"]},
        bash_call("echo from bash"),
        done("it ran"),
        endless,
        done("after the cancel"),
        done("after the load"),
    ]
    async with model_server(script) as server:
        home = agent_home(tmp_path, base_url=server.base_url)

        async def prompt(connection, session, text):
            with anyio.fail_after(LIMIT):
                answer = await connection.prompt(session_id=session, prompt=[text_block(text)])
            return answer.stop_reason

        async with sdk_client(home) as (editor, connection, process):
            new = await connection.new_session(cwd=home.cwd, mcp_servers=[])
            session = new.session_id
            assert new.modes.current_mode_id == "ask"
            assert await prompt(connection, session, "hello") == "end_turn"
            assert editor.text() == "hello there"
            assert editor.text("agent_thought_chunk") == "hm"

            assert await prompt(connection, session, "run it") == "end_turn"
            (card,) = editor.of_kind("tool_call")
            assert (card.title, card.kind, editor.asked[0].tool_call_id) == (
                "echo from bash",
                "execute",
                card.tool_call_id,
            )
            assert editor.of_kind("tool_call_update")[-1].status == "completed"
            assert editor.text().endswith("it ran")

            async with anyio.create_task_group() as tasks:

                async def cancel_once_it_streams():
                    with anyio.fail_after(LIMIT):
                        while not editor.text().endswith("still going"):
                            editor.arrived.clear()
                            await editor.arrived.wait()
                    await connection.cancel(session_id=session)

                tasks.start_soon(cancel_once_it_streams)
                assert await prompt(connection, session, "go on") == "cancelled"
            assert await prompt(connection, session, "and now") == "end_turn"
            shown = editor.text()
        assert process.returncode == 0

        async with sdk_client(home) as (editor, connection, process):
            await connection.load_session(cwd=home.cwd, session_id=session, mcp_servers=[])
            assert editor.text() == shown
            assert editor.text("user_message_chunk") == "hellorun itgo onand now"
            assert [card.title for card in editor.of_kind("tool_call")] == ["echo from bash"]
            assert await prompt(connection, session, "once more") == "end_turn"
            assert editor.text().endswith("after the load")
        assert process.returncode == 0
    assert home.processes() == []


@pytest.mark.parametrize("language", ["python", "typescript"])
async def test_the_official_client_is_asked_reads_writes_opens_terminals_chooses_lists_loads_and_resumes(
    tmp_path, language
):
    module = typescript_sdk.typescript_sdk() if language == "typescript" else None
    async with model_server(sdk_story.script()) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        home.write_config(sdk_story.CONFIG)
        sdk_story.prepare(home.cwd)
        told = await (typescript_sdk.tell_the_story(home, module) if module else tell_the_story(home))
        sent = [str(request.body["messages"]) for request in server.requests]
    assert told == sdk_story.expected(home.cwd)
    assert os.listdir(home.cwd) == ["todo.txt"], "what was refused has not happened, and terminals were the editor's"
    assert sdk_story.UNSAVED.strip() in sent[7]
    assert sdk_story.TERMINAL_OUTPUT.strip() in sent[9]
    assert home.processes() == []
