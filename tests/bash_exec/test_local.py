"""Commands on this machine: what is said of them, what is left of them (field reports F1–F19)."""

import os
import re
import resource
import signal

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from agent_loop.abort import AbortController
from bash_exec.errors import ExecutorError, SpawnFailed
from bash_exec.seam import CommandRequest, Survivor
from tests.support.executors import local_executor, run_command, spec_of
from tests.support.processes import is_alive, numbers, open_descriptors

PROMISE = 30  # seconds; ten times the longest ladder


# --- what ends when -------------------------------------------------------------------------------------------


async def test_completion_is_keyed_on_exit_so_that_a_background_job_is_named_and_not_waited_for(tmp_path):
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(10):
            result = await run_command(executor, "sleep 60 & echo done $!")
        (job,) = numbers(result.stdout.text)
        assert result.stdout.text == f"done {job}\n"
        assert (result.exit_code, result.background, result.survivors) == (0, (Survivor(job, "sleep 60"),), ())
        assert is_alive(job)
        with anyio.fail_after(PROMISE):
            assert await executor.release("s") == ()
        assert not is_alive(job)


@pytest.mark.parametrize("held", ["</dev/null >/dev/null", "</dev/null >/dev/null 2>&1", ""])
async def test_a_job_that_holds_some_of_the_pipes_is_named_all_the_same(tmp_path, held):
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(10):
            result = await run_command(executor, f"sleep 60 {held} & disown")
        assert [survivor.command for survivor in result.background] == ["sleep 60"]


async def test_a_setsid_child_returns_at_once_and_is_named(tmp_path):
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(10):
            result = await run_command(executor, "setsid sleep 300 &")
        assert [survivor.command for survivor in result.background] == ["sleep 300"]
        await executor.release("s")
        assert not is_alive(result.background[0].pid)


async def test_a_daemon_without_the_marker_is_named_and_ended(tmp_path):
    async with local_executor(tmp_path) as executor:
        command = "env -i setsid sh -c '(/bin/sleep 300 &); exit' >/dev/null 2>&1"
        with anyio.fail_after(10):
            result = await run_command(executor, command)
        assert [survivor.command for survivor in result.background] == ["/bin/sleep 300"]
        await executor.release("s")
        assert not is_alive(result.background[0].pid)


async def test_a_job_that_ends_by_itself_is_forgotten(tmp_path):
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    async with local_executor(tmp_path) as executor:
        await run_command(executor, "true")
        before = open_descriptors()
        result = await run_command(executor, f"read line < {fifo} &")
        assert len(result.background) == 1
        await anyio.to_thread.run_sync(fifo.write_text, "go\n")
        with anyio.fail_after(PROMISE):
            while executor._commands:
                await anyio.lowlevel.checkpoint()
        assert open_descriptors() == before
        assert await executor.release("s") == ()


async def test_output_after_the_exit_arrives_within_the_drain_grace(tmp_path):
    async with local_executor(tmp_path, drain=20.0) as executor:
        with anyio.fail_after(10):
            result = await run_command(executor, "(read -t 0.05 x <> <(:); echo late) & echo early")
        assert result.stdout.text == "early\nlate\n"
        assert result.background == ()


async def test_a_killing_signal_is_named(tmp_path):
    async with local_executor(tmp_path) as executor:
        assert (await run_command(executor, "kill -SEGV $$")).signal == "SIGSEGV"
        assert (await run_command(executor, "kill -40 $$")).signal == "SIGRTMIN+6"


# --- timeout, abort, cancel -----------------------------------------------------------------------------------

STUBBORN = "trap '' TERM; (trap '' TERM; setsid sleep 77) & echo $$ $!; sleep 78; sleep 79"


async def test_a_timeout_kills_what_ignores_term_and_what_left_the_session(tmp_path):
    async with local_executor(tmp_path, grace=0.2) as executor:
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, STUBBORN, timeout_ms=300)
        assert (result.timed_out, result.signal, result.exit_code) == (True, "SIGKILL", None)
        assert (result.survivors, result.background) == ((), ())
        assert not any(is_alive(pid) for pid in numbers(result.stdout.text))


async def test_a_timed_out_command_may_still_exit_by_itself(tmp_path):
    async with local_executor(tmp_path) as executor:
        command = "trap 'echo bye; exit 7' TERM; while :; do read -t 1 x <> <(:); done"
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, command, timeout_ms=300)
        assert (result.timed_out, result.exit_code, result.signal, result.stdout.text) == (True, 7, None, "bye\n")


async def test_a_cancelled_call_leaves_no_process(tmp_path):
    async with local_executor(tmp_path, grace=0.2) as executor:
        seen = bytearray()
        with anyio.fail_after(PROMISE), anyio.CancelScope() as scope:

            def hear(data: bytes) -> None:
                seen.extend(data)
                scope.cancel()

            await run_command(executor, STUBBORN, on_output=hear)
        assert scope.cancelled_caught
        pids = numbers(seen.decode())
        assert len(pids) == 2
        assert not any(is_alive(pid) for pid in pids)


async def test_a_listener_that_raises_ends_the_command(tmp_path):
    async with local_executor(tmp_path, grace=0.2) as executor:
        seen = bytearray()

        def hear(data: bytes) -> None:
            seen.extend(data)
            raise RuntimeError("display broke")

        with anyio.fail_after(PROMISE), pytest.raises(ExceptionGroup) as raised:
            await run_command(executor, STUBBORN, on_output=hear)
        assert raised.group_contains(RuntimeError, match="display broke")
        assert not any(is_alive(pid) for pid in numbers(seen.decode()))


async def test_an_abort_during_the_drain_takes_the_background_with_it(tmp_path):
    async with local_executor(tmp_path, drain=10.0) as executor:
        controller = AbortController()
        with anyio.fail_after(PROMISE):
            async with anyio.create_task_group() as group:
                results = []

                async def run():
                    command = "sleep 60 >/dev/null 2>&1 & echo $!"
                    results.append(await run_command(executor, command, abort=controller))

                group.start_soon(run)
                group.start_soon(_abort_after_exit, executor, controller)
        (result,) = results
        assert (result.aborted, result.exit_code, result.background) == (True, 0, ())
        assert not any(is_alive(pid) for pid in numbers(result.stdout.text))


async def _abort_after_exit(executor, controller):
    while not any(command.control.status == 0 for command in executor._commands.values()):
        await anyio.lowlevel.checkpoint()
    controller.abort("user")


# --- output ---------------------------------------------------------------------------------------------------


async def test_a_listener_hears_the_raw_bytes_while_the_command_runs(tmp_path):
    async with local_executor(tmp_path) as executor:
        fifo = tmp_path / "gate"
        os.mkfifo(fifo)
        heard = []
        async with anyio.create_task_group() as group:

            def hear(data: bytes) -> None:
                if not heard:
                    group.start_soon(anyio.to_thread.run_sync, fifo.write_text, "go\n")
                heard.append(data)

            with anyio.fail_after(PROMISE):
                result = await run_command(executor, f"printf '\\e[1mone'; read x < {fifo}; printf two", on_output=hear)
        assert heard == [b"\x1b[1mone", b"two"]
        assert result.stdout.text == "onetwo"


# --- surroundings ---------------------------------------------------------------------------------------------


async def test_a_command_runs_in_its_directory_under_its_logical_name(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    async with local_executor(tmp_path) as executor:
        result = await run_command(executor, "pwd; pwd -P", cwd=str(tmp_path / "link"))
        assert result.stdout.text == f"{tmp_path / 'link'}\n{tmp_path / 'real'}\n"


async def test_signals_a_python_parent_ignores_are_restored(tmp_path):
    async with local_executor(tmp_path) as executor:
        result = await run_command(executor, "grep -E 'SigIgn|SigBlk' /proc/self/status")
        for line in result.stdout.text.splitlines():
            ignored = int(line.split()[1], 16)
            assert ignored & 0x7FFFFFFF == 0  # 32 and 33 are the C library's own
        assert (await run_command(executor, "yes | head -1")).stderr.text == ""


async def test_a_command_inherits_nothing_but_its_three_descriptors(tmp_path):
    async with local_executor(tmp_path) as executor:
        await executor.start(spec_of(executor, "sleep 60"))
        # no pipeline: its pipes would be open in the shell for a moment; 3 is the directory that ls reads
        result = await run_command(executor, "readlink /proc/$$/fd/0; ls /proc/self/fd")
        assert result.stdout.text.split() == ["/dev/null", "0", "1", "2", "3"]


async def test_the_supervisor_holds_nothing_of_ours(tmp_path):
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        async with local_executor(tmp_path) as executor:
            result = await run_command(
                executor,
                "for p in $PPID $(ps -o ppid= $PPID); do readlink /proc/$p/fd/* /proc/$p/cwd; done",
            )
            targets = {re.sub(r"\[\d+\]", "", line) for line in result.stdout.text.split()}
            assert targets <= {"/dev/null", "socket:", "pipe:", "/", "/proc/self/fd"}
    finally:
        os.close(held)


# --- what cannot be run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "request_", "said"),
    [
        ({}, {"cwd": "/nowhere"}, "cannot run in '/nowhere': No such file"),
        ({}, {"cwd": "/etc/passwd"}, "Not a directory"),
        ({"shell": "no-such-shell"}, {}, "'no-such-shell' cannot be started: No such file"),
        ({}, {"command": "true " + "x" * 1_000_000}, "too long .1000005 characters."),
        ({"interpreter": ["/no/python"]}, {}, "supervisor of commands cannot be started: No such file"),
    ],
)
async def test_what_cannot_be_started_is_an_error_with_its_reason(tmp_path, options, request_, said):
    async with local_executor(tmp_path, **options) as executor:
        spec = executor.resolve(CommandRequest(**{"command": "true", "cwd": "/", "owner": "s", **request_}))
        with anyio.fail_after(PROMISE), pytest.raises(SpawnFailed, match=said):
            await executor.run(spec)
        assert not executor._commands


def free_descriptors() -> list[int]:
    taken = open_descriptors()
    return [number for number in range(4096) if str(number) not in taken]


async def test_without_descriptors_nothing_is_started_and_none_leaks(tmp_path):
    async with local_executor(tmp_path) as executor:
        await run_command(executor, "true")
        before = open_descriptors()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for spare in range(5):  # the listing itself takes one more
            resource.setrlimit(resource.RLIMIT_NOFILE, (free_descriptors()[spare], hard))
            try:
                with pytest.raises(SpawnFailed, match="no pipes"):
                    await run_command(executor, "true")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert open_descriptors() == before
        assert (await run_command(executor, "true")).exit_code == 0


async def test_a_hundred_commands_leave_no_descriptor(tmp_path):
    async with local_executor(tmp_path) as executor:
        await run_command(executor, "true")
        before = open_descriptors()
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(run_command, executor, "echo x")
        assert open_descriptors() == before


# --- whose end takes what with it -----------------------------------------------------------------------------


async def test_a_finished_task_leaves_its_background_to_the_owner(tmp_path):
    async with local_executor(tmp_path) as executor:
        done = anyio.Event()
        executor.on_task_done(lambda _task: done.set())
        task = await executor.start(spec_of(executor, "sleep 60 & echo $!"))
        with anyio.fail_after(PROMISE):
            await done.wait()
            output = executor.read_output(task.id)
            (job,) = numbers(output.text)
            assert (output.status, output.exit_code, is_alive(job)) == ("exited", 0, True)
            killed = await executor.kill(task.id)
        assert killed.status == "exited"
        assert not is_alive(job)


async def test_all_are_dead_after_dispose_whatever_still_runs(tmp_path):
    seen = bytearray()
    results = []
    async with local_executor(tmp_path, grace=0.2) as executor:
        with anyio.fail_after(PROMISE):
            await run_command(executor, "sleep 300 & echo $!", on_output=seen.extend)
            async with anyio.create_task_group() as group:
                ready = anyio.Event()

                def hear(data: bytes) -> None:
                    seen.extend(data)
                    ready.set()

                async def run():
                    results.append(await run_command(executor, STUBBORN, owner="t", on_output=hear))

                group.start_soon(run)
                await ready.wait()
                supervisor = executor.supervisor_pid
                await executor.dispose()
                assert executor.supervisor_pid is None
    assert results[0].signal == "SIGKILL"
    assert len(numbers(seen.decode())) == 3
    assert not any(is_alive(pid) for pid in [*numbers(seen.decode()), supervisor])
    assert os.listdir(tmp_path) == []


async def test_cancelling_the_task_group_ends_background_tasks(tmp_path):
    with anyio.fail_after(PROMISE):
        async with local_executor(tmp_path) as executor:
            told = []
            executor.on_task_done(told.append)
            task = await executor.start(spec_of(executor, "sleep 60"))
            command = executor._tasks[task.id].command
            executor._task_group.cancel_scope.cancel()
    assert command.control.status == -signal.SIGTERM
    assert told == []


async def test_a_command_that_kills_its_monitor_is_ended_and_said_to_be_lost(tmp_path):
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    async with local_executor(tmp_path) as executor, anyio.create_task_group() as group:
        seen = bytearray()

        def hear(data: bytes) -> None:
            seen.extend(data)
            group.start_soon(anyio.to_thread.run_sync, fifo.write_text, "go\n")

        with anyio.fail_after(PROMISE), pytest.raises(ExecutorError, match="held the command was killed"):
            await run_command(executor, f"echo $$; read x < {fifo}; kill -9 $PPID; exec sleep 300", on_output=hear)
        assert not is_alive(numbers(seen.decode())[0])
        assert (await run_command(executor, "echo on")).stdout.text == "on\n"


async def test_a_command_that_kills_its_monitor_at_once_leaves_nothing_either(tmp_path):
    pid_file = tmp_path / "pid"
    async with local_executor(tmp_path) as executor:
        with anyio.fail_after(PROMISE), pytest.raises(ExecutorError, match="killed"):
            await run_command(executor, f"echo $$ > {pid_file}; kill -9 $PPID; exec sleep 300")
        assert not is_alive(int(pid_file.read_text()))


async def test_a_task_that_kills_its_monitor_says_so_in_its_output(tmp_path):
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    async with local_executor(tmp_path) as executor:
        done = anyio.Event()
        executor.on_task_done(lambda _task: done.set())
        task = await executor.start(spec_of(executor, f"read x < {fifo}; kill -9 $PPID; exec sleep 300"))
        with anyio.fail_after(PROMISE):
            await anyio.to_thread.run_sync(fifo.write_text, "go\n")
            await done.wait()
        output = executor.read_output(task.id)
        assert output.status == "killed"
        assert "held the command was killed" in output.text
