"""session/list, through the wire."""

import base64
import json
import re
from functools import partial

import pytest

from acp_bridge.methods.v1.listing import iso_time
from agent_loop.session.events import SessionHeader
from agent_loop.session.jsonl import JsonlSessionStore
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import says
from tests.support.session_turns import events_of, text_turn


async def add(world, session_id, cwd, time=0, pairs=()):
    async def events():
        for event in events_of([*pairs, *text_turn(1)], time=time):
            yield event

    await world.agents.store.add(SessionHeader(session_id, 0, cwd=cwd), events())


async def pages(world, **params):
    """All pages."""
    found = [await world.call("session/list", **params)]
    while cursor := found[-1].get("nextCursor"):
        found.append(await world.call("session/list", **params, cursor=cursor))
    return [[row["sessionId"] for row in page["sessions"]] for page in found]


@pytest.mark.parametrize("params", [{}, {"cwd": None, "cursor": None}, {"cwd": "/unused"}])
async def test_no_session_is_an_empty_list(tmp_path, params):
    async with bridge_world(cwd=tmp_path) as world:
        assert await world.call("session/list", **params) == {"sessions": []}


async def test_without_params_everything_is_listed(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        await add(world, "s", "/a")
        await world.send_frames(
            {"id": "none", "method": "session/list"}, {"id": "null", "method": "session/list", "params": None}
        )
        for request_id in ("none", "null"):
            (row,) = (await world.answer(request_id))["result"]["sessions"]
            assert row["sessionId"] == "s"


async def test_a_row_tells_where_it_belongs_what_it_is_called_and_when_it_was_used(tmp_path):
    async with bridge_world(says("ok"), cwd=tmp_path) as world:
        untouched = await world.new_session()
        session = await world.new_session()
        world.agents.runtime.advance(1_234)
        await world.prompt(session, "fix the build")
        (row,) = (await world.call("session/list"))["sessions"]
        assert row == {
            "sessionId": session,
            "cwd": str(tmp_path),
            "title": "fix the build",
            "updatedAt": "2023-11-14T22:13:21.234Z",
        }
        assert untouched != session, "a session without a turn is not stored, and not listed"


async def test_listing_opens_nothing(tmp_path):
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with bridge_world(says("ok"), cwd=tmp_path, store=store) as world:
        session = await world.new_session()
        await world.prompt(session)
    async with bridge_world(cwd=tmp_path, store=store) as world:
        (row,) = (await world.call("session/list"))["sessions"]
        assert row["sessionId"] == session
        error = await world.error("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "x"}])
        assert error["code"] == -32002
        assert world.agents.registry.list() == ()


async def test_pages_hold_fifty_and_each_session_once_and_the_last_has_no_cursor(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        for number in range(101):
            # in pairs of one time, so that the id decides across a page's edge
            await add(world, f"s{number:03}", "/a", time=number // 2 * 10)
        found = await pages(world)
    assert [len(page) for page in found] == [50, 50, 1]
    everything = [session_id for page in found for session_id in page]
    assert everything == sorted(everything, key=lambda session_id: (-(int(session_id[1:]) // 2), session_id))


async def test_exactly_one_full_page_has_no_next(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        for number in range(50):
            await add(world, f"s{number}", "/a")
        assert [len(page) for page in await pages(world)] == [50]


async def test_the_directory_is_chosen_before_the_page_is_cut(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        for number in range(60):
            await add(world, f"s{number}", "/rare" if number % 20 == 0 else "/often")
        assert [sorted(page) for page in await pages(world, cwd="/rare")] == [["s0", "s20", "s40"]]
        assert [len(page) for page in await pages(world, cwd="/often/")] == [50, 7]


async def test_what_is_used_or_deleted_between_two_pages_shifts_nothing(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        for number in range(60):
            await add(world, f"s{number:02}", "/a", time=-number)
        first = await world.call("session/list")
        for gone in ("s00", "s49", "s50"):
            await world.call("session/delete", sessionId=gone)
        await add(world, "new", "/a", time=10_000)
        second = await world.call("session/list", cursor=first["nextCursor"])
    assert [row["sessionId"] for row in second["sessions"]] == [f"s{number}" for number in range(51, 60)]


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "xyz",
        "!!!",
        "\u00e4",
        encoded([1]),
        encoded(["x", 1]),
        encoded({"a": 1}),
        encoded([1, "x", 2]),
        "W1tb" * 999,
    ],
)
async def test_a_cursor_of_somebody_else_is_refused(tmp_path, cursor):
    async with bridge_world(cwd=tmp_path) as world:
        error = await world.error("session/list", cursor=cursor)
    assert error["code"] == -32602
    assert "cursor" in error["message"]


@pytest.mark.parametrize("params", [{"cwd": "relative"}, {"cwd": ""}, {"cwd": 7}, {"cursor": 7}])
async def test_other_params_than_the_protocols_are_refused(tmp_path, params):
    async with bridge_world(cwd=tmp_path) as world:
        assert (await world.error("session/list", **params))["code"] == -32602


async def test_a_session_without_a_directory_is_not_offered_to_an_editor(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        await add(world, "homeless", None)
        assert await world.call("session/list") == {"sessions": []}


async def test_a_disk_that_fails_is_an_error_and_not_an_empty_list(tmp_path):
    (tmp_path / "root").write_text("a file in the way")
    store = partial(JsonlSessionStore, tmp_path / "root")
    async with bridge_world(cwd=tmp_path, store=store) as world:
        error = await world.error("session/list")
    assert (error["code"], error["data"]["reason"]) == (-32603, "unreadable")
    assert "cannot be listed" in error["message"]


async def test_with_a_broken_configuration_nothing_is_listed(tmp_path):
    async with bridge_world(cwd=tmp_path, problem="config.toml: broken") as world:
        assert (await world.error("session/list"))["data"]["reason"] == "config"


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_001, "2023-11-14T22:13:20.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (10**30, "9999-12-31T23:59:59.999Z"),
        (-(10**30), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_is_iso_8601_with_milliseconds_whatever_the_clock_said(epoch_ms, text):
    assert iso_time(epoch_ms) == text
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
