"""The executor under mixed hostile commands that are cancelled at random moments (Linux).

`python -m tests.support.stress_bash [--commands 500] [--seconds 120] [--seed 1]` prints what is left behind and exits
with 1 when it is more than was promised.
"""

import argparse
import contextlib
import ctypes
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

from agent_loop.abort import AbortController
from bash_exec.environment import scrub_environment
from bash_exec.errors import ExecutorError
from bash_exec.local import LocalBashExecutor
from bash_exec.process import describe, members, read_proc
from bash_exec.seam import CommandRequest
from tests.support.memory import resident_kib
from tests.support.processes import open_descriptors
from tests.support.ticker import ticker

COMMANDS = (
    "echo quick; exit 3",
    "seq 200000",
    "exec yes",
    "yes >&2 & yes",
    "head -c 100M /dev/zero",
    "head -c 30M /dev/zero | tr '\\0' x",
    "while :; do printf .; done",
    "cat /dev/urandom",
    "sleep 60 & sleep 60 | cat & wait",
    "setsid sleep 60 & echo left",
    "(setsid sh -c 'trap \"\" TERM; while :; do sleep 60; done' &)",
    "env -i setsid sh -c '(/bin/sleep 60 &)' </dev/null >/dev/null 2>&1; sleep 60",
    "trap '' TERM INT HUP; while :; do sleep 60; done",
    "trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done",
    "sleep 60 & kill -STOP $!; kill -STOP $$",
    "for i in 1 2 3 4 5 6 7 8; do setsid sleep 60 & done; wait",
    "trap '' TERM; while :; do setsid sleep 60 & sleep 0.02; done",
    "exec >&- 2>&-; sleep 60",
    "kill -SEGV $$",
    "kill -9 $PPID; exec sleep 60",
    "kill -9 $(ps -o ppid= $PPID); exec sleep 60",
    "sleep 0.1; kill -STOP $PPID; exec sleep 60",
    "pkill -TERM -P $PPID; sleep 60",
    "read line; cat; exec sleep 60",
    "printf '\\033]0;%2000000d' 1; printf '\\xe2\\x82'; exec sleep 60",
    "true " + "x" * 200_000,  # no program can be given an argument of that length
)
OWNERS = ("one", "two", "three")
ACTIONS = ("run", "abort", "cancel", "start", "start and kill", "release")
AT_ONCE = 8
GRACE = 0.2
SPILL_CAP = 8 << 20
LATE = 0.1  # seconds
RSS_LIMIT = 5 * 1024  # KiB
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Plan:
    """One command, and what happens to it `delay` seconds after its start."""

    command: str
    owner: str
    action: str
    delay: float


def plans(count: int, seed: int) -> list[Plan]:
    """Every command about as often as every other."""
    chance = random.Random(seed)
    return [
        Plan(
            COMMANDS[number % len(COMMANDS)],
            chance.choice(OWNERS),
            chance.choice(ACTIONS),
            chance.choice((0.0, 0.004, 0.05, 0.3)) * chance.random(),
        )
        for number in range(count)
    ]


async def play(executor: LocalBashExecutor, plan: Plan) -> None:
    """Run one plan to its end. What a hostile command does to its own start is an `ExecutorError`."""
    spec = executor.resolve(CommandRequest(plan.command, "/", plan.owner, timeout_ms=400))
    with contextlib.suppress(ExecutorError):
        if plan.action.startswith("start"):
            task = await executor.start(spec)
            await anyio.sleep(plan.delay)
            if plan.action == "start and kill":
                await executor.kill(task.id)
            executor.read_output(task.id, offset=0)
            return
        controller = AbortController()
        async with anyio.create_task_group() as group:

            async def interrupt() -> None:
                await anyio.sleep(plan.delay)
                if plan.action == "abort":
                    controller.abort("user")
                elif plan.action == "cancel":
                    group.cancel_scope.cancel()
                elif plan.action == "release":
                    await executor.release(plan.owner)

            group.start_soon(interrupt)
            with contextlib.suppress(ExecutorError):
                await executor.run(spec, abort=controller, on_output=len)


async def work(executor: LocalBashExecutor, todo: Iterator[Plan], played: list[Plan], *, until: float) -> None:
    """Play one plan after the other while there is time."""
    for plan in todo:
        if time.monotonic() > until:
            return
        await play(executor, plan)
        played.append(plan)


async def batch(chosen: list[Plan], root: Path, *, until: float) -> int:
    """Play all of them in an executor of their own, some at once, and dispose of it; how many were played."""
    played: list[Plan] = []
    async with anyio.create_task_group() as group:
        executor = LocalBashExecutor(
            task_group=group,
            environment=scrub_environment(os.environ),
            spill_root=root,
            grace=GRACE,
            spill_cap=SPILL_CAP,
        )
        try:
            todo = iter(chosen)
            async with anyio.create_task_group() as workers:
                for _ in range(AT_ONCE):
                    workers.start_soon(lambda: work(executor, todo, played, until=until))
        finally:
            await executor.dispose()
    return len(played)


async def main(count: int, seconds: float, seed: int) -> int:
    """Warm up, measure, play, measure; the exit code."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what nobody holds any more comes to us
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        await batch(plans(min(count, len(COMMANDS)), seed + 1), root, until=begun + seconds / 3)
        descriptors, resident = open_descriptors(), resident_kib()
        async with ticker() as delays:
            played = await batch(plans(count, seed), root, until=begun + seconds)
        survivors = members(read_proc(), below=os.getpid())
        leaked = open_descriptors() - descriptors
        growth = resident_kib() - resident
    late = [delay for delay in delays if delay > LATE]
    print(f"{played} of {count} commands, {time.monotonic() - begun:.1f} s, seed {seed}")
    print(f"survivors    {len(survivors):8}          allowed 0  {[describe(process) for process in survivors] or ''}")
    print(f"leaked fds   {len(leaked):8}          allowed 0")
    print(f"RSS growth   {growth / 1024:8.1f} MB    below 5 MB")
    print(f"late timers  {len(late):8}          allowed 0  of {len(delays)}, the latest by {max(delays) * 1000:.0f} ms")
    return int(bool(survivors or leaked or late or growth >= RSS_LIMIT or not played))


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    sys.exit(anyio.run(main, given.commands, given.seconds, given.seed))
