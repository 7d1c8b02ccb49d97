"""The MCP servers of a session: real programs, from their start to their end."""

import shutil

import anyio
import anyio.to_thread
import pytest

from agent_loop.abort import AbortController
from agent_loop.mcp.seam import Limits, Refused, StdioServer
from agent_loop.vocabulary import text_block
from tests.support.mcp_server import PIXEL
from tests.support.mcp_world import mcp_world, program
from tests.support.processes import all_ended, is_alive
from tests.support.scripted_adapter import calls, says


async def test_the_first_model_call_waits_for_the_tools_of_the_servers(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("my server"))
        (request,) = world.agents.adapter.requests
    names = [row["name"] for row in request.tools]
    assert {"my_server__say", "my_server__draw"} <= set(names)
    assert world.notices() == []


async def test_a_model_calls_a_tool_of_a_server(tmp_path):
    answers = (calls(("c1", "s__say", {"text": "hé"})), says("done"))
    async with mcp_world(tmp_path, *answers) as world:
        await world.open(program("s"))
        (result,) = world.agents.of(world.agent, "tool/result")
    assert (result["content"], result["isError"]) == ([text_block("hé")], False)


async def test_results_come_as_text_and_images_and_failures_as_errors(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        drawn = await world.call("s__draw")
        failed = await world.call("s__fail")
        refused = await world.call("s__refuse")
        odd = await world.call("s__odd")
        roots = await world.text("s__roots")
    assert drawn.content == [text_block("a dot"), {"type": "image", "data": PIXEL, "mimeType": "image/png"}]
    assert (failed.content, failed.is_error) == ([text_block("it did not work")], True)
    assert refused.content == [text_block("Error: the MCP server s: it answered: no such thing")]
    assert [block["text"] for block in odd.content] == ["[content that the protocol does not know: riddle]", "[1]"]
    assert roots == tmp_path.as_uri()


async def test_a_tool_that_says_it_only_reads_is_taken_at_its_word(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        say, draw = (world.agents.tools.get(name, world.agent.id) for name in ("s__say", "s__draw"))
    assert (say.effect, say.concurrency_safe) == ("read", True)
    assert (draw.effect, draw.concurrency_safe) == ("execute", False)
    assert say.description == "Say it again."
    assert draw.description == "draw of s"


async def test_a_server_that_gets_other_tools_is_listed_again(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        unchanged = world.agents.tools.get("s__draw", world.agent.id)
        async with anyio.create_task_group() as group:
            group.start_soon(world.tools_changed)
            await world.call("s__grow")
        while "s__later" not in world.tools():
            await world.tools_changed()
        assert world.tools()["s__say"]["description"] == "Say it once more."
        assert world.agents.tools.get("s__draw", world.agent.id) is unchanged
        assert await world.text("s__later") == '{\n  "here": true\n}'


async def test_what_is_not_there_is_named_once_and_the_turn_goes_on(tmp_path):
    bad = (
        program("dead", "dead"),
        StdioServer("missing", "/no/such/program"),
        program("old", "old"),
        Refused("odd", "it is odd"),
    )
    async with mcp_world(tmp_path) as world:
        await world.open(*bad, program("good"), program("toolless", "toolless"))
        await world.agents.prompt(world.agent)
        reasons = world.agents.reasons(world.agent)
    first, second = world.notices()
    assert first == "MCP server is not available: odd\nodd: it is odd"
    assert second.startswith("MCP servers are not available: ")
    assert "dead: it ended with exit code 7 (no configuration here)" in second
    assert "missing: it ended with exit code 127" in second
    assert "old: its greeting does not fit the protocol (Unsupported protocol version" in second
    assert "good" not in second
    assert reasons == [{"kind": "completed"}] * 2


async def test_a_server_that_is_not_ready_is_left_out_at_first_and_named_when_its_time_is_up(tmp_path):
    async with mcp_world(tmp_path, limits=Limits(connect=0.4, call=5, first_call_waits=0.3)) as world:
        await world.open(program("mute", "silent"))
        (late,) = world.notices()
        while len(world.notices()) < 2:
            await world.agents.prompt(world.agent)
    assert late == "MCP server is not available: mute\nmute: it is still starting; its tools come when it is ready"
    assert world.notices()[1].endswith("mute: it was not ready within 0.4 s")


async def test_a_first_call_that_waits_for_nobody_names_them_all(tmp_path):
    async with mcp_world(tmp_path, limits=Limits(connect=20, call=20, first_call_waits=0)) as world:
        await world.open(program("a"), program("b"))
    assert world.notices()[0].startswith("MCP servers are not available: a, b")


async def test_the_tools_of_a_server_that_has_died_fail_and_say_why(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        dying = await world.text("s__die")
        while not world.notices():
            await world.agents.prompt(world.agent)
        after = await world.text("s__say", text="x")
        await world.agents.prompt(world.agent)
    assert dying == "Error: the MCP server s: the connection to it has ended"
    assert after.startswith("Error: the MCP server s is gone: it ended with exit code 3 (I cannot go on)")
    assert world.notices() == ["MCP server is not available: s\ns: it ended with exit code 3 (I cannot go on)"]


async def test_a_cancelled_call_tells_the_server_and_ends_at_once(tmp_path):
    abort = AbortController()
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        outcomes = []

        async def call():
            outcomes.append(await world.call("s__wait", abort.signal))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await world.told("waiting")
            abort.abort("session/cancel")
            cancelled = await world.told("cancelled")
    assert outcomes[0].error == {"name": "AbortError", "code": "aborted"}
    assert "requestId" in cancelled


async def test_a_call_that_takes_too_long_is_given_up(tmp_path):
    async with mcp_world(tmp_path, limits=Limits(connect=20, call=0.05, first_call_waits=20)) as world:
        await world.open(program("s"))
        assert await world.text("s__wait") == "Error: the MCP server s: it did not answer within 0.05 s"


async def test_noise_on_stdout_goes_into_the_servers_own_log(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", "noisy"))
        assert "s__say" in world.tools()
    log = tmp_path / "logs" / "s.log"
    assert log.read_text(encoding="utf-8") == "[stdout] Starting up … {not json}\n[stdout] [1,2\n"
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_what_a_server_was_given_in_secret_is_known_as_a_secret(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", TEST_SECRET="hunter2-hunter3"))
        assert await world.text("s__secret") == "it is hunter2-hunter3"
        assert world.agents.secrets.redact("it is hunter2-hunter3") == "it is [redacted:TEST_SECRET]"


async def test_a_server_that_speaks_only_the_later_protocol_is_greeted_in_it(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", "modern"))
        assert await world.text("s__say", text="later") == "later"


async def test_a_session_that_ends_takes_its_servers_and_their_children_along(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", "family"))
        pids = await world.pids()
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        await world.host.release(world.agent.id)
        await all_ended(pids)
        assert world.tools() == {}
        await world.host.release(world.agent.id)


async def test_a_server_that_does_not_hear_is_killed(tmp_path):
    async with mcp_world(tmp_path, limits=Limits(connect=20, call=20, first_call_waits=0.01)) as world:
        world.host.open(world.agent, [program("s", "deaf")])
        pid = int(await world.told("deaf"))
        await world.host.dispose()
        assert not is_alive(pid)
        assert world.tools() == {}


@pytest.mark.parametrize("again", [(program("s"),), ()], ids=["the same", "none"])
async def test_a_live_session_keeps_its_servers_when_it_is_opened_again(tmp_path, again):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        pids = await world.pids()
        await world.open(*again)
        assert await world.pids() == pids


async def test_a_live_session_that_is_given_other_servers_changes_to_them(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("one"))
        (pid,) = await world.pids("one")
        await world.open(program("two"))
        assert not is_alive(pid)
        assert {name.partition("__")[0] for name in world.tools()} == {"two"}


async def test_servers_and_tools_of_one_name_are_told_apart(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"), program("s"))
        assert {name.partition("__")[0] for name in world.tools()} == {"s", "s_2"}


async def test_a_session_that_is_closed_at_once_starts_nothing(tmp_path):
    async with mcp_world(tmp_path) as world:
        world.host.open(world.agent, [program("s", "noisy")])
        await world.host.release(world.agent.id)
    assert not (tmp_path / "logs").exists()


async def test_a_directory_that_is_gone_is_said(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    async with mcp_world(gone) as world:
        shutil.rmtree(gone)
        await world.open(program("s"))
    assert world.notices()[0].startswith("MCP server is not available: s\ns: it cannot run in ")


async def test_a_list_that_is_endless_is_read_as_far_as_makes_sense(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", "endless"))
        assert {"s__say", "s__pids"} <= set(world.tools())


async def test_a_list_that_cannot_be_had_is_said(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("none", "listless"), program("odd", "wrong"))
    (notice,) = world.notices()
    assert "none: it answered: no list" in notice
    assert "odd: its list of tools does not fit the protocol (" in notice


async def test_an_answer_that_is_none_is_an_error(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s"))
        assert "the MCP server s: its answer does not fit the protocol (" in await world.text("s__empty")


async def test_a_list_that_cannot_be_had_again_leaves_the_tools_as_they_are(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", "fickle"))
        before = world.tools()
        for tool in ("s__grow", "s__pids", "s__pids"):
            await world.text(tool)
        assert world.tools() == before
    log = (tmp_path / "logs" / "s.log").read_text(encoding="utf-8")
    assert "the tools could not be listed again: it answered: not now" in log


async def test_a_list_that_comes_when_the_session_ends_offers_nothing_any_more(tmp_path):
    async with mcp_world(tmp_path) as world:
        await world.open(program("s", "slow"))
        await world.text("s__grow")
        await world.told("waiting")
        async with anyio.create_task_group() as group:
            group.start_soon(world.host.release, world.agent.id)
            await anyio.lowlevel.checkpoint()
            assert world.tools() == {}
            await anyio.to_thread.run_sync((tmp_path / "go").write_text, "on")
        assert world.tools() == {}
