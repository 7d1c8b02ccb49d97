"""Which address answers what."""

import json
from contextlib import asynccontextmanager

import pytest
from httpx import ASGITransport, AsyncClient

from acp_bridge.owner.protocol import Answer
from acp_bridge.ui.application import make_application
from acp_bridge.ui.following import Sources
from agent_loop.session.file_lock import FileLock
from agent_loop.session.layout import find_log, lock_path
from tests.support.immediate_runtime import ImmediateRuntime
from tests.support.page import loop_id, owner_socket, short_directory
from tests.support.session_commands import CommandWorld, tools
from tests.support.session_turns import text_turn


@pytest.fixture
def world(tmp_path):
    return CommandWorld(tmp_path / "sessions")


@asynccontextmanager
async def client(world):
    def find(session_id):
        return find_log(world.root, session_id, None) if session_id else None

    looks = iter([False])
    sources = Sources(world.store(world.root), find, tools().get, ImmediateRuntime())
    application = make_application(sources, short_path=str, ended=lambda: next(looks, True))
    async with AsyncClient(transport=ASGITransport(application), base_url="http://127.0.0.1") as opened:
        yield opened


async def test_the_list_leads_to_a_session_whose_events_are_told(world):
    world.write("a/b", [("session/title", {"title": "A title", "by": "user"}), *text_turn(1)])
    async with client(world) as page:
        listed = await page.get("/")
        assert 'href="session/a%2Fb">A title<' in listed.text
        assert (await page.get("/?page=x")).text == (await page.get("/?page=99999999999")).text
        shown = await page.get("/session/a%2Fb")
        assert "<title>A title</title>" in shown.text
        told = await page.get("/events/a%2Fb")
        assert told.headers["content-type"].startswith("text/event-stream")
        assert told.text.startswith("event: begin\n")


async def test_a_session_that_is_not_there_is_not_shown(world):
    async with client(world) as page:
        assert "No sessions are stored yet." in (await page.get("/")).text
        for path in ("/session/none", "/session/", "/none", "/page.html"):
            assert (await page.get(path)).status_code == 404
        assert "no session 'none'" in (await page.get("/events/none")).text


async def test_a_root_that_cannot_be_read_is_told(world):
    world.root.parent.mkdir(exist_ok=True)
    world.root.write_text("")
    async with client(world) as page:
        for path in ("/", "/session/s"):
            answer = await page.get(path)
            assert (answer.status_code, "cannot be listed" in answer.text) == (500, True)


async def test_what_the_pages_need_is_served_with_its_type(world):
    async with client(world) as page:
        for name, media in (
            ("page.js", "text/javascript"),
            ("loops.js", "text/javascript"),
            ("page.css", "text/css"),
            ("transcript.css", "text/css"),
            ("icon.svg", "image/svg+xml"),
        ):
            answer = await page.get(f"/{name}")
            assert answer.headers["content-type"].startswith(media)
            assert answer.text


async def test_a_command_line_goes_to_the_owner_and_no_other_line_does(world):
    log = world.write("s", text_turn(1))
    line = f"/loop delete {loop_id(1)}"

    async def execute(request):
        return Answer(ok=True, text=request.line)

    with short_directory() as folder:
        async with client(world) as page, owner_socket(folder, execute) as address:

            async def executed(body, session_id="s"):
                answer = await page.post(f"/execute/{session_id}", content=body)
                return answer.json()

            assert (await executed(json.dumps({"line": line})))["text"].startswith("No running agent")
            lock = FileLock.take(lock_path(log))
            lock.tell(address)
            assert await executed(json.dumps({"line": line})) == {"ok": True, "text": line}
            assert (await executed(json.dumps({"line": line}), "none"))["text"] == "No such session is stored."
            for body in ('{"line":"/loop 1 evil"}', "", "[]", "{}", "1", "[" * 3000, '{"line":1}', "x" * 9000):
                assert (await executed(body))["ok"] is False
            lock.release()
