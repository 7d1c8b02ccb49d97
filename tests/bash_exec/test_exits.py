"""A child's exit is awaited without polling, and in a thread where the kernel gives no handle."""

import resource
import subprocess

import anyio
import pytest

from bash_exec.exits import has_ended
from tests.support.processes import open_descriptors


def waiting() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["cat"], stdin=subprocess.PIPE)


@pytest.mark.parametrize("portable", [False, True])
async def test_an_exit_is_awaited_and_the_child_reaped(portable):
    child = waiting()
    assert not await has_ended(child, within=0, portable=portable)
    ends = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                ends.append(await has_ended(child, within=20, portable=portable))

            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            child.stdin.close()
        assert ends == [True]
        assert child.returncode == 0
        assert await has_ended(child, within=0, portable=portable)


async def test_without_a_descriptor_left_a_thread_waits():
    with waiting() as child:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            assert not await has_ended(child, within=0, portable=False)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_cancelled_wait_leaves_the_child_and_no_descriptor():
    with waiting() as child:
        before = open_descriptors()
        with anyio.move_on_after(0) as scope:
            await has_ended(child, within=20, portable=False)
        assert scope.cancelled_caught
        assert child.returncode is None
        assert open_descriptors() == before
