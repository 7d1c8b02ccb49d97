"""What every executor must do (contract tools-and-bash.md §3); test_contract.py runs it against each of them.

An implementation provides `open()`, a context that yields an executor which understands `COMMANDS`.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from agent_loop.abort import AbortController
from bash_exec.errors import AlreadyAborted, ExecutorError, InvalidCommand, UnknownTask
from bash_exec.fake import FakeCommand
from bash_exec.seam import BackgroundTask, BashExecutor, CommandRequest, CommandSpec

SAY = "printf hello; printf oops >&2"
FAIL = "exit 3"
WAIT = "sleep 300"
SILENT = "true"
COMMANDS = {
    SAY: FakeCommand.printing(b"hello", stderr=b"oops"),
    FAIL: FakeCommand(exit_code=3),
    WAIT: FakeCommand(hangs=True),
    SILENT: FakeCommand(),
}


def spec_of(executor: BashExecutor, command: str, *, owner: str = "one", timeout_ms: int | None = None) -> CommandSpec:
    return executor.resolve(CommandRequest(command, "/", owner, timeout_ms=timeout_ms))


class ExecutorContract(ABC):
    @abstractmethod
    def open(self, root: Path) -> AbstractAsyncContextManager[BashExecutor]: ...

    async def test_defaults_and_caps_are_applied_by_resolve(self, tmp_path):
        async with self.open(tmp_path) as executor:
            assert executor.resolve(CommandRequest("ls", "/w", "o")) == CommandSpec("ls", "/w", "o", 120_000)
            assert executor.resolve(CommandRequest("ls", "/w", "o", timeout_ms=10**9)).timeout_ms == 600_000
            assert executor.resolve(CommandRequest("ls", "/w", "o", workdir="a/b")).cwd == "/w/a/b"
            with pytest.raises(InvalidCommand):
                executor.resolve(CommandRequest(" ", "/w", "o"))

    async def test_a_command_gives_its_streams_and_its_exit_code(self, tmp_path):
        async with self.open(tmp_path) as executor:
            seen = bytearray()
            result = await executor.run(spec_of(executor, SAY), on_output=seen.extend)
            assert (result.stdout.text, result.stderr.text, result.exit_code, result.signal) == (
                "hello",
                "oops",
                0,
                None,
            )
            assert sorted(seen) == sorted(b"hellooops")

    async def test_a_command_that_fails_is_a_result(self, tmp_path):
        async with self.open(tmp_path) as executor:
            result = await executor.run(spec_of(executor, FAIL))
            assert (result.exit_code, result.timed_out, result.aborted) == (3, False, False)

    async def test_an_aborted_call_starts_nothing(self, tmp_path):
        async with self.open(tmp_path) as executor:
            controller = AbortController()
            controller.abort("user")
            with pytest.raises(AlreadyAborted):
                await executor.run(spec_of(executor, SAY), abort=controller)

    async def test_an_abort_that_never_comes_changes_nothing(self, tmp_path):
        async with self.open(tmp_path) as executor:
            result = await executor.run(spec_of(executor, FAIL), abort=AbortController())
            assert (result.exit_code, result.aborted) == (3, False)

    async def test_an_abort_ends_a_running_command(self, tmp_path):
        async with self.open(tmp_path) as executor:
            controller = AbortController()
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    results = []

                    async def run():
                        results.append(await executor.run(spec_of(executor, WAIT), abort=controller))

                    group.start_soon(run)
                    await anyio.wait_all_tasks_blocked()
                    controller.abort("user")
            (result,) = results
            assert result.aborted
            assert (result.signal, result.exit_code, result.timed_out) == ("SIGTERM", None, False)

    async def test_a_timeout_ends_a_running_command(self, tmp_path):
        async with self.open(tmp_path) as executor:
            with anyio.fail_after(30):
                result = await executor.run(spec_of(executor, WAIT, timeout_ms=50))
            assert (result.timed_out, result.timeout_ms, result.signal, result.aborted) == (True, 50, "SIGTERM", False)

    async def test_a_cancelled_run_stays_cancelled(self, tmp_path):
        async with self.open(tmp_path) as executor:
            with anyio.fail_after(30), anyio.move_on_after(0.05) as scope:
                await executor.run(spec_of(executor, WAIT))
            assert scope.cancelled_caught

    async def test_a_background_task_is_told_once_when_it_ends_by_itself(self, tmp_path):
        async with self.open(tmp_path) as executor:
            told: list[BackgroundTask] = []
            done = anyio.Event()

            def listener(task: BackgroundTask) -> None:
                told.append(task)
                done.set()

            executor.on_task_done(listener)
            task = await executor.start(spec_of(executor, FAIL))
            assert (task.id, task.owner, task.command, task.status) == ("bash-1", "one", FAIL, "running")
            with anyio.fail_after(30):
                await done.wait()
            assert told == [BackgroundTask("bash-1", "one", FAIL, "exited", 3)]
            assert executor.get("bash-1") == told[0]

    async def test_a_listener_that_raises_is_survived_and_a_removed_one_is_silent(self, tmp_path):
        async with self.open(tmp_path) as executor:
            told: list[str] = []
            done = anyio.Event()

            def raising(task: BackgroundTask) -> None:
                raise RuntimeError(task.id)

            executor.on_task_done(raising)
            remove = executor.on_task_done(lambda _task: told.append("removed"))
            executor.on_task_done(lambda _task: done.set())
            remove()
            remove()
            await executor.start(spec_of(executor, FAIL))
            with anyio.fail_after(30):
                await done.wait()
            assert told == []

    async def test_output_of_a_task_is_read_once(self, tmp_path):
        async with self.open(tmp_path) as executor:
            done = anyio.Event()
            executor.on_task_done(lambda _task: done.set())
            task = await executor.start(spec_of(executor, SAY))
            with anyio.fail_after(30):
                await done.wait()
            first = executor.read_output(task.id)
            assert sorted(first.text) == sorted("hellooops")
            assert (first.status, first.exit_code, first.signal, first.lost_bytes) == ("exited", 0, None, 0)
            assert executor.read_output(task.id).text == ""

    async def test_output_of_a_task_is_read_by_byte_offsets_as_often_as_wanted(self, tmp_path):
        async with self.open(tmp_path) as executor:
            done = anyio.Event()
            executor.on_task_done(lambda _task: done.set())
            task = await executor.start(spec_of(executor, SAY))
            with anyio.fail_after(30):
                await done.wait()
            for _ in range(2):
                whole = executor.read_output(task.id, offset=0)
                assert (whole.offset, whole.next_offset, len(whole.text)) == (0, 9, 9)
                part = executor.read_output(task.id, offset=4)
                assert (part.text, part.offset, part.next_offset) == (whole.text[4:], 4, 9)
            unread = executor.read_output(task.id)
            assert (unread.text, unread.offset, unread.next_offset) == (whole.text, 0, 9)
            assert executor.read_output(task.id).offset == 9
            assert executor.read_output(task.id, offset=whole.next_offset).text == ""

    async def test_a_killed_task_says_so_and_stays_so(self, tmp_path):
        async with self.open(tmp_path) as executor:
            told: list[BackgroundTask] = []
            executor.on_task_done(told.append)
            task = await executor.start(spec_of(executor, WAIT))
            with anyio.fail_after(30):
                killed = await executor.kill(task.id)
                assert killed == BackgroundTask(task.id, "one", WAIT, "killed", None, "SIGTERM")
                assert await executor.kill(task.id) == killed
            assert told == []

    async def test_tasks_belong_to_their_owner(self, tmp_path):
        async with self.open(tmp_path) as executor:
            mine = await executor.start(spec_of(executor, WAIT))
            other = await executor.start(spec_of(executor, WAIT, owner="two"))
            assert [task.id for task in executor.list("one")] == [mine.id]
            assert executor.owner_of(other.id) == "two"
            with anyio.fail_after(30):
                assert await executor.release("one") == ()
            assert executor.list("one") == []
            assert executor.get(mine.id) is None
            assert [task.status for task in executor.list("two")] == ["running"]

    async def test_a_release_ends_a_foreground_command_of_its_owner_alone(self, tmp_path):
        async with self.open(tmp_path) as executor:
            await executor.start(spec_of(executor, WAIT, owner="two"))
            results = []

            async def run():
                results.append(await executor.run(spec_of(executor, WAIT)))

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(run)
                    await anyio.wait_all_tasks_blocked()
                    await executor.release("one")
            assert results[0].signal == "SIGTERM"
            assert executor.list("two")[0].status == "running"

    async def test_an_unknown_task_is_named(self, tmp_path):
        async with self.open(tmp_path) as executor:
            with pytest.raises(UnknownTask, match="bash-9"):
                executor.read_output("bash-9")
            with pytest.raises(UnknownTask, match="bash-9"):
                await executor.kill("bash-9")
            assert executor.get("bash-9") is None
            assert executor.owner_of("bash-9") is None

    async def test_nothing_starts_after_dispose_and_dispose_is_idempotent(self, tmp_path):
        async with self.open(tmp_path) as executor:
            told: list[BackgroundTask] = []
            executor.on_task_done(told.append)
            task = await executor.start(spec_of(executor, WAIT))
            with anyio.fail_after(30):
                await executor.dispose()
                await executor.dispose()
            assert told == []
            assert executor.get(task.id) is None
            with pytest.raises(ExecutorError, match="disposed"):
                await executor.run(spec_of(executor, SAY))
            with pytest.raises(ExecutorError, match="disposed"):
                await executor.start(spec_of(executor, SAY))
