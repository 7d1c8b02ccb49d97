"""Programs that speak over their standard streams."""

import os
from contextlib import asynccontextmanager

import anyio
import pytest

from bash_exec import service as module
from bash_exec.errors import ExecutorError, SpawnFailed
from bash_exec.service import Services
from tests.support.processes import is_alive, numbers, open_descriptors

LIMIT = 20


@asynccontextmanager
async def started(*argv, directory="/", portable=False, **environment):
    services = Services(environment={"PATH": os.environ["PATH"]}, portable=portable)
    with anyio.fail_after(LIMIT):
        try:
            service = await services.start(argv, directory=directory, environment=environment)
            try:
                yield service
            finally:
                await service.end()
        finally:
            await services.close()


async def whole(read):
    parts = []
    while data := await read():
        parts.append(data)
    return b"".join(parts).decode()


@pytest.mark.parametrize("portable", [False, True])
async def test_a_program_hears_speaks_and_ends_with_its_input(portable):
    before = open_descriptors()
    async with started("cat", portable=portable) as service:
        await service.send(b"hello")
        assert await service.read_output() == b"hello"
        assert service.ending is None
        assert is_alive(service.pid)
    assert service.ending == "it ended with exit code 0"
    assert open_descriptors() == before


async def test_it_gets_the_environment_and_the_directory_that_it_is_given(tmp_path):
    script = 'echo "$A $PWD $HOME"; echo oops >&2'
    async with started("sh", "-c", script, directory=str(tmp_path), A="b c", HOME="") as service:
        assert await whole(service.read_output) == f"b c {tmp_path} \n"
        assert await whole(service.read_errors) == "oops\n"
        await service.exited()


async def test_a_program_that_is_not_there_ends_and_says_so():
    async with started("/no/such/program") as service:
        assert "No such file" in await whole(service.read_errors)
        await service.exited()
        assert service.ending == "it ended with exit code 127"


async def test_a_large_message_goes_out_whole():
    async with started("sh", "-c", "head -c 1000000 | wc -c") as service:
        await service.send(b"x" * 1_000_000)
        assert numbers(await whole(service.read_output)) == [1_000_000]


async def talk_on(service):
    while True:  # the processes above it let go of their copies a moment later
        await service.send(b"x")


async def test_who_closed_its_input_cannot_be_told_anything():
    async with started("sh", "-c", "exec <&-; echo closed; sleep 300") as service:
        await service.read_output()
        with pytest.raises(BrokenPipeError):
            await talk_on(service)
    assert service.ending == "it was ended by SIGTERM"


async def test_its_whole_family_ends_with_it():
    script = "setsid sleep 300 & echo $!; trap '' TERM; echo $$; while :; do sleep 300; done"
    async with started("bash", "-c", script) as service:
        pids: list[int] = []
        while len(pids) < 2:
            pids += numbers((await service.read_output()).decode())
    assert not any(map(is_alive, pids))
    assert service.ending == "it was ended by SIGKILL"


async def test_a_directory_that_is_not_there_is_named():
    before = open_descriptors()
    with pytest.raises(SpawnFailed, match="it cannot run in '/no/such': No such file or directory"):
        async with started("true", directory="/no/such"):
            pass
    assert open_descriptors() - before == set(), "nothing is left open"


async def test_nothing_is_started_when_it_is_over():
    services = Services(environment={})
    await services.close()
    with pytest.raises(ExecutorError, match="disposed"):
        await services.start(["true"], directory="/", environment={})


async def test_a_system_without_descriptors_is_said(monkeypatch):
    def none():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "open_channels", none)
    with pytest.raises(SpawnFailed, match="no pipes for the program: Too many open files"):
        await Services(environment={}).start(["true"], directory="/", environment={})


async def test_whichever_descriptor_is_the_one_too_many_none_is_left_open(monkeypatch):
    made, pipe = [], os.pipe

    def one_too_few():
        made.append(1)
        if len(made) == 3:
            raise OSError(24, "Too many open files")
        return pipe()

    services = Services(environment={})
    before = open_descriptors()
    monkeypatch.setattr(os, "pipe", one_too_few)
    with pytest.raises(SpawnFailed, match="no pipes for the program: Too many open files"):
        await services.start(["true"], directory="/", environment={})
    assert open_descriptors() - before == set()


def test_a_system_without_processes_is_said():
    assert module._explain("/", 11, "fork") == "the system gives no process for it: Resource temporarily unavailable"
