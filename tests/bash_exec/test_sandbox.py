"""What a command in the sandbox cannot see, write, reach or outlive, and what it still can."""

import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from glob import glob
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute

from bash_exec.bubblewrap import INTERPRETER, Reach
from bash_exec.environment import scrub_environment
from bash_exec.errors import ExecutorError, SpawnFailed
from bash_exec.seam import CommandRequest
from tests.support.bubblewrap import host_pids, needs_bwrap, sandbox_executor
from tests.support.executors import run_command
from tests.support.processes import all_ended, is_alive, open_descriptors

pytestmark = needs_bwrap
PROMISE = 30
DRIVER = str(Path(__file__).parents[1] / "support" / "sandbox_driver.py")
CHECKOUT = str(Path(__file__).parents[2])


def sleeps(seconds: int) -> list[int]:
    """The processes of this machine that run `sleep SECONDS`, a number that no other test uses."""
    return host_pids(lambda argv: argv == ["sleep", str(seconds)])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with a key in it, beside the workspace."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("PRIVATE KEY")
    (home / ".gitconfig").write_text("[user]")
    (home / "cache").mkdir()
    return home


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


# --- files ----------------------------------------------------------------------------------------------------


async def test_the_workspace_is_read_and_written(work, home):
    (work / "in").write_text("text")
    async with sandbox_executor(work, home=str(home)) as executor:
        result = await run_command(executor, "cat in; echo made > out", cwd=str(work))
    assert result.stdout.text == "text"
    assert (work / "out").read_text() == "made\n"


async def test_every_root_of_the_workspace_is_written_to(work, home, tmp_path):
    (tmp_path / "second").mkdir()
    async with sandbox_executor(
        work, home=str(home), roots=lambda _owner: [str(work), str(tmp_path / "second")]
    ) as executor:
        await run_command(executor, f"echo made > {tmp_path}/second/out")
    assert (tmp_path / "second" / "out").read_text() == "made\n"


async def test_a_workspace_behind_a_link_keeps_its_name(work, home, tmp_path):
    (tmp_path / "link").symlink_to(work)
    async with sandbox_executor(work, home=str(home), roots=lambda _owner: [str(tmp_path / "link")]) as executor:
        result = await run_command(executor, "pwd; pwd -P", cwd=str(tmp_path / "link"))
    assert result.stdout.text == f"{tmp_path / 'link'}\n{work}\n"


async def test_a_key_in_the_home_directory_cannot_be_read(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        result = await run_command(executor, f"cat {home}/.ssh/id; ls -A {home} ~root")
    assert "PRIVATE" not in result.stdout.text + result.stderr.text
    assert f"{home}/.ssh/id: No such file" in result.stderr.text


def in_own_home(path: str | Path) -> str:
    """The entry of the user's home directory on the way to `path`; `..` when it is elsewhere."""
    return os.path.relpath(path, Path.home().resolve()).split("/")[0]


async def test_the_users_own_home_directory_is_hidden_by_default(work):
    async with sandbox_executor(work) as executor:
        result = await run_command(executor, "ls -A ~")
    # what remains is a Python that the user has installed there, in which the supervisor runs, and the workspace
    assert set(result.stdout.text.split()) <= {in_own_home(path) for path in (INTERPRETER[0], CHECKOUT, work)}


async def test_what_is_written_to_the_home_directory_does_not_stay(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        result = await run_command(executor, f"echo x > {home}/.profile && cat {home}/.profile")
    assert result.stdout.text == "x\n"
    assert not (home / ".profile").exists()


async def test_what_is_allowed_of_the_home_directory_is_there(work, home):
    reach = Reach(read=(f"{home}/.gitconfig", f"{home}/absent"), write=(f"{home}/cache",))
    async with sandbox_executor(work, home=str(home), reach=reach) as executor:
        command = f"ls -A {home}; cat {home}/.gitconfig; echo x > {home}/cache/x; echo x > {home}/.gitconfig"
        result = await run_command(executor, command)
    assert result.stdout.text == ".gitconfig\ncache\n[user]"
    assert "Read-only file system" in result.stderr.text
    assert (home / "cache" / "x").read_text() == "x\n"
    assert (home / ".gitconfig").read_text() == "[user]"


async def test_nothing_outside_the_workspace_can_be_written(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        for path in ("/x", "/usr/x", "/etc/passwd", "/proc/sys/kernel/core_pattern"):
            result = await run_command(executor, f": >> {path}")  # opens it and writes nothing
            assert result.exit_code == 1
            assert re.search("Read-only file system|Permission denied", result.stderr.text)


async def test_a_folder_beside_the_workspace_is_not_there(work, home, tmp_path):
    (tmp_path / "other").mkdir()
    async with sandbox_executor(work, home=str(home)) as executor:
        result = await run_command(executor, f"ls {tmp_path}; echo x > {tmp_path}/other/x")
    assert "other" not in result.stdout.text.split()
    assert os.listdir(tmp_path / "other") == []


def size(path: str) -> int:
    return os.path.getsize(path)


async def test_the_folder_of_long_output_is_not_shown(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        flood = await run_command(executor, "seq 100000")
        assert size(flood.stdout.spill_path) > 100_000
        result = await run_command(executor, f"ls -A {work}/spill; cat {flood.stdout.spill_path}")
    assert result.stdout.text == ""
    assert "No such file" in result.stderr.text


async def test_hidden_folders_stay_hidden_whatever_is_allowed(work, home):
    reach = Reach(read=(str(home), f"{home}/.ssh"))
    async with sandbox_executor(work, home=str(home), reach=reach, hidden=[f"{home}/.ssh"]) as executor:
        result = await run_command(executor, f"ls -A {home}; ls -A {home}/.ssh")
    assert result.stdout.text == ".gitconfig\n.ssh\ncache\n"


def temporary_files() -> set[str]:
    return set(glob("/tmp/*") + glob("/var/tmp/*"))


async def test_temporary_files_are_of_the_session_alone(work, home):
    options = {"environment": scrub_environment({**os.environ, "TMPDIR": str(home)})}
    async with sandbox_executor(work, home=str(home), **options) as executor:
        made = await run_command(executor, "f=$(mktemp); echo mine > $f; echo $f; ls -d /tmp/* /var/tmp/*")
        path = made.stdout.text.split()[0]
        assert path.startswith("/tmp/")
        assert path not in temporary_files()
        way = {str(folder) for path in (work, CHECKOUT, INTERPRETER[0]) for folder in Path(path, "*").parents}
        assert temporary_files() & set(made.stdout.text.split()[1:]) <= way
        assert (await run_command(executor, f"cat {path}")).stdout.text == "mine\n"
        assert (await run_command(executor, f"cat {path}", owner="other")).exit_code == 1


async def test_a_directory_that_is_not_shown_is_an_error_that_says_so(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        with pytest.raises(SpawnFailed, match="No such file or directory; give an existing directory that the sandbox"):
            await run_command(executor, "true", cwd=str(home / "cache"))


# --- network, processes, privileges -----------------------------------------------------------------------------


@pytest.mark.parametrize("network", [False, True])
async def test_a_listener_of_this_machine_is_reached_only_with_the_network_on(work, home, network):
    met = []

    async def meet(stream):
        met.append(await stream.receive())
        await stream.aclose()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, meet)
        (port,) = {one.extra(SocketAttribute.local_port) for one in listener.listeners}  # noqa: S610 - no Django
        async with sandbox_executor(work, home=str(home), reach=Reach(network=network)) as executor:
            command = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3 && cat <&3"
            with anyio.fail_after(PROMISE):
                result = await run_command(executor, command)
        group.cancel_scope.cancel()
    assert (result.exit_code == 0, met) == ((True, [b"hello\n"]) if network else (False, []))


async def test_commands_of_one_session_reach_each_other_over_its_own_loopback(work, home):
    server = "import socket; s = socket.create_server(('127.0.0.1', 8000)); print('on', flush=True); s.accept()"
    async with sandbox_executor(work, home=str(home)) as executor:
        task = await executor.start(executor.resolve(CommandRequest(f'{INTERPRETER[0]} -c "{server}"', "/", "s")))
        connect = "until exec 3<>/dev/tcp/127.0.0.1/8000; do :; done 2>/dev/null; echo met"
        with anyio.fail_after(PROMISE):
            assert (await run_command(executor, connect)).stdout.text == "met\n"
            await executor.kill(task.id)


async def test_a_command_sees_the_processes_of_its_session_alone(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        await run_command(executor, "sleep 60101 &", owner="other")
        await run_command(executor, "sleep 60102 &")
        result = await run_command(executor, r"for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done")
        assert len(sleeps(60101)) == len(sleeps(60102)) == 1
    lines = [line for line in result.stdout.text.splitlines() if line]
    assert [line for line in lines if line.startswith("sleep")] == ["sleep 60102 "]
    assert all("supervisor_main" in line or line.startswith(("sleep", "bash -c", "tr ")) for line in lines)
    assert not sleeps(60101)


async def test_a_sandbox_has_namespaces_of_its_own(work, home):
    names = ("pid", "ipc", "uts", "net", "user", "mnt")
    async with sandbox_executor(work, home=str(home)) as executor:
        command = f"for name in {' '.join(names)}; do readlink /proc/self/ns/$name; done"
        first, again = [(await run_command(executor, command)).stdout.text.split() for _ in range(2)]
        other = (await run_command(executor, command, owner="other")).stdout.text.split()
    assert first == again
    ours = [os.readlink(f"/proc/self/ns/{name}") for name in names]
    assert len({*first, *other, *ours}) == 3 * len(names)


async def test_a_command_has_no_privileges_and_gets_none(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        result = await run_command(executor, "grep -E '^(NoNewPrivs|Cap...):' /proc/self/status; unshare -U true")
    facts = dict(line.split(":\t") for line in result.stdout.text.splitlines())
    assert facts.pop("NoNewPrivs") == "1"
    assert set(facts.values()) == {"0" * 16}
    assert (result.exit_code, "unshare failed" in result.stderr.text) == (1, True)


async def test_no_process_in_there_has_a_key_in_its_environment(work, home):
    environment = scrub_environment({**os.environ, "MY_API_KEY": "canary-0123", "XDG_RUNTIME_DIR": "/run/user/1"})
    async with sandbox_executor(work, home=str(home), environment=environment) as executor:
        result = await run_command(executor, "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
    assert result.stdout.text.count("NO_COLOR=1") >= 4  # the command, cat, and the two processes above
    assert "canary" not in result.stdout.text
    assert "XDG_RUNTIME_DIR" not in result.stdout.text


async def test_the_first_process_of_a_sandbox_holds_nothing_of_ours(work, home):
    held = os.open(work, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        async with sandbox_executor(work, home=str(home)) as executor:
            result = await run_command(executor, "for p in 1 $PPID; do readlink /proc/$p/fd/* /proc/$p/cwd; done")
    finally:
        os.close(held)
    assert {re.sub(r"\[\d+\]", "", line) for line in result.stdout.text.split()} <= {
        "/dev/null",
        "socket:",
        "pipe:",
        "/",
    }


# --- ends -------------------------------------------------------------------------------------------------------


async def test_an_exit_code_is_not_taken_for_a_signal(work, home):
    ends = {
        "exit 143": (143, None),
        "kill $$": (None, "SIGTERM"),
        "kill -SEGV $$": (None, "SIGSEGV"),
        "exit 3": (3, None),
    }
    async with sandbox_executor(work, home=str(home)) as executor:
        for command, end in ends.items():
            result = await run_command(executor, command)
            assert (result.exit_code, result.signal) == end


async def test_a_timeout_in_there_kills_what_ignores_term_and_what_left_the_session(work, home):
    stubborn = "trap '' TERM; (trap '' TERM; setsid sleep 60201) & sleep 60202; sleep 60202"
    async with sandbox_executor(work, home=str(home), grace=0.2) as executor:
        bystander = await executor.start(executor.resolve(CommandRequest("sleep 60203", "/", "s")))
        with anyio.fail_after(PROMISE):
            result = await run_command(executor, stubborn, timeout_ms=500)
        assert (result.timed_out, result.signal, result.survivors, result.background) == (True, "SIGKILL", (), ())
        assert not sleeps(60201) + sleeps(60202)
        assert executor.get(bystander.id).status == "running"
        assert len(sleeps(60203)) == 1


async def test_a_background_job_lives_until_its_session_is_released(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        with anyio.fail_after(PROMISE):
            await run_command(executor, "sleep 60301 &", owner="other")
            result = await run_command(executor, "sleep 60302 & sleep 60303 & echo $!")
            assert sorted(job.command for job in result.background) == ["sleep 60302", "sleep 60303"]
            # the number is the one that the session's next command can use
            assert int(result.stdout.text) in [job.pid for job in result.background]
            assert (await run_command(executor, f"kill {result.stdout.text}")).exit_code == 0
            await all_ended(sleeps(60303))
            (job,) = sleeps(60302)
            assert await executor.release("s") == ()
        assert not is_alive(job)
        assert len(sleeps(60301)) == 1


async def test_a_released_session_leaves_no_descriptor_and_may_come_back(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        await run_command(executor, "true")
        await executor.release("s")
        before = open_descriptors()
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(run_command, executor, "echo x > /tmp/x")
        await executor.release("s")
        assert open_descriptors() == before
        assert (await run_command(executor, "ls /tmp/x")).exit_code == 2


async def test_a_command_that_kills_its_monitor_ends_its_sandbox_and_the_next_has_another(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        with anyio.fail_after(PROMISE):
            with pytest.raises(ExecutorError, match="killed"):
                await run_command(executor, "setsid sleep 60401 & kill -9 $PPID; exec sleep 60402")
            await all_ended(sleeps(60401) + sleeps(60402))
            assert (await run_command(executor, "echo on")).stdout.text == "on\n"


async def test_two_commands_that_lose_their_monitors_do_not_cost_a_third_its_sandbox(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        waiting = await executor.start(executor.resolve(CommandRequest("sleep 60501", "/", "s")))
        done = anyio.Event()
        executor.on_task_done(lambda _task: done.set())
        with anyio.fail_after(PROMISE):
            with pytest.raises(ExecutorError, match="killed"):
                await run_command(executor, "kill -9 $PPID; exec sleep 60502")
            assert (await run_command(executor, "echo on")).stdout.text == "on\n"
            await done.wait()
            assert "held the command was killed" in executor.read_output(waiting.id).text
            assert (await run_command(executor, "echo on")).stdout.text == "on\n"


async def test_a_stopped_monitor_is_killed_with_its_sandbox(work, home):
    async with sandbox_executor(work, home=str(home), grace=0.1) as executor:
        with anyio.fail_after(PROMISE):
            command = "setsid sleep 60601 & echo on; read -t 0.5 x <> <(:); kill -STOP $PPID; exec sleep 60602"
            result = await run_command(executor, command, timeout_ms=1500)
        assert (result.timed_out, result.survivors) == (True, ())
        assert not sleeps(60601) + sleeps(60602)


async def test_the_first_process_of_a_sandbox_cannot_be_ended_from_inside(work, home):
    async with sandbox_executor(work, home=str(home)) as executor:
        for number in ("KILL", "STOP", "TERM"):
            assert (await run_command(executor, f"kill -{number} 1; echo on")).stdout.text == "on\n"
            assert (await run_command(executor, "echo on")).stdout.text == "on\n"


@asynccontextmanager
async def driver(*argv: str):
    process = await anyio.open_process(argv, env={**os.environ, "PYTHONPATH": CHECKOUT}, stderr=None)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_agent_takes_its_sandboxes_with_it(work, number):
    command = "trap '' TERM; setsid sleep 60701 & (env -i setsid sh -c 'sleep 60702' &); echo on; sleep 60703"
    async with driver(sys.executable, DRIVER, str(work), command) as process:
        with anyio.fail_after(PROMISE):
            assert await process.stdout.receive() == b"on\n"
            while not (sleeps(60701) and sleeps(60702) and sleeps(60703)):
                await anyio.lowlevel.checkpoint()
            pids = sleeps(60701) + sleeps(60702) + sleeps(60703)
            process.send_signal(number)
            await process.wait()
            await all_ended(pids)


async def test_a_kernel_that_gives_no_user_namespaces_is_told_apart_and_nothing_is_run(work):
    limited = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    argv = ["unshare", "--user", "--map-root-user", "sh", "-c", limited, "sh"]
    async with driver(*argv, sys.executable, DRIVER, str(work), "echo ran") as process:
        with anyio.fail_after(PROMISE):
            said = b"".join([data async for data in process.stdout]).decode()
    assert said.startswith("SandboxUnavailable: the sandbox cannot start: bwrap: ")
    assert "let this user create user namespaces" in said
    assert "ran" not in said
