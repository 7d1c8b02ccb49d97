"""When a log reaches the kernel and when the platter, along a whole turn (contract session-log.md §9)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import decode_event
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.tools.seam import ToolContext, ToolOutcome
from tests.support.agent_world import CWD, agent_world
from tests.support.failing_files import FailingFiles
from tests.support.scripted_adapter import Gate, calls, says
from tests.support.scripted_tool import ScriptedTool, outcome


def store_in(root: Path, files: FailingFiles) -> Any:
    return lambda runtime: JsonlSessionStore(root, runtime, operations=files)


def types(content: bytes) -> Iterator[str]:
    return (decode_event(line).type for line in content.splitlines()[1:])


async def test_calls_are_durable_before_their_bodies_run_and_the_turn_before_it_is_answered(tmp_path):
    files = FailingFiles()
    durable: dict[str, list[str]] = {}
    async with agent_world(
        calls(("c1", "echo", {"value": "x"}), ("c2", "echo", {"value": "y"})),
        calls(("c3", "alone", {"value": "z"})),
        says("done"),
        store=store_in(tmp_path, files),
    ) as world:
        agent = world.agent()
        path = log_path(tmp_path, agent.id, CWD)

        def on_the_platter() -> list[str]:
            return list(types(path.read_bytes()[: files.durable]))

        async def body(arguments: Any, _context: ToolContext) -> ToolOutcome:
            durable[arguments["value"]] = on_the_platter()
            return outcome("ran")

        world.tools.register(ScriptedTool("echo", body, concurrency_safe=True))
        world.tools.register(ScriptedTool("alone", body))
        world.hooks.on("agent/turn-end", lambda *_told: durable.update(end=on_the_platter()))
        await world.prompt(agent)
    assert durable["x"][-2:] == durable["y"][-2:] == ["tool/call", "tool/call"]
    assert durable["z"][-1] == "tool/call"
    assert durable["end"][-1] == "turn/end"
    assert [len(durable[key]) for key in ("x", "z", "end")] == sorted(len(found) for found in durable.values())[1:]


async def test_what_a_turn_has_said_is_in_the_kernel_before_the_next_chunk_comes(tmp_path):
    gate = Gate()
    said = says("hello")
    async with agent_world([*said[:2], gate, *said[2:]], store=store_in(tmp_path, FailingFiles())) as world:
        agent = world.agent()
        agent.followup(world.message("go"))
        await gate.reached.wait()
        content = log_path(tmp_path, agent.id, CWD).read_bytes()
        assert list(types(content))[-1] == "assistant/chunk"
        gate.open()
        await agent.when_idle()


async def test_a_disposed_agent_leaves_a_durable_log(tmp_path):
    files = FailingFiles()
    async with agent_world(says("hello"), store=store_in(tmp_path, files)) as world:
        agent = world.agent()
        await world.prompt(agent)
        agent.session.append("mode/change", {"modeId": "full"})
        await agent.dispose()
        content = log_path(tmp_path, agent.id, CWD).read_bytes()
        assert files.durable == len(content)
        assert list(types(content))[-1] == "mode/change"


async def test_a_clock_that_goes_backwards_turns_no_number_back(tmp_path):
    async with agent_world(fallback=says("hello"), store=store_in(tmp_path, FailingFiles())) as world:
        agent = world.agent()
        await world.prompt(agent)
        world.runtime.advance(-3_600_000)
        await world.prompt(agent)
        await agent.dispose()
        again = JsonlSessionStore(tmp_path, VirtualRuntime())
        events: list[Any] = []
        opened = await again.load(agent.id, CWD, on_event=events.append)
        await opened.journal.close()
    times = [event.time for event in events]
    assert times != sorted(times)
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.data["reason"]["kind"] for event in events if event.type == "turn/end"] == ["completed"] * 2
