"""Every way in which it ends: exit code 0, no traceback, no process left (`agent` checks that), prompts settled."""

import signal

import anyio
import pytest

from acp_bridge.testing.model_server import model_server
from tests.support.agent_process import LIMIT, agent, agent_home, script
from tests.support.bash_calls import bash_call, done
from tests.support.official import agent_command

STUBBORN = "trap '' TERM; setsid sleep 300 & echo ready; while :; do sleep 1; done"
SILENT_STREAM = {"stream": [{"text": ["partial"]}, {"silence": True}]}
IN_FULL = ("--permission-mode", "full")


def eof(process):
    process.close_stdin()


def sigterm(process):
    process.signal(signal.SIGTERM)


def sigint(process):
    process.signal(signal.SIGINT)


endings = pytest.mark.parametrize("end", [eof, sigterm], ids=["EOF", "SIGTERM"])


async def started(editor):
    """Initialize, open a session."""
    await editor.initialize(terminal=True)
    session = await editor.new_session()
    await editor.update("available_commands_update")
    return session


async def output(editor, text):
    """Return when `text` has been shown as terminal output."""
    await editor.until(lambda frame: text in str(frame.get("params", {}).get("update", {}).get("_meta")))


async def assert_cancelled(editor, prompt):
    await editor.exited()
    assert (await editor.answer(prompt))["result"] == {"stopReason": "cancelled"}


@pytest.mark.parametrize("end", [eof, sigterm, sigint], ids=["EOF", "SIGTERM", "SIGINT"])
async def test_before_a_line_is_whole_it_just_leaves(tmp_path, end):
    async with agent(agent_home(tmp_path)) as editor:
        await editor.fill_stdin()
        end(editor)
        await editor.exited()
        assert editor.frames == []


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("end", [eof, sigterm, sigint], ids=["EOF", "SIGTERM", "SIGINT"])
async def test_right_behind_initialize_while_the_rest_is_still_imported(tmp_path, end):
    async with agent(agent_home(tmp_path)) as editor:
        await editor.initialize()
        end(editor)
        await editor.exited()


@pytest.mark.parametrize("end", [eof, sigterm, sigint], ids=["EOF", "SIGTERM", "SIGINT"])
async def test_idle(tmp_path, end):
    async with agent(agent_home(tmp_path)) as editor:
        await started(editor)
        end(editor)
        await editor.exited()


@pytest.mark.usefixtures("measured")
@endings
async def test_in_a_model_stream_with_another_prompt_queued(tmp_path, end):
    async with model_server([SILENT_STREAM]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home) as editor:
            session = await started(editor)
            first, queued = await editor.send_prompt(session), await editor.send_prompt(session)
            await editor.update("agent_message_chunk")
            end(editor)
            await assert_cancelled(editor, first)
            await assert_cancelled(editor, queued)
        with anyio.fail_after(LIMIT):
            await (await server.request(0)).disconnected.wait()
    assert home.events(session, "turn/end")[-1]["reason"] == {"kind": "disposed"}


@endings
async def test_in_a_command_that_ignores_term_and_has_a_child_in_a_session_of_its_own(tmp_path, end):
    async with model_server([bash_call(STUBBORN)]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, *IN_FULL) as editor:
            session = await started(editor)
            prompt = await editor.send_prompt(session)
            await output(editor, "ready")
            assert len(home.processes()) > 3
            end(editor)
            await assert_cancelled(editor, prompt)
            assert editor.updates("tool_call_update")[-1]["status"] == "failed"
            assert home.processes() == []


async def test_with_a_background_command_running(tmp_path):
    async with model_server([bash_call("sleep 300", run_in_background=True), done()]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, *IN_FULL) as editor:
            assert await editor.prompt(await started(editor)) == "end_turn"
            editor.close_stdin()
            await editor.exited()
            assert home.processes() == []


@pytest.mark.usefixtures("measured")
async def test_a_background_command_that_ends_when_its_session_is_gone_tells_nobody(tmp_path):
    slow_to_end = "trap 'sleep 0.5; touch go; sleep 0.5; exit' TERM; echo ready; while :; do sleep 0.1; done"

    def answers(body):
        if body["messages"][-1]["role"] == "tool":
            return done()
        if body["messages"][-1]["content"] == "first":
            return bash_call("until [ -e go ]; do sleep 0.05; done", run_in_background=True)
        return bash_call(slow_to_end)

    async with model_server(answers) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, *IN_FULL) as editor:
            first = await started(editor)
            assert await editor.prompt(first, "first") == "end_turn"
            second = await editor.new_session()
            prompt = await editor.send_prompt(second, "second")
            await output(editor, "ready")
            editor.close_stdin()
            await assert_cancelled(editor, prompt)
    assert "listener failed" not in editor.stderr
    assert home.events(first, "context/message") == []


@endings
async def test_while_a_permission_is_asked_for(tmp_path, end):
    async with model_server([bash_call("echo never")]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, permission="never") as editor:
            session = await started(editor)
            prompt = await editor.send_prompt(session)
            await editor.asked()
            end(editor)
            await assert_cancelled(editor, prompt)
            assert editor.updates("tool_call_update")[-1]["status"] == "failed"
    assert home.events(session, "permission/decision")[-1]["outcome"] == "cancelled"


@endings
async def test_in_the_middle_of_a_load(tmp_path, end):
    text = [f"{number:0400} " for number in range(300)]
    async with model_server([{"text": text}]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home) as editor:
            session = await started(editor)
            await editor.prompt(session)
        async with agent(home) as editor:
            await editor.initialize()
            await editor.request("session/load", sessionId=session, cwd=home.cwd, mcpServers=[])
            await editor.update("user_message_chunk")
            end(editor)
            await editor.exited()
        async with agent(home) as editor:
            await editor.initialize()
            await editor.load(session)
            assert editor.text() == "".join(text)


@pytest.mark.parametrize("when", ["before initialize", "idle", "in a stream"])
async def test_nobody_reads_its_answers_any_more(tmp_path, when):
    gate = {"stream": [{"text": ["one"]}, {"gate": "closed"}, *[{"text": ["more"]}] * 20, {"silence": True}]}
    async with model_server([gate]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, conversation=False) as editor:
            if when == "before initialize":
                await editor.fill_stdin()
                await editor.close_stdout()
                await editor.request("initialize", protocolVersion=1)
            else:
                session = await started(editor)
                if when == "in a stream":
                    await editor.send_prompt(session)
                    await editor.update("agent_message_chunk")
                    await server.reached("closed")
                await editor.close_stdout()
                server.release("closed")
                if when == "idle":
                    await editor.request("session/new", cwd=home.cwd, mcpServers=[])
            with anyio.fail_after(LIMIT):
                assert await anyio.to_thread.run_sync(editor.popen.wait, abandon_on_cancel=True) == 0


@pytest.mark.usefixtures("measured")
async def test_a_client_that_stopped_reading_cannot_hold_it(tmp_path):
    async with model_server([{"stream": [{"text": ["x" * 1000]}] * 3000 + [{"silence": True}]}]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        async with agent(home, conversation=False) as editor:
            session = await started(editor)
            await editor.send_prompt(session)
            await editor.update("agent_message_chunk")
            await editor.stop_reading()
            editor.close_stdin()
            with anyio.fail_after(LIMIT):
                assert await anyio.to_thread.run_sync(editor.popen.wait, abandon_on_cancel=True) == 0


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("when", ["before initialize", "in a tool"])
async def test_its_parent_dies_while_its_input_stays_open(tmp_path, when):
    async with model_server([bash_call("echo ready; sleep 300")]) as server:
        home = agent_home(tmp_path, base_url=server.base_url)
        command = script("dying_parent.py", *agent_command(), *IN_FULL)
        async with agent(home, command=command) as editor:
            if when == "before initialize":
                await editor.fill_stdin()
                editor.signal(signal.SIGUSR1)
                await editor.exited()
            else:
                prompt = await editor.send_prompt(await started(editor))
                await output(editor, "ready")
                editor.signal(signal.SIGUSR1)
                await assert_cancelled(editor, prompt)
            assert home.processes() == []
