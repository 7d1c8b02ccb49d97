"""The loops as the composition wires them: what goes to the agent's log file, and who may watch."""

from acp_bridge.composition.looping import make_loops
from agent_loop.abort import AbortController
from agent_loop.commands.registry import CommandRegistry
from agent_loop.tools.seam import ToolCall, ToolContext
from tests.support.agent_world import CWD, agent_world
from tests.support.loop_world import settled
from tests.support.recording_log import RecordingLog
from tests.support.spy_agent import spied


async def test_what_fails_and_what_cannot_be_read_is_told_to_the_log_file():
    log = RecordingLog()
    async with agent_world() as world:
        commands = CommandRegistry(world.hooks)
        _loops, projections = make_loops(
            world.registry,
            world.tools,
            commands,
            hooks=world.hooks,
            runtime=world.runtime,
            tasks=world.tasks,
            log=log,
        )
        assert [row["name"] for row in commands.advertised()] == ["loop"]
        agent = spied(world.agent())
        call = ToolCall("c", "loop_create", {"prompt": "look", "time_in_seconds": 1}, "")
        await world.tools.execute(call, ToolContext(agent.id, CWD, AbortController().signal), agent=agent.id)
        await settled()
        agent.session.append("loop/change", {"version": 2})
        world.runtime.advance(1000)
        await settled()
        [loop] = (await projections.snapshot(agent.session))["values"]["loop"]["loops"]
        assert loop["prompt"] == "look"
    [failed] = log.named("loop failed")
    assert (failed["session"], failed["code"]) == (agent.id, "LOOP_LOG")
    [unreadable] = log.named("loop not shown")
    assert unreadable["problem"].startswith("event 1: ")
