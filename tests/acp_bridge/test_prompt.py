"""session/prompt and session/cancel, through the wire."""

import errno
from functools import partial

import pytest

from acp_bridge.live_session import MAX_QUEUED
from agent_loop.errors import LlmError
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.tools.bash import BashTool
from bash_exec.fake import FakeCommand
from tests.support.agent_world import PLUGIN
from tests.support.bridge_world import WINDOW, bridge_world
from tests.support.failing_files import FailingFiles
from tests.support.scripted_adapter import HANG, Gate, calls, says
from tests.support.scripted_tool import ScriptedTool


async def test_a_prompt_streams_its_answer_and_ends_last(tmp_path):
    usage = {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 3}
    async with bridge_world(says("hello", usage=usage), cwd=tmp_path) as world:
        session = await world.new_session()
        result = await world.prompt(session)
        await world.send_frames({"id": "q", "method": "nope"})
        assert (await world.next())["id"] == "q", "nothing follows the response"
    assert result == {"stopReason": "end_turn"}
    assert world.text() == "hello"
    assert world.updates[-1][1] == {"sessionUpdate": "usage_update", "used": 10, "size": WINDOW}


async def test_links_and_text_reach_the_model_in_order(tmp_path):
    link = {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "annotations": None}
    async with bridge_world(says("ok"), cwd=tmp_path) as world:
        session = await world.new_session()
        text = {"type": "text", "text": "see"}
        await world.call("session/prompt", sessionId=session, prompt=[text, link, text])
    content = world.agents.adapter.requests[0].messages[0]["content"]
    assert [block["type"] for block in content] == ["text", "resource-link", "text"]
    assert content[1] == {"uri": "file:///a", "name": "a", "mimeType": "text/plain", "type": "resource-link"}


@pytest.mark.parametrize(
    "prompt",
    [
        [],
        [{"type": "text", "text": "  \n"}],
        [{"type": "image", "data": "", "mimeType": "image/png"}],
        [{"type": "resource", "resource": {"uri": "file:///a"}}],
        [{"type": "text"}],
        [{}],
        "text",
    ],
)
async def test_a_prompt_that_cannot_be_taken_is_refused_before_any_work(tmp_path, prompt):
    async with bridge_world(cwd=tmp_path) as world:
        session = await world.new_session()
        assert (await world.error("session/prompt", sessionId=session, prompt=prompt))["code"] == -32602
        assert world.agents.events == {}


async def test_a_prompt_for_no_session_is_not_found(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        error = await world.error("session/prompt", sessionId="nope", prompt=[{"type": "text", "text": "x"}])
    assert (error["code"], error["data"]["sessionId"]) == (-32002, "nope")


async def test_without_a_key_the_prompt_says_what_to_do_and_logs_nothing(tmp_path):
    async with bridge_world(cwd=tmp_path, key=None) as world:
        session = await world.new_session()
        error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "x"}])
        assert world.agents.events == {}
    assert error["code"] == -32000
    assert error["message"].startswith("Authentication required")
    assert error["data"]["methods"] == ["api-key"]
    assert "TEST_KEY" in error["data"]["details"]


@pytest.mark.parametrize(
    ("finish", "reason"), [("max-tokens", "max_tokens"), ("refusal", "refusal"), ("stop", "end_turn")]
)
async def test_the_stop_reason_tells_how_the_model_ended(tmp_path, finish, reason):
    async with bridge_world(says("x", finish=finish), cwd=tmp_path) as world:
        session = await world.new_session()
        assert (await world.prompt(session))["stopReason"] == reason


@pytest.mark.parametrize("code", ["AUTH", "QUOTA"])
async def test_a_failed_turn_is_an_error_with_its_text_and_the_session_goes_on(tmp_path, code):
    async with bridge_world([LlmError("the provider said no", code)], says("fine"), cwd=tmp_path) as world:
        session = await world.new_session()
        error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "x"}])
        assert (await world.prompt(session))["stopReason"] == "end_turn"
    assert error["code"] == -32603
    assert error["message"] == "Internal error: turn failed: the provider said no"
    assert error["data"] == {"reason": code.lower(), "details": "the provider said no"}


async def test_a_rate_limit_that_will_not_pass_soon_is_an_error_with_its_reason(tmp_path):
    limit = LlmError("the provider limits the rate", "RATE_LIMIT", status=429, retry_after=3600)
    async with bridge_world([limit], cwd=tmp_path) as world:
        session = await world.new_session()
        error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "x"}])
    assert (error["code"], error["data"]["reason"]) == (-32603, "rate_limit")


async def test_a_second_prompt_waits_and_settles_on_its_own_turn(tmp_path):
    gate, answer = Gate(), says("one")
    async with bridge_world([*answer[:2], gate, *answer[2:]], says("two"), cwd=tmp_path) as world:
        session = await world.new_session()
        first, second = await world.send_prompt(session, "1"), await world.send_prompt(session, "2")
        await gate.reached.wait()
        gate.open()
        await world.answer(first)
        assert world.text() == "one"
        await world.answer(second)
        assert world.text() == "onetwo"


async def test_too_many_waiting_prompts_are_refused(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        await world.send_prompt(session)
        while world.bridge.present(session).agent.active_turn is None:
            await world.call("initialize", protocolVersion=1)
        waiting = [await world.send_prompt(session) for _ in range(MAX_QUEUED)]
        for text in ("x", "/compact"):
            error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
            assert (error["code"], error["data"]["reason"]) == (-32603, "busy")
        await world.notify("session/cancel", sessionId=session)
        for _ in range(MAX_QUEUED + 1):
            assert (await world.until(lambda frame: "method" not in frame))["result"] == {"stopReason": "cancelled"}
    assert waiting


async def test_cancel_settles_what_came_before_it_and_nothing_after(tmp_path):
    async with bridge_world([HANG], says("fresh"), cwd=tmp_path) as world:
        session = await world.new_session()
        first, second = await world.send_prompt(session), await world.send_prompt(session)
        await world.notify("session/cancel", sessionId=session)
        third = await world.send_prompt(session)
        for request in (first, second):
            assert (await world.answer(request))["result"]["stopReason"] == "cancelled"
        assert (await world.answer(third))["result"]["stopReason"] == "end_turn"
        assert world.text() == "fresh"


async def test_prompt_and_cancel_in_one_write_settle(tmp_path):
    async with bridge_world(fallback=[HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        await world.send_frames(
            {"id": 900, "method": "session/prompt", "params": params},
            {"method": "session/cancel", "params": {"sessionId": session}},
        )
        assert (await world.answer(900))["result"]["stopReason"] == "cancelled"


async def test_cancel_when_idle_or_of_nobody_touches_nothing(tmp_path):
    async with bridge_world(says("x"), cwd=tmp_path) as world:
        session = await world.new_session()
        await world.notify("session/cancel", sessionId=session)
        await world.notify("session/cancel", sessionId="nobody")
        assert (await world.prompt(session))["stopReason"] == "end_turn"


async def test_cancel_request_withdraws_a_queued_prompt_at_once_and_only_that(tmp_path):
    gate, answer = Gate(), says("one")
    async with bridge_world([*answer[:2], gate, *answer[2:]], cwd=tmp_path) as world:
        session = await world.new_session()
        first = await world.send_prompt(session)
        await gate.reached.wait()
        second = await world.send_prompt(session)
        await world.notify("$/cancel_request", requestId=second)
        assert (await world.answer(second))["result"]["stopReason"] == "cancelled"
        gate.open()
        assert (await world.answer(first))["result"]["stopReason"] == "end_turn"


async def test_cancel_request_aborts_the_running_prompt(tmp_path):
    async with bridge_world([says("x")[1], HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.update("agent_message_chunk")
        await world.notify("$/cancel_request", requestId=prompt)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"


async def test_any_other_abort_is_an_error(tmp_path):
    async with bridge_world([says("x")[1], HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.update("agent_message_chunk")
        world.bridge.present(session).agent.cancel("budget")
        assert (await world.answer(prompt))["error"]["data"] == {"reason": "aborted", "details": "aborted: budget"}


async def test_a_prompt_that_the_agent_loses_is_answered_at_once(tmp_path):
    async with bridge_world(fallback=says("x"), cwd=tmp_path) as world:
        session = await world.new_session()
        agent = world.bridge.present(session).agent

        def refuse(message, turn):
            raise AssertionError("unreachable")

        def lose(_agent, _message):
            agent._inbox.clear()

        world.agents.hooks.on("agent/inbox/inserted", lose)
        prompt = await world.send_prompt(session)
        await world.call("initialize", protocolVersion=1)
        # the agent never woke for it; the next activity's end notices
        agent._services.hooks.emit("agent/status", agent, "idle", agent=agent.id)
        assert (await world.answer(prompt))["error"]["data"]["reason"] == "lost"
    assert refuse


async def test_commands_answer_without_the_model_and_are_logged(tmp_path):
    async with bridge_world(cwd=tmp_path, key=None) as world:
        session = await world.new_session()
        assert (await world.prompt(session, "/help"))["stopReason"] == "end_turn"
        assert "/status" in world.text()
        link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
        await world.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "/status"}, link])
        assert session in world.text()
        types = [event.type for event in world.agents.events[session]]
    assert types == ["command/run", "command/done", "command/run", "command/done"]


async def test_a_line_that_names_no_command_goes_to_the_model(tmp_path):
    async with bridge_world(says("it is fine"), cwd=tmp_path) as world:
        session = await world.new_session()
        await world.prompt(session, "/etc/hosts what is this")
        assert world.agents.texts(world.bridge.present(session).agent) == ["/etc/hosts what is this"]


async def test_two_sessions_do_not_mix(tmp_path):
    gate, answer = Gate(), says("first")
    async with bridge_world([*answer[:2], gate, *answer[2:]], says("second"), cwd=tmp_path) as world:
        one, two = await world.new_session(), await world.new_session()
        first = await world.send_prompt(one)
        await gate.reached.wait()
        await world.prompt(two)
        gate.open()
        await world.answer(first)
    texts = {
        session: [u["content"]["text"] for s, u in world.updates if s == session and "content" in u]
        for session in (one, two)
    }
    assert texts == {one: ["first"], two: ["second"]}


async def test_a_flood_waits_for_a_client_that_reads_slowly_and_can_be_cancelled(tmp_path):
    flood = [{"type": "text-delta", "index": 0, "text": "y" * 50_000} for _ in range(200)]
    async with bridge_world(flood, cwd=tmp_path, high_water=100_000) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        while not world.client.peer.congested:
            await world.agents.runtime.sleep(0)
        await world.notify("session/cancel", sessionId=session)
        await world.bridge.present(session).agent.when_idle()
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert len(world.text()) < 50_000 * 200


async def test_a_slow_reader_gets_every_byte_when_it_reads_on(tmp_path):
    flood = [{"type": "text-delta", "index": 0, "text": "y" * 50_000} for _ in range(20)]
    async with bridge_world([*flood, *says("", finish="stop")[-1:]], cwd=tmp_path, high_water=100_000) as world:
        session = await world.new_session()
        await world.prompt(session)
        assert len(world.text()) == 50_000 * 20


async def test_a_log_that_cannot_be_written_is_said_once_and_the_turn_ends(tmp_path):
    files = FailingFiles()
    store = partial(JsonlSessionStore, tmp_path / "root", operations=files)
    async with bridge_world(fallback=says("x"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.prompt(session)
        files.write_error = errno.ENOSPC
        unsaved = await world.prompt(session)
        assert unsaved == {"stopReason": "end_turn", "_meta": {"dsh": {"persistence": "failed"}}}
        error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "x"}])
        assert error["data"]["reason"] == "persistence"
        assert world.text().count("cannot be written") == 2, "once in each turn"
        files.write_error = None


async def test_eof_answers_nobody_but_ends_everything(tmp_path):
    async with bridge_world([HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        await world.send_prompt(session)
        await world.call("initialize", protocolVersion=1)
        world.client.close_input()
        await world.client.served.wait()
        assert world.agents.registry.list() == ()


async def test_a_turn_that_no_prompt_owns_is_cancelled_too(tmp_path):
    async with bridge_world([says("x")[1], HANG], cwd=tmp_path) as world:
        session = await world.new_session()
        agent = world.bridge.present(session).agent
        agent.followup(world.agents.message("tick", PLUGIN))
        await world.update("agent_message_chunk")
        await world.notify("session/cancel", sessionId=session)
        await agent.when_idle()
        assert world.agents.reasons(agent) == [{"kind": "aborted", "reason": "session/cancel"}]


async def test_a_tool_card_opens_moves_and_closes(tmp_path):
    async with bridge_world(calls(("c1", "echo", {"value": "x"})), says("done"), cwd=tmp_path, mode="full") as world:
        world.agents.tools.register(ScriptedTool())
        session = await world.new_session()
        await world.prompt(session)
    cards = [update for _id, update in world.updates if "toolCallId" in update]
    assert [card.get("status") for card in cards] == ["in_progress", "completed"]
    assert cards[0]["rawInput"] == {"value": "x"}
    assert cards[1]["content"] == [{"type": "content", "content": {"type": "text", "text": "ran x"}}]


async def test_a_terminal_shows_output_while_the_command_runs_and_closes_once(tmp_path):
    terminals = {"_meta": {"terminal_output": True}}
    bash = calls(("c1", "bash", {"command": "build", "description": "Build it"}))
    shell = {"build": FakeCommand(((0, b"one\n"), (1, b"two\n")), hangs=True)}
    async with bridge_world(
        bash, says("done"), cwd=tmp_path, mode="full", capabilities=terminals, shell=shell
    ) as world:
        world.agents.tools.register(BashTool(world.executor, notify=lambda *_: None))
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        live = await world.until(lambda frame: "terminal_output" in str(frame))
        await world.notify("session/cancel", sessionId=session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
    assert live["params"]["update"]["_meta"]["terminal_output"]["data"] == "one\ntwo\n"
    ended = world.updates[-1][1]
    assert ended["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": None, "signal": "SIGTERM"}
    assert "terminal_output" not in ended["_meta"]


async def test_a_transcript_that_is_being_shown_hides_live_output_until_the_result(tmp_path):
    bash = calls(("c1", "bash", {"command": "build", "description": "Build it"}))
    shell = {"build": FakeCommand(((0, b"one\n"),), hangs=True)}
    async with bridge_world(bash, cwd=tmp_path, mode="full", shell=shell) as world:
        world.agents.tools.register(BashTool(world.executor, notify=lambda *_: None))
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.update("tool_call")
        live = world.bridge.present(session)
        live._holds += 1
        live._show_output("c1", "one")
        live._release()
        await world.notify("session/cancel", sessionId=session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"
