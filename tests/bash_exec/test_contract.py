"""The executor contract, held against every executor there is."""

from contextlib import asynccontextmanager

import anyio
import pytest

from bash_exec.errors import SpawnFailed
from bash_exec.fake import FakeBashExecutor, FakeCommand
from bash_exec.seam import CommandRequest, Survivor
from tests.bash_exec.contract import COMMANDS, ExecutorContract, spec_of
from tests.support.bubblewrap import PROBLEM, needs_bwrap, sandbox_executor, stand_in
from tests.support.executors import local_executor


class TestLocalBashExecutor(ExecutorContract):
    def open(self, root):
        return local_executor(root)


class TestPortableBashExecutor(ExecutorContract):
    def open(self, root):
        return local_executor(root, portable=True)


@needs_bwrap
class TestSandboxBashExecutor(ExecutorContract):
    def open(self, root):
        return sandbox_executor(root)


if PROBLEM is not None:

    class TestSandboxBashExecutorWithoutBwrap(ExecutorContract):
        """The same executor over a program that encloses nothing: what it promises does not hang on bubblewrap."""

        def open(self, root):
            return sandbox_executor(root, program=stand_in(root / "bwrap"))


@asynccontextmanager
async def fake_executor(scripts):
    async with anyio.create_task_group() as group:
        executor = FakeBashExecutor(scripts, task_group=group)
        yield executor
        await executor.dispose()


class TestFakeBashExecutor(ExecutorContract):
    def open(self, root):
        return fake_executor(COMMANDS)

    async def test_a_scripted_error_is_raised_and_an_unscripted_command_is_not_found(self):
        scripts = {
            "x": FakeCommand(error=SpawnFailed("no shell")),
            "one": FakeCommand.printing(b"only"),
            "bg": FakeCommand(background=(Survivor(7, "sleep"),)),
        }
        async with fake_executor(scripts) as executor:
            with pytest.raises(SpawnFailed, match="no shell"):
                await executor.run(spec_of(executor, "x"))
            assert (await executor.run(spec_of(executor, "y"))).exit_code == 127
            assert (await executor.run(spec_of(executor, "one"))).stdout.text == "only"
            assert (await executor.run(spec_of(executor, "bg"))).background == (Survivor(7, "sleep"),)
            assert executor.specs == [spec_of(executor, name) for name in ("y", "one", "bg")]

    async def test_output_is_heard_only_by_a_listener(self):
        async with fake_executor(COMMANDS) as executor:
            result = await executor.run(executor.resolve(CommandRequest("printf hello; printf oops >&2", "/", "o")))
            assert result.stdout.text == "hello"
