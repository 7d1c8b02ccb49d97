"""A small agent for tests of its death: runs the commands it is given and copies their output to its stdout.

`bash_driver.py SPILL_ROOT PORTABLE GRACE COMMAND…`: every command runs at once in the foreground.
End of stdin disposes, SIGINT shuts the loop down.
"""

import os
import sys
from pathlib import Path

import anyio

from bash_exec.environment import scrub_environment, secret_names, wipe_environment
from bash_exec.local import LocalBashExecutor
from bash_exec.seam import CommandRequest


async def readable() -> bool:
    await anyio.wait_readable(0)
    return True


async def main(root: str, portable: str, grace: str, *commands: str) -> None:
    parent = dict(os.environ)
    sources = [name for name in parent if name.startswith("KEY_SOURCE")]
    wipe_environment(secret_names(parent, key_sources=sources))
    async with anyio.create_task_group() as group:
        executor = LocalBashExecutor(
            task_group=group,
            environment=scrub_environment(parent, key_sources=sources),
            spill_root=Path(root),
            portable=bool(portable),
            grace=float(grace),
        )

        async def run(command: str) -> None:
            spec = executor.resolve(CommandRequest(command, "/", "s"))
            await executor.run(spec, on_output=lambda data: os.write(1, data))

        for command in commands:
            group.start_soon(run, command.replace("AGENT", str(os.getpid())))
        while await readable() and os.read(0, 4096):
            pass
        await executor.dispose()


anyio.run(main, *sys.argv[1:])
