"""When the sandbox cannot be set up: it is said, it is asked again, and nothing ever runs without it.

Programs that stand in for bwrap play the systems that refuse; test_sandbox.py has the real one.
"""

import os
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest

from bash_exec.bubblewrap import Reach
from bash_exec.errors import ExecutorError, SandboxUnavailable
from bash_exec.seam import CommandRequest
from tests.support.bubblewrap import sandbox_executor, stand_in
from tests.support.executors import local_executor, run_command
from tests.support.processes import open_descriptors

PROMISE = 30
NO_NAMESPACES = "bwrap: No permissions to create new namespace, likely because the kernel does not allow it"
NO_MAP = "bwrap: setting up uid map: Permission denied"


@asynccontextmanager
async def executor_with(tmp_path, body='exec "$@"', **options):
    """An executor that works in `tmp_path/there` with a stand-in that does `body`."""
    work = tmp_path / "work"
    work.mkdir()
    program = stand_in(tmp_path / "bwrap", body)
    async with sandbox_executor(work, **{"program": program, "home": str(tmp_path / "home"), **options}) as executor:
        yield executor


@pytest.mark.parametrize(
    ("body", "reason", "fix"),
    [
        (f"echo '{NO_NAMESPACES}' >&2; exit 1", NO_NAMESPACES, "let this user create user namespaces"),
        (f"echo warning >&2; echo '{NO_MAP}' >&2; exit 1", NO_MAP, "apparmor_restrict_unprivileged_userns"),
        (
            "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1",
            "bwrap: Unknown option",
            "bubblewrap 0.8 or newer",
        ),
        (
            "echo 'bwrap: Can'\\''t find source path /x' >&2; exit 1",
            "bwrap: Can't find source path /x",
            "look at the session",
        ),
        ("exit 7", "exit status 7", "look at the session's directory"),
    ],
)
async def test_a_system_that_refuses_the_sandbox_is_named_with_the_fix_and_nothing_is_run(tmp_path, body, reason, fix):
    async with executor_with(tmp_path, body) as executor:
        for start in (run_command, start_command):
            with anyio.fail_after(PROMISE), pytest.raises(SandboxUnavailable) as raised:
                await start(executor, f"touch {tmp_path}/there/ran")
            said = str(raised.value)
            assert said.startswith(f"the sandbox cannot start: {reason}")
            assert fix in said
            assert said.endswith('or set executor = "local" to run commands without a sandbox')
    assert os.listdir(tmp_path / "work") == ["spill"]


async def start_command(executor, command):
    await executor.start(executor.resolve(CommandRequest(command, "/", "s")))


async def test_a_system_without_bwrap_is_told_what_to_install(tmp_path):
    async with executor_with(tmp_path, program="no-such-bwrap") as executor:
        with pytest.raises(SandboxUnavailable, match="'no-such-bwrap': No such file or directory; install bubblewrap"):
            await run_command(executor, "true")


async def test_a_sandbox_that_does_not_start_is_given_up(tmp_path):
    async with executor_with(tmp_path, "exec sleep 300", trial_bound=0.2) as executor:
        with anyio.fail_after(PROMISE), pytest.raises(SandboxUnavailable, match=r"did not start within 0\.2 seconds"):
            await run_command(executor, "true")


async def test_a_system_that_has_been_put_right_is_used_at_the_next_command(tmp_path):
    async with executor_with(tmp_path, "exit 1") as executor:
        before = open_descriptors()
        with pytest.raises(SandboxUnavailable):
            await run_command(executor, "true")
        assert open_descriptors() == before
        stand_in(tmp_path / "bwrap")
        assert (await run_command(executor, "echo on")).stdout.text == "on\n"


async def test_the_sandbox_is_tried_once_for_each_session(tmp_path):
    async with executor_with(tmp_path, f'echo >> {tmp_path}/starts; exec "$@"') as executor:
        for owner in ("one", "one", "two"):
            await run_command(executor, "true", owner=owner)
        assert (tmp_path / "starts").read_text() == "\n" * 4  # a trial and the sandbox itself, for two sessions


@pytest.mark.parametrize("root", ["home", "home/..", "link"])
async def test_a_workspace_that_holds_the_home_directory_is_refused(tmp_path, root):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    async with executor_with(tmp_path, roots=lambda _owner: [f"{tmp_path}/{root}"]) as executor:
        with pytest.raises(
            SandboxUnavailable, match=r"hides the home directory, and the session's directory '/.* holds"
        ):
            await run_command(executor, "true")


async def test_a_home_directory_that_may_be_written_is_a_workspace(tmp_path):
    home = str(tmp_path / "home")
    options = {"roots": lambda _owner: [home], "reach": Reach(write=(home,))}
    async with executor_with(tmp_path, **options) as executor:
        assert (await run_command(executor, "true")).exit_code == 0


async def test_a_folder_that_cannot_be_hidden_is_named(tmp_path):
    (tmp_path / "file").touch()
    hidden = str(tmp_path / "file" / "logs")
    options = {"roots": lambda _owner: [str(tmp_path)], "hidden": [hidden], "home": "/"}
    async with executor_with(tmp_path, **options) as executor:
        with pytest.raises(SandboxUnavailable, match=r"cannot hide '/.*/file/logs': Not a directory"):
            await run_command(executor, "true")


@pytest.mark.parametrize("network", [True, False])
async def test_the_network_is_shared_only_when_the_configuration_says_so(tmp_path, network):
    body = f'tr "\\0" "\\n" < /proc/$$/cmdline > {tmp_path}/options; exec "$@"'
    async with executor_with(tmp_path, body, reach=Reach(network=network)) as executor:
        await run_command(executor, "true")
    options = (tmp_path / "options").read_text().split()
    assert ("--unshare-net" in options) is not network


async def test_dispose_while_a_sandbox_is_being_tried_starts_nothing(tmp_path):
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    async with executor_with(tmp_path, f'read x < {fifo}; exec "$@"') as executor:
        errors = []

        async def run():
            with pytest.raises(ExecutorError, match="disposed") as raised:
                await run_command(executor, f"touch {tmp_path}/there/ran")
            errors.append(raised.value)

        with anyio.fail_after(PROMISE):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(executor.dispose)
                await anyio.wait_all_tasks_blocked()
                await anyio.to_thread.run_sync(fifo.write_text, "go\n")
        assert len(errors) == 1
    assert os.listdir(tmp_path / "work") == ["spill"]


async def test_a_launcher_that_outlives_its_sandbox_is_killed(tmp_path):
    # the first supervisor's launcher stays (the trial before it has fewer arguments), the second one's does not
    body = f'"$@" & wait; [ $# -lt 8 ] || [ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; exec sleep 300; }}'
    async with executor_with(tmp_path, body) as executor:
        with anyio.fail_after(PROMISE):
            with pytest.raises(ExecutorError, match="killed"):
                await run_command(executor, "kill -9 $PPID")
            assert (await run_command(executor, "echo on")).stdout.text == "on\n"


async def test_only_the_present_supervisor_is_given_up_for_a_lost_command(tmp_path):
    async with local_executor(tmp_path) as executor:
        await run_command(executor, "true")
        present = executor.supervisor_pid
        await executor._supervisor.end(present + 1)
        assert executor.supervisor_pid == present
        await executor._supervisor.end(present)
        assert executor.supervisor_pid is None
