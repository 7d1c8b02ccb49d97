"""Whatever a command is made of and however it is interrupted: everything of it ends, and what does not is said."""

import signal

import anyio
import anyio.lowlevel
import pytest

from agent_loop.abort import AbortController
from bash_exec.errors import ExecutorError
from bash_exec.process import describe, members, read_proc
from tests.support.executors import local_executor, run_command, spec_of
from tests.support.processes import is_alive, numbers, open_descriptors

PROMISE = 30  # seconds; ten times the longest ladder
long = pytest.mark.long
DEAF = "trap '' TERM; (trap '' TERM; setsid sleep 77) & echo $$ $!; sleep 78; sleep 79"


class DisplayBroke(Exception):
    """What a listener raises."""


@pytest.mark.parametrize("path", ["timeout", "abort", "cancel", "exception", "limit", "release", "dispose"])
async def test_the_kill_ladder_runs_on_every_path(tmp_path, path):
    async with local_executor(tmp_path, grace=0.1, spill_cap=100_000) as executor:
        controller, seen, results = AbortController(), bytearray(), []
        timeout_ms = 400 if path == "timeout" else 60_000
        command = DEAF + "; yes" if path == "limit" else DEAF
        command = command.replace("sleep 78; sleep 79; yes", "yes")

        async def interrupt() -> None:
            if path == "cancel":
                scope.cancel()
            elif path == "abort":
                controller.abort("user")
            elif path == "release":
                assert await executor.release("s") == ()
            elif path == "dispose":
                await executor.dispose()

        def hear(data: bytes) -> None:
            if not seen:
                group.start_soon(interrupt)
            seen.extend(data[:100])
            if path == "exception":
                raise DisplayBroke

        with anyio.fail_after(PROMISE):
            async with anyio.create_task_group() as group:
                with anyio.CancelScope() as scope:
                    try:
                        result = await run_command(
                            executor, command, timeout_ms=timeout_ms, abort=controller, on_output=hear
                        )
                        results.append(result)
                    except* DisplayBroke:
                        assert path == "exception"
        pids = numbers(bytes(seen).splitlines()[0].decode())
        assert len(pids) == 2
        assert not any(is_alive(pid) for pid in pids)
        assert [(result.signal, result.survivors) for result in results] == [("SIGKILL", ())] * len(results)
        assert bool(results) == (path not in {"cancel", "exception"})


ESCAPES = {
    "setsid": "setsid sleep 4242 & wait",
    "double fork": "sh -c '(sleep 4242 &)'; sleep 4242",
    "env -i": "env -i setsid /bin/sleep 4242 & wait",
    "daemon": "env -i setsid sh -c '(/bin/sleep 4242 &)' </dev/null >/dev/null 2>&1; sleep 4242",
}


def below(executor, text: str) -> list[str]:
    found = [describe(process) for process in members(read_proc(), below=executor.supervisor_pid)]
    return [command for command in found if text in command]


@pytest.mark.parametrize("command", ESCAPES.values(), ids=ESCAPES)
async def test_the_sweep_finds_descendants_that_left_the_group(tmp_path, command):
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, f"echo; {command}", timeout_ms=300)
        assert (result.timed_out, result.survivors) == (True, ())
        assert below(executor, "4242") == []


async def test_stopped_children_end_like_all_others(tmp_path):
    command = (
        "sleep 300 & kill -STOP $!; echo $!; setsid sh -c 'echo $$; kill -STOP $$; sleep 300' & "
        'until [ -e go ]; do [ -n "$(ps -o stat= $! | grep T)" ] && touch go; done; echo $$; kill -STOP $$'
    )
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, command, cwd=str(tmp_path), timeout_ms=700)
        pids = numbers(result.stdout.text)
        assert (len(pids), result.timed_out, result.survivors) == (3, True, ())
        assert result.signal == "SIGTERM"  # not KILL: it was let go on to take its TERM
        assert not any(is_alive(pid) for pid in pids)


SWEEP = [("cancel", 60), ("abort", 20), ("release", 20)]
SWEEP += [pytest.param(how, 1000, marks=long) for how, _rounds in SWEEP]


async def ticks_of_a_start(executor) -> int:
    """How many turns of the loop a command takes from the call to its end, for a loop that never rests."""
    ticks = 0
    async with anyio.create_task_group() as group:
        group.start_soon(run_command, executor, "true")
        await anyio.lowlevel.checkpoint()
        while executor._commands or not ticks:
            ticks += 1
            await anyio.lowlevel.checkpoint()
    return ticks


@pytest.mark.parametrize(("how", "rounds"), SWEEP)
async def test_a_spawn_raced_by_cancel_leaves_nothing_at_any_tick(tmp_path, rounds, how):
    async with local_executor(tmp_path) as executor:
        await run_command(executor, "true")
        ticks = await ticks_of_a_start(executor)
        before = open_descriptors()
        for number in range(rounds):
            controller = AbortController()
            with anyio.fail_after(PROMISE):
                async with anyio.create_task_group() as group:

                    async def run(abort=controller) -> None:
                        result = await run_command(executor, "exec sleep 4711", abort=abort)
                        assert result.signal == "SIGTERM"

                    group.start_soon(run)
                    for _ in range(number * ticks // rounds):
                        await anyio.lowlevel.checkpoint()
                    if how == "cancel":
                        group.cancel_scope.cancel()
                    elif how == "abort":
                        await anyio.lowlevel.checkpoint()  # an abort before the call starts is another sentence
                        controller.abort("user")
                    else:
                        while not executor._commands:
                            await anyio.lowlevel.checkpoint()
                        assert await executor.release("s") == ()
        assert below(executor, "4711") == []
        with anyio.fail_after(PROMISE):
            while executor._commands:
                await anyio.lowlevel.checkpoint()
        assert open_descriptors() == before


@pytest.mark.parametrize("rounds", [20, pytest.param(1000, marks=long)])
async def test_a_background_start_raced_by_cancel_leaves_a_task_or_nothing_at_any_tick(tmp_path, rounds):
    async with local_executor(tmp_path) as executor:
        await run_command(executor, "true")
        ticks = await ticks_of_a_start(executor)
        for number in range(rounds):
            with anyio.fail_after(PROMISE):
                async with anyio.create_task_group() as group:
                    group.start_soon(executor.start, spec_of(executor, "exec sleep 4712"))
                    for _ in range(number * ticks // rounds):
                        await anyio.lowlevel.checkpoint()
                    group.cancel_scope.cancel()
                tasks = executor.list("s")
                assert len(below(executor, "4712")) == len(tasks)
                assert await executor.release("s") == ()
                assert below(executor, "4712") == []


async def test_a_command_that_breeds_is_ended_with_its_brood(tmp_path):
    command = "trap '' TERM; breed() { while :; do setsid sleep 4343 & sleep 0.01; done; }; breed & breed"
    async with local_executor(tmp_path, grace=0.1) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, command, timeout_ms=300)
        assert (result.signal, result.survivors) == (signal.SIGKILL.name, ())
        assert below(executor, "4343") == []


async def test_a_ladder_whose_next_step_is_overdue_goes_on(tmp_path):
    # reading the process table takes longer than this grace
    async with local_executor(tmp_path, grace=0.0001) as executor:
        command = "echo $$; sleep 0.1; kill -9 $PPID; exec sleep 4444"
        seen = bytearray()
        with anyio.fail_after(PROMISE), pytest.raises(ExecutorError, match="was killed"):
            await run_command(executor, command, on_output=seen.extend)
        assert not is_alive(numbers(seen.decode())[0])
