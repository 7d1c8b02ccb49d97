"""session/resume, close, delete and fork, through the wire."""

import asyncio
import os

import anyio
import pytest

from agent_loop.session.jsonl import JsonlSessionStore
from bash_exec.fake import FakeCommand
from bash_exec.seam import CommandRequest
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_tool import ScriptedTool, outcome


def files(tmp_path):
    return lambda runtime: JsonlSessionStore(tmp_path / "root", runtime)


def logs(tmp_path):
    return sorted((tmp_path / "root").glob("*/*.jsonl"))


async def stored_session(tmp_path, *, mode=None):
    """A session with one prompt, by a process that has ended."""
    async with bridge_world(says("one"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        if mode:
            await world.call("session/set_mode", sessionId=session, modeId=mode)
        await world.prompt(session, "remember 42")
    return session


async def test_a_resumed_session_shows_nothing_and_remembers_everything(tmp_path):
    session = await stored_session(tmp_path, mode="full")
    async with bridge_world(says("two"), cwd=tmp_path, store=files(tmp_path)) as world:
        result = await world.call("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert world.updates == []
        assert result["modes"]["currentModeId"] == "full"
        await world.update("available_commands_update")
        await world.prompt(session, "and now?")
        assert world.kinds() == ["available_commands_update", "agent_message_chunk"]
        assert len(world.agents.adapter.requests[0].messages) == 3


async def test_resuming_a_live_session_disturbs_nothing(tmp_path):
    gate, answer = Gate(), says("the answer")
    async with bridge_world([*answer[:1], gate, *answer[1:]], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await gate.reached.wait()
        world.updates.clear()
        await world.call("session/resume", sessionId=session, cwd=str(tmp_path))
        gate.open()
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert world.text() == "the answer"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_what_cannot_be_opened_is_told_apart(tmp_path, method):
    session = await stored_session(tmp_path)
    (tmp_path / "other").mkdir()
    async with bridge_world(cwd=tmp_path, store=files(tmp_path)) as world:
        unknown = await world.error(method, sessionId="nobody", cwd=str(tmp_path))
        elsewhere = await world.error(method, sessionId=session, cwd=str(tmp_path / "other"))
        relative = await world.error(method, sessionId=session, cwd="x")
        (log,) = logs(tmp_path)
        log.write_bytes(b"garbage\n")
        damaged = await world.error(method, sessionId=session, cwd=str(tmp_path))
    assert (unknown["code"], unknown["data"]["sessionId"]) == (-32002, "nobody")
    assert (elsewhere["code"], elsewhere["data"]["reason"]) == (-32603, "mismatch")
    assert relative["code"] == -32602
    assert (damaged["code"], damaged["data"]["reason"], damaged["data"]["sessionId"]) == (-32603, "damaged", session)
    assert damaged["message"].startswith(f"The log of session {session} is damaged at line 1")


async def test_a_log_that_is_gone_when_it_is_to_be_shown_is_an_error_of_the_load(tmp_path):
    session = await stored_session(tmp_path)
    async with bridge_world(cwd=tmp_path, store=files(tmp_path)) as world:
        await world.call("session/resume", sessionId=session, cwd=str(tmp_path))
        logs(tmp_path)[0].unlink()
        error = await world.error("session/load", sessionId=session, cwd=str(tmp_path))
    assert (error["code"], error["data"]["reason"]) == (-32603, "unreadable")


async def test_an_unknown_mode_of_a_later_version_starts_in_the_default_one(tmp_path):
    async with bridge_world(says("x"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        world.bridge.present(session).agent.session.append("mode/change", {"modeId": "from/later"})
        await world.prompt(session)
    async with bridge_world(cwd=tmp_path, store=files(tmp_path)) as world:
        result = await world.call("session/resume", sessionId=session, cwd=str(tmp_path))
    assert result["modes"]["currentModeId"] == "ask"


async def test_a_closed_session_is_not_live_and_can_be_opened_again(tmp_path):
    async with bridge_world(says("one"), says("two"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.call("session/set_mode", sessionId=session, modeId="full")
        await world.prompt(session)
        assert await world.call("session/close", sessionId=session) == {}
        assert world.agents.registry.list() == ()
        assert world.bridge.present(session) is None
        assert world.policy.mode(session) == "ask"
        for method, params in (
            ("session/close", {}),
            ("session/prompt", {"prompt": [{"type": "text", "text": "x"}]}),
            ("session/set_mode", {"modeId": "ask"}),
        ):
            error = await world.error(method, sessionId=session, **params)
            assert (error["code"], error["data"]["sessionId"]) == (-32002, session)
        result = await world.call("session/load", sessionId=session, cwd=str(tmp_path))
        assert result["modes"]["currentModeId"] == "full"
        assert (await world.prompt(session))["stopReason"] == "end_turn"


async def test_closing_an_unknown_session_is_not_found(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        error = await world.error("session/close", sessionId="nobody")
    assert (error["code"], error["data"]["sessionId"]) == (-32002, "nobody")


async def test_a_session_closed_before_its_first_turn_was_never_stored(tmp_path):
    async with bridge_world(cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.call("session/close", sessionId=session)
        assert (await world.error("session/load", sessionId=session, cwd=str(tmp_path)))["code"] == -32002
    assert logs(tmp_path) == []


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_prompts_are_answered_cancelled_before_the_session_is_gone(tmp_path, method):
    answer = says("thinking")
    async with bridge_world([*answer[:2], HANG], cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        running = await world.send_prompt(session)
        await world.update("agent_message_chunk")
        queued = await world.send_prompt(session, "and then")
        command = await world.send_prompt(session, "/compact")
        ending = await world.send(method, sessionId=session)
        late = await world.send_prompt(session, "too late")
        answers = {}
        while len(answers) < 5:
            frame = await world.until(lambda frame: "method" not in frame)
            answers[frame["id"]] = frame
    assert set(list(answers)[:3]) == {running, queued, command}
    for prompt in (running, queued, command):
        assert answers[prompt]["result"]["stopReason"] == "cancelled"
    assert answers[ending]["result"] == {}
    assert answers[late]["error"]["code"] == -32002
    (reason,) = [event.data["reason"] for event in world.agents.events[session] if event.type == "turn/end"]
    assert reason == {"kind": "aborted", "reason": method}


async def test_an_open_question_ends_with_its_session(tmp_path):
    async with bridge_world(calls(("c1", "echo", {})), cwd=tmp_path) as world:
        tool = ScriptedTool()
        tool.effect = "execute"
        world.agents.tools.register(tool)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        asked = await world.request("session/request_permission")
        closing = await world.send("session/close", sessionId=session)
        withdrawn = await world.request("$/cancel_request")
        assert withdrawn["params"]["requestId"] == asked["id"]
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert (await world.answer(closing))["result"] == {}
        assert tool.ran == []


async def test_the_processes_of_a_session_end_with_it(tmp_path):
    known = {"sleep": FakeCommand(hangs=True)}
    async with bridge_world(cwd=tmp_path, shell=known) as world:
        sessions = [await world.new_session() for _ in range(2)]
        for session in sessions:
            request = CommandRequest("sleep", str(tmp_path), session)
            await world.executor.start(world.executor.resolve(request))
        await world.call("session/close", sessionId=sessions[0])
        assert world.executor.list(sessions[0]) == []
        assert [task.status for task in world.executor.list(sessions[1])] == ["running"]
        await world.call("session/delete", sessionId=sessions[1])
        assert world.executor.list(sessions[1]) == []


async def test_a_turn_that_cannot_be_cancelled_does_not_keep_its_session_open(tmp_path):
    release = anyio.Event()

    async def body(_arguments, _context):
        with anyio.CancelScope(shield=True):
            await release.wait()
        return outcome("at last")

    async with bridge_world(
        calls(("c1", "echo", {})), cwd=tmp_path, mode="full", quiet_seconds=0.01, dispose_seconds=0.01
    ) as world:
        tool = ScriptedTool(body=body)
        world.agents.tools.register(tool)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.update("tool_call")
        closing = await world.send("session/close", sessionId=session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert (await world.answer(closing))["result"] == {}
        assert world.bridge.present(session) is None
        release.set()


async def test_closing_is_not_cut_short_by_a_cancel_of_the_request(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        closing = await world.send("session/close", sessionId=session)
        await world.notify("$/cancel_request", requestId=closing)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert (await world.answer(closing))["result"] == {}


async def test_whoever_names_a_session_that_is_being_closed_waits_for_its_end(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.send_prompt(session)
        await world.until(lambda frame: frame.get("method") == "session/update")
        one = {"sessionId": session}
        where = {"cwd": str(tmp_path)}
        await world.send_frames(
            {"id": "close", "method": "session/close", "params": one},
            {"id": "again", "method": "session/close", "params": one},
            {"id": "load", "method": "session/load", "params": one | where},
            {"id": "cancel", "method": "session/cancel", "params": one},
        )
        answers = {}
        while len(answers) < 5:
            frame = await world.until(lambda frame: "method" not in frame)
            answers[frame["id"]] = frame
        assert answers["close"]["result"] == {}
        # which of the two that wait comes first is nobody's promise: the other finds what it left
        assert "result" in answers["load"]
        assert answers["again"].get("error", {}).get("code", -32002) == -32002


async def test_a_shutdown_overtakes_a_close(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.until(lambda frame: frame.get("method") == "session/update")
        await world.send("session/close", sessionId=session)
        world.client.close_input()
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        await world.client.served.wait()
        assert world.agents.registry.list() == ()


async def test_a_deleted_session_is_gone_and_deleting_it_again_succeeds(tmp_path):
    async with bridge_world(says("one"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.prompt(session)
        for session_id in (session, session, "nobody", ""):
            assert await world.call("session/delete", sessionId=session_id) == {}
        assert (await world.error("session/load", sessionId=session, cwd=str(tmp_path)))["code"] == -32002
        assert await world.call("session/list") == {"sessions": []}
    assert logs(tmp_path) == []


async def test_a_stored_session_is_deleted_without_being_opened(tmp_path):
    session = await stored_session(tmp_path)
    async with bridge_world(cwd=tmp_path, store=files(tmp_path)) as world:
        assert await world.call("session/delete", sessionId=session) == {}
        assert "agent/created" not in world.agents.names()
    assert logs(tmp_path) == []


async def test_the_file_of_a_session_that_is_deleted_in_its_turn_does_not_come_back(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.until(lambda frame: frame.get("method") == "session/update")
        assert len(logs(tmp_path)) == 1
        deleting = await world.send("session/delete", sessionId=session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert (await world.answer(deleting))["result"] == {}
        assert logs(tmp_path) == []
    assert logs(tmp_path) == []


async def test_a_session_that_is_open_elsewhere_is_not_deleted(tmp_path):
    async with bridge_world(says("one"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.prompt(session)
        async with bridge_world(cwd=tmp_path, store=files(tmp_path)) as other:
            deleting = await other.send("session/delete", sessionId=session)
            answer = None

            async def read():
                nonlocal answer
                answer = await other.answer(deleting)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                while answer is None:
                    other.agents.runtime.advance(1000)
                    await anyio.lowlevel.checkpoint()
        assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32603, "locked")
        assert f"pid {os.getpid()}" in answer["error"]["message"]
        assert len(logs(tmp_path)) == 1


async def test_a_fork_remembers_what_its_parent_said_and_leaves_it_untouched(tmp_path):
    session = await stored_session(tmp_path, mode="full")
    before = logs(tmp_path)[0].read_bytes()
    async with bridge_world(says("two"), cwd=tmp_path, store=files(tmp_path), initialized=False, fork=True) as world:
        world.connection.accept({})
        world.agents.runtime.advance(10)
        world.agents.runtime.new_id()  # both processes count their ids from one
        result = await world.call("session/fork", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert world.updates == [], "what it remembers is not shown"
        assert result["sessionId"] != session
        assert result["modes"]["currentModeId"] == "full"
        await world.update("available_commands_update")
        await world.prompt(result["sessionId"], "and now?")
        assert len(world.agents.adapter.requests[0].messages) == 3
        rows = (await world.call("session/list"))["sessions"]
        assert [row["sessionId"] for row in rows] == [result["sessionId"], session]
        assert {row["title"] for row in rows} == {"remember 42"}
        assert "session_info_update" not in world.kinds(), "it has its title"
        unknown = await world.error("session/fork", sessionId="nobody", cwd=str(tmp_path))
        relative = await world.error("session/fork", sessionId=session, cwd="x")
    assert (unknown["code"], relative["code"]) == (-32002, -32602)
    assert before in [log.read_bytes() for log in logs(tmp_path)]


async def test_a_live_session_is_forked_up_to_its_last_turn(tmp_path):
    async with bridge_world(
        says("one"), [HANG], says("three"), cwd=tmp_path, store=files(tmp_path), initialized=False, fork=True
    ) as world:
        world.connection.accept({})
        session = await world.new_session()
        await world.prompt(session, "first")
        prompt = await world.send_prompt(session, "second")
        while len(world.agents.adapter.requests) < 2:
            await anyio.lowlevel.checkpoint()
        fork = (await world.call("session/fork", sessionId=session, cwd=str(tmp_path)))["sessionId"]
        await world.prompt(fork, "third")
        said = [message["content"][0]["text"] for message in world.agents.adapter.requests[2].messages]
        assert said == ["first", "one", "third"]
        await world.notify("session/cancel", sessionId=session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"


async def test_fork_is_there_only_when_it_is_switched_on(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        assert (await world.error("session/fork", sessionId="x", cwd=str(tmp_path)))["code"] == -32601


async def test_the_title_of_a_session_is_shown_once_live_and_again_on_load(tmp_path):
    async with bridge_world(says("one"), says("two"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.prompt(session, "fix the build")
        await world.prompt(session, "and the tests")
        titles = [update for _id, update in world.updates if update["sessionUpdate"] == "session_info_update"]
        assert titles == [{"sessionUpdate": "session_info_update", "title": "fix the build"}]
        world.updates.clear()
        await world.call("session/load", sessionId=session, cwd=str(tmp_path))
        assert world.kinds().count("session_info_update") == 1


async def test_a_title_can_be_given_before_the_first_prompt_and_is_found_in_the_list(tmp_path):
    async with bridge_world(says("one"), cwd=tmp_path, store=files(tmp_path)) as world:
        session = await world.new_session()
        await world.prompt(session, "/title")
        assert "no title yet" in world.text()
        await world.prompt(session, "/title  Ship it\x07 ")
        shown = [update for _id, update in world.updates if update["sessionUpdate"] == "session_info_update"]
        assert shown == [{"sessionUpdate": "session_info_update", "title": "Ship it"}]
        await world.prompt(session, "fix the build")
        (row,) = (await world.call("session/list"))["sessions"]
        assert row["title"] == "Ship it"
        assert [event.data for event in world.agents.events[session] if event.type == "session/title"] == [
            {"title": "Ship it", "by": "user"}
        ]


async def test_a_hundred_sessions_leave_nothing_behind(tmp_path):
    async with bridge_world(cwd=tmp_path, store=files(tmp_path), fallback=says("ok")) as world:

        async def live_and_go(*, prompted):
            session = (await world.call("session/new", cwd=str(tmp_path)))["sessionId"]
            if prompted:
                await world.call("session/set_mode", sessionId=session, modeId="full")
                await world.prompt(session)
            await world.call("session/close", sessionId=session)

        def held():
            live, registry, policy = world.agents.sessions, world.agents.registry, world.policy
            return {
                "descriptors": len(os.listdir("/proc/self/fd")),
                "tasks": len(asyncio.all_tasks()),
                "listeners": sum(map(len, world.agents.hooks._listeners.values())),
                "bridge": len(world.bridge._live) + len(world.bridge._changing),
                "agents": len(registry._agents),
                "sessions": len(live._sessions) + len(live._unwritten) + len(live._told) + len(live._busy),
                "policy": len(policy._modes) + len(policy._open),
            }

        await live_and_go(prompted=True)
        before = held()
        for number in range(100):
            await live_and_go(prompted=number % 10 == 0)
        assert held() == before
        assert len(logs(tmp_path)) == 11
