"""The card of a command that runs in a terminal of the client, on the wire: live, and on load."""

import asyncio

import anyio
import pytest

from acp_bridge.live_session import LiveSession
from acp_bridge.schema import ClientCapabilities
from acp_bridge.wire import Wire
from agent_loop.tools.bash import BashTool
from bash_exec.fake import FakeCommand
from bash_exec.seam import CommandSpec
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import calls, says

BASH = calls(("c1", "bash", {"command": "make", "description": "Build it"}))
BOTH = {"terminal": True, "_meta": {"terminal_output": True}}
DESCRIBED = {"type": "content", "content": {"type": "text", "text": "Build it"}}
EMBEDDED = {"type": "terminal", "terminalId": "t1"}


def register(world):
    bash = BashTool(world.executor, notify=lambda _session, _text: None, runner=world.bridge.command_runner)
    world.agents.tools.register(bash)


def card(world):
    return [update for _id, update in world.updates if update.get("toolCallId") == "c1"]


def contents(frame):
    """The content of the update of a card."""
    content = frame.get("params", {}).get("update", {}).get("content")
    return content if isinstance(content, list) else []


def entry_of(world, wanted):
    """Where the one such frame stands."""
    (index,) = [index for index, entry in enumerate(world.entries) if wanted(entry.frame)]
    return index


async def serve(world, prompt, **results):
    """Answer what the agent asks of its terminals until the prompt is answered."""
    while True:
        frame = await world.next()
        if frame.get("id") == prompt and "method" not in frame:
            return frame["result"]["stopReason"]
        if "method" in frame and "id" in frame:
            await world.send_frames({"id": frame["id"], "result": results.get(frame["method"].split("/")[1], {})})


GOOD = {
    "create": {"terminalId": "t1"},
    "wait_for_exit": {"exitCode": 0},
    "output": {"output": "ok\n", "truncated": False},
}


@pytest.mark.parametrize("capabilities", [{"terminal": True}, BOTH])
async def test_the_card_embeds_the_clients_terminal_and_keeps_it(tmp_path, capabilities):
    async with bridge_world(
        BASH, says("done"), cwd=tmp_path, mode="full", capabilities=capabilities, terminal_environment={"CI": "1"}
    ) as world:
        register(world)
        session = await world.new_session()
        assert await serve(world, await world.send_prompt(session), **GOOD) == "end_turn"
    opened, shown, ended = card(world)
    assert (opened["content"], opened["_meta"]) == ([DESCRIBED], {"tool_name": "bash"})
    assert shown["content"] == [DESCRIBED, EMBEDDED]
    assert (ended["status"], ended["rawOutput"], ended["_meta"]) == (
        "completed",
        {"exitCode": 0},
        {"tool_name": "bash"},
    )
    assert "content" not in ended
    embedded = entry_of(world, lambda frame: EMBEDDED in contents(frame))
    assert embedded < entry_of(world, lambda frame: frame.get("method") == "terminal/release")


async def test_on_load_the_stored_output_is_shown_not_a_terminal_that_is_gone(tmp_path):
    async with bridge_world(
        BASH, says("done"), cwd=tmp_path, mode="full", capabilities=BOTH, terminal_environment={"CI": "1"}
    ) as world:
        register(world)
        session = await world.new_session()
        await serve(world, await world.send_prompt(session), **GOOD)
        world.updates.clear()
        await world.call("session/load", sessionId=session, cwd=world.cwd, mcpServers=[])
    opened, ended = card(world)
    assert opened["content"] == [DESCRIBED, {"type": "terminal", "terminalId": "c1"}]
    assert ended["_meta"]["terminal_output"] == {"terminal_id": "c1", "data": "ok\n"}
    assert ended["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": 0, "signal": None}


async def test_a_load_while_the_command_runs_ends_with_the_stored_output(tmp_path):
    async with bridge_world(
        BASH, says("done"), cwd=tmp_path, mode="full", capabilities=BOTH, terminal_environment={"CI": "1"}
    ) as world:
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        create = await world.request("terminal/create")
        await world.call("session/load", sessionId=session, cwd=world.cwd, mcpServers=[])
        await world.send_frames({"id": create["id"], "result": {"error": 1}})
        assert await serve(world, prompt, **GOOD) == "end_turn"
    assert card(world)[-1]["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": None, "signal": None}


class Unread(Wire):
    """A client that reads nothing more, but has answered: a replay waits for it."""

    def __init__(self):
        self.told = []
        self.waiting = anyio.Event()
        self.reads_on = anyio.Event()

    @property
    def congested(self):
        return not self.reads_on.is_set()

    def notify(self, method, params):
        self.told.append(params["update"])

    def notify_encoded(self, frame):
        raise AssertionError(frame)

    async def drained(self):
        self.waiting.set()
        await self.reads_on.wait()

    async def request(self, method, params, *, signal=None, on_late=None):
        return GOOD.get(method.split("/")[1], {})

    def post(self, method, params):
        self.told.append(method)


async def test_a_terminal_is_not_shown_in_the_middle_of_a_replay(tmp_path):
    async with bridge_world(says("hello"), cwd=tmp_path) as world:
        client = Unread()
        session = await world.new_session()
        await world.prompt(session)
        known = world.bridge.session(session)
        live = LiveSession(
            known.agent,
            wire=client,
            hooks=world.agents.hooks,
            capabilities=ClientCapabilities(terminals=True),
            find_tool=lambda _name: None,
            offer=known.offer,
            call_later=asyncio.get_running_loop().call_later,
            terminal_environment={},
        )
        world.agents.tasks.start_soon(live.replay)
        await client.waiting.wait()
        result = await live.client_terminal("c1").run(CommandSpec("make", "/p", session, 1000))
        client.reads_on.set()
    assert result.exit_code == 0
    assert "terminal/release" in client.told
    kinds = [update["sessionUpdate"] for update in client.told if isinstance(update, dict)]
    assert "agent_message_chunk" in kinds
    assert "tool_call_update" not in kinds


async def test_a_client_without_terminals_gets_the_command_run_here(tmp_path):
    shell = {"make": FakeCommand.printing(b"here\n")}
    async with bridge_world(
        BASH, says("done"), cwd=tmp_path, mode="full", terminal_environment={"CI": "1"}, shell=shell
    ) as world:
        register(world)
        session = await world.new_session()
        assert (await world.prompt(session))["stopReason"] == "end_turn"
    assert world.requests == []
    assert "here" in card(world)[-1]["content"][0]["content"]["text"]


async def test_a_command_that_the_client_cannot_start_ends_with_the_reason(tmp_path):
    async with bridge_world(
        BASH, says("done"), cwd=tmp_path, mode="full", capabilities=BOTH, terminal_environment={}
    ) as world:
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        create = await world.request("terminal/create")
        await world.send_frames({"id": create["id"], "error": {"code": -32603, "message": "no room"}})
        await world.answer(prompt)
    _opened, ended = card(world)
    assert ended["status"] == "failed"
    assert "the editor could not start the command: no room" in ended["content"][0]["content"]["text"]


async def test_an_ask_shows_the_card_without_a_display_terminal(tmp_path):
    async with bridge_world(BASH, says("ok"), cwd=tmp_path, capabilities=BOTH, terminal_environment={}) as world:
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        asked = await world.request("session/request_permission")
        await world.send_frames({"id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        await world.answer(prompt)
    assert asked["params"]["toolCall"]["content"] == [DESCRIBED]
    assert not [frame for frame in world.requests if frame["method"].startswith("terminal/")]


async def test_the_end_of_the_input_lets_the_terminal_go(tmp_path):
    async with bridge_world(BASH, cwd=tmp_path, mode="full", capabilities=BOTH, terminal_environment={}) as world:
        register(world)
        session = await world.new_session()
        await world.send_prompt(session)
        create = await world.request("terminal/create")
        await world.send_frames({"id": create["id"], "result": GOOD["create"]})
        await world.request("terminal/wait_for_exit")
        world.client.close_input()
        with anyio.fail_after(10):
            released = await world.request("terminal/release")
    assert released["params"] == {"sessionId": session, "terminalId": "t1"}
