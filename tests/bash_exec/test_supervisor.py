"""The supervisor and the monitors when something goes wrong: nothing hangs, nothing is left, and it is said."""

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from bash_exec import wire
from bash_exec.errors import ExecutorError, SpawnFailed
from bash_exec.supervisor import BARE_INTERPRETER
from tests.support.executors import MEASURED_INTERPRETER, measured_executor, run_command
from tests.support.processes import all_ended, ended, is_alive, numbers

PROMISE = 30
PATCHED = str(Path(__file__).parents[1] / "support" / "patched_python.py")


def faulty(fault: str) -> tuple[str, ...]:
    return (*MEASURED_INTERPRETER, PATCHED, fault)


async def test_there_is_no_supervisor_before_the_first_command_and_one_for_all_of_them(tmp_path):
    async with measured_executor(tmp_path, interpreter=BARE_INTERPRETER) as executor:
        assert executor.supervisor_pid is None
        assert (await run_command(executor, "echo on")).stdout.text == "on\n"
        first = executor.supervisor_pid
        assert (await run_command(executor, "echo on")).stdout.text == "on\n"
        assert executor.supervisor_pid == first


async def test_a_dead_supervisor_is_replaced_and_its_commands_go_on(tmp_path):
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    async with measured_executor(tmp_path) as executor:
        results = []
        ready = anyio.Event()

        async def run():
            command = f"echo ready; read x < {fifo}; echo $x"
            results.append(await run_command(executor, command, on_output=lambda _data: ready.set()))

        with anyio.fail_after(PROMISE):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await ready.wait()
                dead = executor.supervisor_pid
                os.kill(dead, signal.SIGKILL)
                await ended(dead)
                assert (await run_command(executor, "echo on")).stdout.text == "on\n"
                assert executor.supervisor_pid != dead
                await anyio.to_thread.run_sync(fifo.write_text, "done\n")
        assert results[0].stdout.text == "ready\ndone\n"


async def test_a_supervisor_that_dies_at_the_request_fails_that_command_alone(tmp_path):
    async with measured_executor(tmp_path, interpreter=faulty("dies")) as executor:
        with anyio.fail_after(PROMISE), pytest.raises(SpawnFailed, match="ended while the command was starting"):
            await run_command(executor, "true")


async def test_a_deaf_supervisor_is_given_up(tmp_path):
    async with measured_executor(tmp_path, grace=0.1) as executor:
        await run_command(executor, "true")
        deaf = executor.supervisor_pid
        os.kill(deaf, signal.SIGSTOP)
        executor._supervisor.answer_bound = 0.2
        with anyio.fail_after(PROMISE), pytest.raises(SpawnFailed, match="did not answer"):
            await run_command(executor, "true")
        assert not is_alive(deaf)
        executor._supervisor.answer_bound = 10.0
        assert (await run_command(executor, "echo on")).stdout.text == "on\n"


async def test_a_request_that_a_deaf_supervisor_does_not_read_goes_to_another(tmp_path):
    async with measured_executor(tmp_path) as executor:
        await run_command(executor, "true")
        deaf = executor.supervisor_pid
        os.kill(deaf, signal.SIGSTOP)
        executor._supervisor.answer_bound = 0.2

        async def give_the_next_one_time() -> None:
            while executor.supervisor_pid == deaf:
                await anyio.lowlevel.checkpoint()
            executor._supervisor.answer_bound = PROMISE

        with anyio.fail_after(PROMISE):
            async with anyio.create_task_group() as group:
                group.start_soon(give_the_next_one_time)
                with pytest.raises(SpawnFailed, match="too long"):
                    await run_command(executor, "true " + "x" * 4_000_000)
        assert not is_alive(deaf)


async def test_a_system_without_processes_is_said(tmp_path):
    async with measured_executor(tmp_path, interpreter=faulty("no-fork")) as executor:
        with anyio.fail_after(PROMISE), pytest.raises(SpawnFailed, match="gives no process"):
            await run_command(executor, "true")


async def test_a_monitor_that_breaks_fails_its_command(tmp_path):
    async with measured_executor(tmp_path, interpreter=faulty("broken-monitor")) as executor:
        with anyio.fail_after(PROMISE), pytest.raises(SpawnFailed, match="stopped or killed while"):
            await run_command(executor, "true")


async def test_the_result_names_survivors_with_pid_and_command(tmp_path):
    async with measured_executor(tmp_path, interpreter=faulty("no-kill"), grace=0.1) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, "echo $$; exec sleep 300", timeout_ms=100)
        (pid,) = numbers(result.stdout.text)
        assert [(survivor.pid, survivor.command) for survivor in result.survivors] == [(pid, "sleep 300")]
        assert (result.timed_out, result.exit_code, result.signal) == (True, None, None)
        with anyio.fail_after(PROMISE):
            assert [survivor.pid for survivor in await executor.release("s")] == [pid]
            await executor.dispose()
        assert is_alive(pid)
        os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def gate(path: Path):
    """A fifo for commands to wait at (`read x < PATH`), and the function that opens it."""
    os.mkfifo(path)
    async with anyio.create_task_group() as group:
        yield lambda: group.start_soon(anyio.to_thread.run_sync, path.write_text, "go\n")


async def test_a_stopped_monitor_is_replaced_by_our_own_hand(tmp_path):
    fifo = tmp_path / "gate"
    async with measured_executor(tmp_path, grace=0.1) as executor, gate(fifo) as open_gate:
        with anyio.fail_after(PROMISE):
            command = f"echo $$; read x < {fifo}; kill -STOP $PPID; exec sleep 300"
            result = await run_command(executor, command, timeout_ms=300, on_output=lambda _data: open_gate())
        assert result.timed_out
        with anyio.fail_after(PROMISE):
            await all_ended(numbers(result.stdout.text))


async def test_a_stopped_monitor_is_killed_with_its_command_when_the_agent_goes(tmp_path):
    fifo = tmp_path / "gate"
    async with measured_executor(tmp_path, grace=0.1) as executor, gate(fifo) as open_gate:
        seen = bytearray()
        stopped = anyio.Event()

        def hear(data: bytes) -> None:
            if not seen:
                open_gate()
            seen.extend(data)
            if b"stopped" in seen:
                stopped.set()

        with anyio.fail_after(PROMISE):
            async with anyio.create_task_group() as group:

                async def run() -> None:
                    command = f"echo $$ $PPID; read x < {fifo}; kill -STOP $PPID; echo stopped; exec sleep 300"
                    with pytest.raises(ExecutorError, match="was killed"):
                        await run_command(executor, command, on_output=hear)

                group.start_soon(run)
                await stopped.wait()
                # the agent's death as the supervisor sees it
                executor._supervisor._lifeline.shutdown(2)
            await all_ended(numbers(seen.decode()))


async def test_orphans_of_a_killed_monitor_are_ended_by_the_supervisor(tmp_path):
    pid_file = tmp_path / "pid"
    async with measured_executor(tmp_path, grace=0.1) as executor:
        daemon = f"env -i setsid sh -c 'echo $$ > {pid_file}; exec /bin/sleep 300'"
        command = f"({daemon} &); until [ -s {pid_file} ]; do :; done; kill -9 $PPID"
        with anyio.fail_after(PROMISE):
            with pytest.raises(ExecutorError, match="killed"):
                await run_command(executor, command)
            await ended(int(pid_file.read_text()))


async def test_a_signal_meant_for_others_does_not_end_the_monitor_or_the_supervisor(tmp_path):
    async with measured_executor(tmp_path) as executor:
        first = None
        for number in ("TERM", "INT", "HUP", "QUIT"):
            command = f"kill -{number} $PPID $(ps -o ppid= $PPID); echo still here"
            assert (await run_command(executor, command)).stdout.text == "still here\n"
            first = first or executor.supervisor_pid
            assert (await run_command(executor, "echo on")).stdout.text == "on\n"
            assert executor.supervisor_pid == first


async def test_a_portable_executor_follows_groups(tmp_path):
    async with measured_executor(tmp_path, portable=True, grace=0.2) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, "sleep 300 & echo $!")
            assert [survivor.command for survivor in result.background] == ["sleep 300"]
            result = await run_command(executor, "trap '' TERM; sleep 301 & echo $$ $!; wait", timeout_ms=300)
            assert not any(is_alive(pid) for pid in numbers(result.stdout.text))
            assert result.signal == "SIGKILL"


async def test_a_portable_executor_ends_a_command_that_killed_its_monitor(tmp_path):
    fifo = tmp_path / "gate"
    async with measured_executor(tmp_path, portable=True, grace=0.2) as executor, gate(fifo) as open_gate:
        seen = bytearray()

        def hear(data: bytes) -> None:
            seen.extend(data)
            open_gate()

        with anyio.fail_after(PROMISE), pytest.raises(ExecutorError, match="killed"):
            await run_command(executor, f"echo $$; read x < {fifo}; kill -9 $PPID; exec sleep 302", on_output=hear)
        assert not is_alive(numbers(seen.decode())[0])


async def test_a_command_that_stops_its_monitor_at_once_leaves_nothing(tmp_path):
    pid_file = tmp_path / "pid"
    async with measured_executor(tmp_path, grace=0.1) as executor:
        await run_command(executor, "true")
        executor._supervisor.answer_bound = 1.0
        command = f"echo $$ $PPID > {pid_file}; kill -STOP $PPID; exec sleep 300"
        with anyio.fail_after(PROMISE):
            # whether the monitor could still say that the command has started is a race of theirs
            with suppress(SpawnFailed):
                assert (await run_command(executor, command, timeout_ms=500)).timed_out
            await all_ended(numbers(pid_file.read_text()))


async def test_a_portable_monitor_notices_that_its_orphans_have_ended(tmp_path):
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    async with measured_executor(tmp_path, portable=True) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, f"(read x < {fifo} &)")
            assert len(result.background) == 1
            command = next(iter(executor._commands.values()))
            await anyio.to_thread.run_sync(fifo.write_text, "go\n")
            await command.control.ended.wait()
        assert command.control.gone


async def test_a_monitor_whose_last_lines_were_not_read_ends_its_command(tmp_path):
    async with measured_executor(tmp_path) as executor:
        result = await run_command(executor, "sleep 300 &")
        (command,) = executor._commands.values()
        connection = command.control._connection
        asyncio.get_running_loop().remove_reader(connection)
        connection.send(wire.LIST)
        with anyio.fail_after(PROMISE):
            await anyio.wait_readable(connection)
            executor._drop(command)
            await all_ended([survivor.pid for survivor in result.background])


def test_the_bare_interpreter_is_this_one_without_site():
    assert (sys.executable, "-I", "-S") == BARE_INTERPRETER
