"""A small agent for tests of its death and of systems that refuse: runs one command in a sandbox.

`sandbox_driver.py ROOT COMMAND`: copies the command's output to its stdout; says on stdout why it cannot be run.
"""

import os
import sys
from pathlib import Path

import anyio

from bash_exec.bubblewrap import Reach
from bash_exec.environment import scrub_environment
from bash_exec.errors import ExecutorError
from bash_exec.sandbox import SandboxBashExecutor
from bash_exec.seam import CommandRequest


async def main(root: str, command: str) -> None:
    async with anyio.create_task_group() as group:
        executor = SandboxBashExecutor(
            task_group=group,
            environment=scrub_environment(os.environ),
            spill_root=Path(root, "spill"),
            roots=lambda _owner: [root],
            reach=Reach(),
        )
        try:
            await executor.run(
                executor.resolve(CommandRequest(command, root, "s")), on_output=lambda data: os.write(1, data)
            )
        except ExecutorError as error:
            print(f"{type(error).__name__}: {error}")
        await executor.dispose()


anyio.run(main, *sys.argv[1:])
