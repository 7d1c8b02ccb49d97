"""`kill -9` in the middle of a turn loses nothing that a client has seen (contract session-log.md §9)."""

import random
import subprocess
import sys

import anyio
import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from tests.support.session_turns import text_turn
from tests.support.session_world import append_all, session_world

# a wire in small: what a tick appended goes out in one write, after the log's
WRITER = """
import os, sys
from pathlib import Path
import anyio
from agent_loop.hooks import Hooks
from agent_loop.runtime import SystemRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.live import LiveSessions
from tests.support.session_turns import tool_turn

async def main():
    runtime = SystemRuntime()
    live = LiveSessions(JsonlSessionStore(Path(sys.argv[1]), runtime), Hooks(print), runtime)
    session = live.create(session_id="s")
    frames = []
    session.subscribe(lambda event: frames.append(f"{event.seq} {event.type}\\n"))
    turn = 0
    while True:
        turn += 1
        for number, (event_type, data) in enumerate(tool_turn(turn, f"call-{turn}")):
            session.append(event_type, data)
            if number % 3 == turn % 3:
                live.write_pending()
                os.write(1, "".join(frames).encode())
                frames.clear()
                await anyio.lowlevel.checkpoint()
        await session.flush()

anyio.run(main)
"""


def seen_until_killed(root, lines: int) -> list[str]:
    """The frames that a client read in full before and after it killed the writer."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE) as writer:
        seen = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        seen += writer.stdout.readlines()
    return [line.decode().strip() for line in seen if line.endswith(b"\n")]


@pytest.mark.parametrize("moment", range(6))
async def test_everything_that_was_seen_is_loaded_and_the_next_turn_works(tmp_path, moment):
    lines = random.Random(moment).randrange(1, 200)
    seen = await anyio.to_thread.run_sync(seen_until_killed, tmp_path, lines)
    async with session_world(JsonlSessionStore(tmp_path, VirtualRuntime())) as world:
        with anyio.fail_after(60):
            session = await world.live.load("s", None)
        logged = [event async for event in session.events()]
        assert [f"{event.seq} {event.type}" for event in logged][: len(seen)] == seen
        assert session.open_turn is None
        assert logged[-1].data["reason"]["kind"] in {"interrupted", "completed"}
        append_all(session, text_turn(session.last_turn + 1))
        assert await session.flush()
