"""Executors for tests, entered in the test body: disposed, and their processes gone, when the block is left."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from bash_exec.environment import scrub_environment
from bash_exec.local import LocalBashExecutor
from bash_exec.seam import CommandRequest, CommandResult, CommandSpec

# Coverage starts through site-packages, which the product's bare interpreter leaves out. It costs each supervisor and
# each command many times what they cost without, so only the tests that are about these processes ask for it.
MEASURED_INTERPRETER = (sys.executable, "-I")


@asynccontextmanager
async def local_executor(root: Path, **options: Any) -> AsyncIterator[LocalBashExecutor]:
    """A LocalBashExecutor that spills below `root`."""
    settings: dict[str, Any] = {
        "environment": scrub_environment(os.environ),
        "spill_root": root / "spill",
        **options,
    }
    async with anyio.create_task_group() as group:
        executor = LocalBashExecutor(task_group=group, **settings)
        try:
            yield executor
        finally:
            with anyio.CancelScope(shield=True), anyio.fail_after(30):
                await executor.dispose()


def measured_executor(root: Path, **options: Any) -> AbstractAsyncContextManager[LocalBashExecutor]:
    """The same, with a supervisor and monitors that take part in the measurement of coverage."""
    return local_executor(root, **{"interpreter": MEASURED_INTERPRETER, **options})


def spec_of(
    executor: LocalBashExecutor, command: str, *, cwd: str = "/", owner: str = "s", timeout_ms: int | None = None
) -> CommandSpec:
    """A resolved command."""
    return executor.resolve(CommandRequest(command, cwd, owner, timeout_ms=timeout_ms))


async def run_command(
    executor: LocalBashExecutor,
    command: str,
    *,
    cwd: str = "/",
    owner: str = "s",
    timeout_ms: int | None = None,
    **more: Any,
) -> CommandResult:
    """Resolve and run in the foreground."""
    spec = spec_of(executor, command, cwd=cwd, owner=owner, timeout_ms=timeout_ms)
    return await executor.run(spec, **more)
