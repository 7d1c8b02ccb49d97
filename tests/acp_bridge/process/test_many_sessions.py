"""What sessions leave behind in the process that served them."""

import os
import re
from pathlib import Path

from tests.support.agent_process import agent, agent_home


def held(pid: int) -> tuple[int, int]:
    """(resident KiB, open descriptors) of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]), len(os.listdir(f"/proc/{pid}/fd"))


async def test_a_hundred_sessions_that_were_closed_leave_nothing_behind(tmp_path):
    async with agent(agent_home(tmp_path)) as editor:
        await editor.initialize()
        ids = set()

        async def come_and_go(number):
            session = (await editor.call("session/new", cwd=editor.home.cwd, mcpServers=[]))["sessionId"]
            if number % 10 == 0:
                # a command is an event: this one is stored
                await editor.prompt(session, "/status")
            await editor.call("session/close", sessionId=session)
            ids.add(session)

        for number in range(20):
            await come_and_go(number)
        before, descriptors = held(editor.pid)
        for number in range(20, 120):
            await come_and_go(number)
        after, descriptors_after = held(editor.pid)
        assert descriptors_after == descriptors
        assert after - before < 2048
        assert len(ids) == 120
        assert len((await editor.call("session/list"))["sessions"]) == 12
