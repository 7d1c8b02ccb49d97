"""The installed commands together: an agent that owns a session with a loop, under a clock of its own, and the page."""

import os
import stat
import urllib.error
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.support.agent_process import agent, agent_home
from tests.support.page import page, short_directory

FIXTURE = str(Path("snapshots/loop/session.jsonl").absolute())
CLOCK = 1_790_000_000_000


def until(events, name, wanted):
    """The data of the first event of that name that is wanted."""
    return next(data for kind, data in events if kind == name and wanted(data))


async def test_a_loop_of_a_running_agent_is_seen_firing_and_deleted_through_the_agent():
    replay = {
        "DSH_SNAPSHOT": "replay",
        "DSH_SNAPSHOT_FILE": FIXTURE,
        "DSH_SNAPSHOT_CLOCK": str(CLOCK),
    }
    with short_directory() as folder:
        # a browser that tells what it was given, and what it found there
        browser, seen = folder / "browser", folder / "seen"
        browser.write_text(f'#!/bin/sh\n{{ echo "$1"; cat "${{1#file://}}"; }} > {seen}\n')
        browser.chmod(0o700)
        os.mkfifo(seen)
        home = agent_home(folder, XDG_RUNTIME_DIR=str(folder / "run"), DISPLAY=":0", BROWSER=f"{browser} %s")
        async with agent(home, env=replay) as live:
            await live.initialize()
            session = await live.new_session()
            assert await live.prompt(session, "/help") == "end_turn"
            # without a loop there is no socket
            assert not (folder / "run").exists()
            await live.prompt(session, "/loop 60 Check whether the build is green.")
            [socket] = (folder / "run" / "dsh-acp-agent").iterdir()
            assert stat.S_IMODE(socket.stat().st_mode) == 0o600

            with page(home.env) as served:
                given = await anyio.to_thread.run_sync(seen.read_text)
                command_line, found = given.split("\n", 1)
                assert served.address in found
                assert served.address.split("/")[-2] not in command_line
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    served.open("../wrong/")

                def watched(events, name, wanted=bool):
                    return anyio.to_thread.run_sync(until, events, name, wanted)

                events = served.events(session)
                [loop] = (await watched(events, "loops"))["loops"]
                assert (loop["prompt"], loop["next_at"]) == ("Check whether the build is green.", CLOCK + 60_000)
                assert await watched(events, "owner") == "reachable"
                await live.call("_dsh/clock/advance", ms=60_000)
                [loop] = (await watched(events, "loops"))["loops"]
                assert loop["next_at"] == CLOCK + 120_000
                assert (
                    "The build is green."
                    in (await watched(events, "entries", lambda data: "The build is" in data["html"]))["html"]
                )

                def execute(line):
                    return anyio.to_thread.run_sync(served.execute, session, line)

                wrong = await execute("/loop delete loop_0")
                assert (wrong["ok"], "no loop" in wrong["text"]) == (False, True)
                refused = await execute("/loop 1 evil")
                assert refused["text"].startswith("only")
                done = await execute(f"/loop delete {loop['id']}")
                assert done == {"ok": True, "text": f"Deleted `{loop['id']}`."}
                assert await watched(events, "loops") == {"loops": []}
                # the editor is shown what happened
                await live.until(lambda frame: done["text"] in str(frame))
                await live.call("session/close", sessionId=session)
                assert await watched(events, "owner") == "none"
                await live.load(session)
                assert await watched(events, "owner") == "reachable"
                events.close()
        assert list((folder / "run" / "dsh-acp-agent").iterdir()) == []
        ran = [data["line"].split()[1] for data in home.events(session, "command/run")[1:]]
        assert ran == ["60", "delete", "delete"]
