"""Images and resources of prompts, from the wire to the log, the model and back."""

from base64 import b64encode
from dataclasses import replace

from agent_loop.session.attachments import ref_of
from agent_loop.session.memory import MemorySessionStore
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import says

PNG = b"\x89PNG\r\n\x1a\n"
IMAGE = {"type": "image", "mimeType": "image/png", "data": b64encode(PNG).decode()}
SEE = {"type": "text", "text": "what is that?"}


async def prompted(world, *blocks):
    session = await world.new_session()
    answer = await world.call("session/prompt", sessionId=session, prompt=list(blocks))
    assert answer == {"stopReason": "end_turn"}
    return session


async def test_an_image_is_kept_beside_the_log_and_shown_on_a_load(tmp_path):
    store = MemorySessionStore()
    async with bridge_world(says("red"), cwd=tmp_path, store=lambda _runtime: store, images=True) as world:
        assert world.bridge.parts.options(world.cwd).images is False
        session = await prompted(world, SEE, IMAGE)
        blocks = world.agents.of(world.agents.registry.list()[0], "user/message")[0]["content"]
        assert blocks[1] == {"type": "image", "mimeType": "image/png", "ref": ref_of(PNG)}
        request = world.agents.adapter.requests[0]
        assert request.messages[0]["content"] == blocks
        assert await request.attachment(ref_of(PNG)) == PNG
        assert store.logs[session].attachments == {ref_of(PNG): PNG}
        await world.call("session/load", sessionId=session, cwd=world.cwd, mcpServers=[])
        assert [each["content"] for _id, each in world.updates if each["sessionUpdate"] == "user_message_chunk"] == [
            SEE,
            IMAGE,
        ]


async def test_a_model_that_sees_none_is_said_to_in_the_turn_that_has_one(tmp_path):
    async with bridge_world(says("?"), says("!"), cwd=tmp_path, images=True) as world:
        session = await prompted(world, IMAGE)
        assert "This model cannot see images" in world.text()
        said = len(world.text())
        await world.prompt(session)
        assert "cannot see" not in world.text()[said:]


async def test_a_model_that_sees_them_needs_no_line(tmp_path):
    async with bridge_world(says("red"), cwd=tmp_path, images=True) as world:
        session = await world.new_session()
        agent = world.agents.registry.list()[0]
        agent.options = replace(agent.options, images=True)
        await world.call("session/prompt", sessionId=session, prompt=[IMAGE])
        assert world.text() == "red"


async def test_an_image_whose_file_is_gone_is_shown_as_a_note(tmp_path):
    store = MemorySessionStore()
    async with bridge_world(says("red"), cwd=tmp_path, store=lambda _runtime: store, images=True) as world:
        session = await prompted(world, IMAGE)
        await world.call("session/close", sessionId=session)
        store.logs[session].attachments.clear()
        await world.call("session/load", sessionId=session, cwd=world.cwd, mcpServers=[])
        assert {"type": "text", "text": "[image]"} in [
            each["content"] for _id, each in world.updates if each["sessionUpdate"] == "user_message_chunk"
        ]
