"""`/export`: the conversation as a file in the session's directory."""

import os
import re

import pytest

from acp_bridge.composition.exports import write_markdown
from agent_loop.session.events import SessionHeader, make_event
from agent_loop.session.store import SessionStoreError
from bash_exec.secrets import SecretRegistry
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import HANG, says


async def exported(world, session, line="/export"):
    world.updates.clear()
    await world.prompt(session, line)
    return world.text()


async def test_the_conversation_is_written_beside_the_work_for_its_owner_alone(tmp_path):
    async with bridge_world(says("the answer"), cwd=tmp_path) as world:
        session = await world.new_session()
        await world.prompt(session, "What is it?")
        said = await exported(world, session)
    path = re.fullmatch("Written: `(.*)`", said)[1]
    assert os.path.dirname(path) == str(tmp_path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    text = (tmp_path / os.path.basename(path)).read_text()
    assert text.startswith("# What is it?\n")
    assert "the answer" in text


async def test_what_exists_is_never_touched(tmp_path):
    mine = tmp_path / "mine.md"
    mine.write_text("mine")
    async with bridge_world(cwd=tmp_path) as world:
        session = await world.new_session()
        assert await exported(world, session, "/export mine.md") == f"`{mine}` exists; give another name."
    assert mine.read_text() == "mine"


async def test_a_directory_gets_a_file_of_its_own_name_and_a_missing_one_is_named(tmp_path):
    (tmp_path / "notes").mkdir()
    async with bridge_world(cwd=tmp_path) as world:
        session = await world.new_session()
        assert f"`{tmp_path}/notes/session-" in await exported(world, session, "/export notes")
        said = await exported(world, session, "/export nowhere/x.md")
    assert said == f"Not written: No such file or directory: `{tmp_path}/nowhere/x.md`"


async def test_in_mid_turn_what_was_said_so_far_is_written(tmp_path):
    half = [*says("half of it")[:2], HANG]
    async with bridge_world(half, cwd=tmp_path) as world:
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.update("agent_message_chunk")
        assert "Written" in await exported(world, session, "/export out.md")
        await world.notify("session/cancel", sessionId=session)
        await world.answer(prompt)
    assert "half of it" in (tmp_path / "out.md").read_text()


async def test_no_secret_leaves_with_the_file(tmp_path):
    async with bridge_world(says("x"), cwd=tmp_path) as world:
        session = await world.new_session()
        await world.prompt(session, "sk-0123456789abcdef0123456789abcdef is mine")
        await exported(world, session, "/export out.md")
    assert "sk-0123456789abcdef" not in (tmp_path / "out.md").read_text()


class UnreadableSession:
    """A session whose store fails in the middle of the log."""

    id, title, secrets = "s-1", None, SecretRegistry()
    header = SessionHeader("s-1", 0)

    def __init__(self, cwd):
        self.cwd = str(cwd)

    async def events(self):
        yield make_event("session/title", 0, 0, {"title": "t", "by": "user"})
        raise SessionStoreError("the log cannot be read", "SESSION_DAMAGED", "s-1")


async def test_a_file_that_could_not_be_written_whole_is_not_there(tmp_path):
    with pytest.raises(SessionStoreError):
        await write_markdown(UnreadableSession(tmp_path), "out.md", find_tool=lambda _name: None)
    assert list(tmp_path.iterdir()) == []
