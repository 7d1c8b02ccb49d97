"""The socket of an agent as the composition wires it: when it is made, and what a bug behind it does."""

from contextlib import asynccontextmanager
from functools import partial

import anyio

from acp_bridge.composition.owning import offer_socket
from acp_bridge.methods.v1.prompt import run_line
from acp_bridge.owner.asking import ask
from acp_bridge.owner.protocol import Answer, Request
from agent_loop.session.file_lock import FileLock
from tests.support.bridge_world import bridge_world
from tests.support.recording_log import RecordingLog


@asynccontextmanager
async def owning(folder, *, line_runner=None, places=None):
    """(world, log, what asks the socket)."""
    log, lock = RecordingLog(), folder / "s.lock"
    (folder / "work").mkdir()
    async with bridge_world(cwd=folder / "work") as world, anyio.create_task_group() as tasks:
        offer_socket(
            line_runner or partial(run_line, world.connection),
            places=lambda: [folder / "run"] if places is None else places,
            hooks=world.agents.hooks,
            runtime=world.agents.runtime,
            tasks=tasks,
            log=log,
        )

        async def asked(session_id, line):
            held = FileLock.take(lock)
            held.tell(world.agents.registry.get(world.session).session.journal.address)
            answer = await ask(lock, Request(session_id, line))
            held.release()
            return answer

        world.session = await world.new_session()
        yield world, log, asked
        tasks.cancel_scope.cancel()


async def test_the_first_loop_brings_the_socket_and_what_comes_over_it_is_a_command_of_the_session(folder):
    async with owning(folder) as (world, _log, asked):
        await world.prompt(world.session, "/help")
        assert not (folder / "run").exists()
        await world.prompt(world.session, "/loop 60 look")
        await world.prompt(world.session, "/loop 90 look again")
        assert len(list((folder / "run").iterdir())) == 1
        assert "look again" in (await asked(world.session, "/loop list")).text
        # the client is shown it, too
        await world.until(lambda frame: "| Loop |" in str(frame))
        ran = [event.data["line"] for event in world.agents.events[world.session] if event.type == "command/run"]
        assert ran[-1] == "/loop list"
        answer = await asked("another", "/loop list")
        assert answer == Answer(ok=False, text="This session is not open in that agent any more.")
        assert await run_line(world.connection, world.session, "no command") is None
        other = await world.new_session()
        await world.prompt(other, "/loop 60 look")
        assert len(list((folder / "run").iterdir())) == 1


async def test_a_bug_behind_the_socket_is_an_answer_and_the_agent_goes_on(folder):
    async def broken(_session_id, _line):
        raise ZeroDivisionError

    async with owning(folder, line_runner=broken) as (world, _log, asked):
        await world.prompt(world.session, "/loop 60 look")
        assert await asked(world.session, "/loop list") == Answer(ok=False, text="Internal error.")
        assert [type(error) for _name, error in world.agents.errors] == [ZeroDivisionError]
        world.agents.errors.clear()
        await world.prompt(world.session, "/help")


async def test_an_agent_that_cannot_make_its_socket_works_without_one(folder):
    async with owning(folder, places=[]) as (world, log, _asked):
        await world.prompt(world.session, "/loop 60 look")
        assert "look" in world.text()
        [told] = log.named("no socket for the local page")
        assert told["problem"] == "there is no private directory with a short path for a socket"
