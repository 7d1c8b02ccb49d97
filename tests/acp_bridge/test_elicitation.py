"""Questions to the user through the wire: only where they may be asked, and every answer is an outcome."""

import json

import pytest

from acp_bridge.elicitation import EditorForms
from agent_loop.inbox import InboxMessage
from agent_loop.tools.ask_user import AskUserTool
from agent_loop.vocabulary import text_block
from tests.support.agent_world import PLUGIN
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import calls, says

FORMS = {"elicitation": {"form": {}}}
QUESTION = {"question": "Which one?", "fields": [{"name": "one", "kind": "choice", "options": ["a", "b"]}]}
ASK = calls(("c1", "ask_user", QUESTION))


def register(world):
    forms = EditorForms(world.client.peer, world.bridge.session, secrets=world.agents.secrets)
    world.agents.tools.register(AskUserTool(forms))


def ended(world):
    """The last update of the card, and the text that it shows."""
    update = [update for _id, update in world.updates if update.get("toolCallId") == "c1"][-1]
    return update["status"], update["content"][0]["content"]["text"]


async def answered(tmp_path, answer):
    """Ask, and let the client answer so."""
    async with bridge_world(ASK, says("I see"), cwd=tmp_path, capabilities=FORMS) as world:
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        request = await world.request("elicitation/create")
        await world.send_frames({"id": request["id"], **answer})
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"
    return request["params"] | {"sessionId": request["params"]["sessionId"] == session}, ended(world)


async def test_a_form_names_its_session_its_call_and_its_fields(tmp_path):
    asked, end = await answered(tmp_path, {"result": {"action": "accept", "content": {"one": "b"}}})
    assert asked == {
        "mode": "form",
        "message": "Which one?",
        "sessionId": True,
        "toolCallId": "c1",
        "requestedSchema": {
            "type": "object",
            "properties": {"one": {"type": "string", "title": "one", "enum": ["a", "b"]}},
            "required": ["one"],
        },
    }
    assert end == ("completed", "- one: b")


@pytest.mark.parametrize(
    ("answer", "status", "says_so"),
    [
        ({"result": {"action": "decline"}}, "completed", "Declined."),
        ({"result": {"action": "cancel", "content": None}}, "completed", "Not answered."),
        ({"result": {"action": "accept"}}, "failed", "one is missing"),
        ({"result": {"action": "accept", "content": ["a"]}}, "failed", "one is missing"),
        ({"result": {"action": "accept", "content": {"one": "c"}}}, "failed", "one cannot be 'c'"),
        ({"result": {"action": "_later"}}, "failed", "it answered '_later'"),
        ({"result": {}}, "failed", "action"),
        ({"result": None}, "failed", "action"),
        ({"error": {"code": -32601, "message": "what?"}}, "failed", "what?"),
    ],
)
async def test_every_other_answer_is_an_outcome(tmp_path, answer, status, says_so):
    _asked, end = await answered(tmp_path, answer)
    assert end[0] == status
    assert says_so in end[1]


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, {"elicitation": None}, {"elicitation": {"url": {}}}])
async def test_a_client_without_forms_is_not_asked(tmp_path, capabilities):
    async with bridge_world(ASK, says("Which one, a or b?"), cwd=tmp_path, capabilities=capabilities) as world:
        register(world)
        session = await world.new_session()
        assert (await world.prompt(session))["stopReason"] == "end_turn"
    assert world.requests == []
    assert "end your turn" in ended(world)[1]


async def test_a_turn_that_no_prompt_waits_for_asks_nobody(tmp_path):
    async with bridge_world(ASK, says("later"), cwd=tmp_path, capabilities=FORMS) as world:
        register(world)
        session = await world.new_session()
        agent = world.agents.registry.get(session)
        agent.followup(InboxMessage("m1", [text_block("wake up")], PLUGIN))
        await agent.when_idle()
        await world.update("tool_call_update")
    assert world.requests == []
    assert "nobody waits for this turn" in ended(world)[1]


async def test_a_cancel_withdraws_the_form(tmp_path):
    async with bridge_world(ASK, cwd=tmp_path, capabilities=FORMS) as world:
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        request = await world.request("elicitation/create")
        await world.notify("session/cancel", sessionId=session)
        withdrawn = await world.request("$/cancel_request")
        assert (await world.answer(prompt))["result"] == {"stopReason": "cancelled"}
    assert withdrawn["params"] == {"requestId": request["id"]}
    assert ended(world) == ("failed", "Error: the call was stopped before the user answered")


async def test_the_end_of_the_input_ends_the_question(tmp_path):
    async with bridge_world(ASK, cwd=tmp_path, capabilities=FORMS) as world:
        register(world)
        session = await world.new_session()
        await world.send_prompt(session)
        await world.request("elicitation/create")
        world.client.close_input()
        await world.update("tool_call_update")
    assert ended(world)[0] == "failed"


async def test_a_question_shows_no_secret(tmp_path):
    asked = calls(("c1", "ask_user", {"question": "Use hunter22hunter22?"}))
    async with bridge_world(asked, says("ok"), cwd=tmp_path, capabilities=FORMS) as world:
        world.agents.secrets.add("PW", "hunter22hunter22")
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        request = await world.request("elicitation/create")
        await world.send_frames({"id": request["id"], "result": {"action": "accept", "content": {"answer": "no"}}})
        await world.answer(prompt)
    assert request["params"]["message"] == "Use [redacted:PW]?"
    assert "hunter22" not in json.dumps([entry.frame for entry in world.entries])


async def test_question_and_answer_are_shown_again_on_load(tmp_path):
    async with bridge_world(ASK, says("ok"), cwd=tmp_path, capabilities=FORMS) as world:
        register(world)
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        request = await world.request("elicitation/create")
        await world.send_frames({"id": request["id"], "result": {"action": "accept", "content": {"one": "a"}}})
        await world.answer(prompt)
        live = [update for _id, update in world.updates if update.get("toolCallId") == "c1"]
        world.updates.clear()
        await world.call("session/load", sessionId=session, cwd=world.cwd, mcpServers=[])
    assert [update for _id, update in world.updates if update.get("toolCallId") == "c1"] == live
