"""Sandboxes for tests: whether they can run here, an executor that uses them, and programs that stand in for bwrap."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from bash_exec.bubblewrap import Reach
from bash_exec.environment import scrub_environment
from bash_exec.sandbox import SandboxBashExecutor


def _problem() -> str | None:
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    argv = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc"]
    done = subprocess.run([*argv, "true"], capture_output=True, text=True, check=False)
    return f"bwrap cannot run here: {done.stderr.strip()}" if done.returncode else None


PROBLEM = _problem()
needs_bwrap = pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")


@asynccontextmanager
async def sandbox_executor(root: Path, **options: Any) -> AsyncIterator[SandboxBashExecutor]:
    """A SandboxBashExecutor whose every owner works in `root`, which holds the spill folder too."""
    settings: dict[str, Any] = {
        "environment": scrub_environment(os.environ),
        "spill_root": root / "spill",
        "roots": lambda _owner: [str(root)],
        "reach": Reach(),
        **options,
    }
    async with anyio.create_task_group() as group:
        executor = SandboxBashExecutor(task_group=group, **settings)
        try:
            yield executor
        finally:
            with anyio.CancelScope(shield=True), anyio.fail_after(30):
                await executor.dispose()


def stand_in(path: Path, body: str = 'exec "$@"') -> str:
    """An executable that drops the options of bwrap and then does `body` in sh, `$@` being what bwrap would run."""
    path.write_text(f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\n{body}\n', encoding="utf-8")
    path.chmod(0o700)
    return str(path)


def host_pids(predicate: Callable[[list[str]], bool]) -> list[int]:
    """The processes of this machine whose argv fulfils `predicate`, inside sandboxes too."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = Path("/proc", name, "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
        except OSError:
            continue
        if predicate(argv[:-1]):
            found.append(int(name))
    return found
