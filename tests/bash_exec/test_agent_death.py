"""Whatever ends the agent ends its commands, and none of them ever sees a key."""

import base64
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.support.processes import all_ended, is_alive

PROMISE = 3  # seconds; waited for ten times as long
DRIVER = str(Path(__file__).parents[1] / "support" / "bash_driver.py")
CHECKOUT = str(Path(__file__).parents[2])

DEAF = "trap '' TERM; echo $$; while :; do sleep 300; done"
GROUPED = {
    "plain": "echo $$; exec sleep 300",
    "in the background": "sleep 300 & echo $!; wait",
    "pipeline": "sh -c 'echo $$ >&2; exec sleep 300' | cat",
    "deaf to TERM": DEAF,
    "stopped": "echo $$; kill -STOP $$; sleep 300",
}
DETACHED = {
    "setsid": "setsid sh -c 'echo $$; exec sleep 300' & wait",
    "double fork": "sh -c '(sh -c \"echo \\$\\$; exec sleep 300\" &)'",
    "daemon": "setsid sh -c '(sh -c \"echo \\$\\$; cd /; exec sleep 300 </dev/null >/dev/null 2>&1\" &)'",
    "env -i setsid": "env -i setsid sh -c 'echo $$; exec /bin/sleep 300' & wait",
    "setsid and deaf to TERM": f"setsid sh -c '{DEAF.replace(chr(39), chr(34))}' & wait",
}


def shapes(portable: bool) -> list[str]:
    return list((GROUPED if portable else GROUPED | DETACHED).values())


@asynccontextmanager
async def driver(
    root: Path, *commands: str, portable: bool = False, grace: float = 3.0, quiet: bool = False, **variables: str
):
    environment = {**os.environ, "PYTHONPATH": CHECKOUT, **variables}
    argv = [sys.executable, DRIVER, str(root), "portable" if portable else "", str(grace), *commands]
    process = await anyio.open_process(argv, env=environment, stderr=subprocess.DEVNULL if quiet else None)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def printed_pids(process, count: int) -> list[int]:
    text = b""
    while len(text.split()) < count or not text.endswith(b"\n"):
        text += await process.stdout.receive()
    return [int(word) for word in text.split()]


@pytest.mark.parametrize("portable", [False, True])
async def test_when_the_agent_dies_by_kill_9_its_commands_die_in_all_seven_shapes(tmp_path, portable):
    commands = shapes(portable)
    with anyio.fail_after(60):
        async with driver(tmp_path, *commands, portable=portable) as process:
            pids = await printed_pids(process, len(commands))
            process.kill()
            await process.wait()
            with anyio.fail_after(10 * PROMISE):
                await all_ended(pids)


async def test_sigterm_to_the_agent_leaves_no_process(tmp_path):
    commands = shapes(portable=False)
    with anyio.fail_after(60):
        async with driver(tmp_path, *commands) as process:
            pids = await printed_pids(process, len(commands))
            process.terminate()
            await process.wait()
            with anyio.fail_after(10 * PROMISE):
                await all_ended(pids)


@pytest.mark.parametrize("portable", [False, True])
async def test_the_end_of_the_agents_input_leaves_no_process(tmp_path, portable):
    commands = shapes(portable)
    with anyio.fail_after(60):
        async with driver(tmp_path, *commands, portable=portable, grace=0.3) as process:
            pids = await printed_pids(process, len(commands))
            await process.stdin.aclose()
            assert await process.wait() == 0
            assert not any(is_alive(pid) for pid in pids)


async def test_the_shutdown_of_the_loop_leaves_no_process(tmp_path):
    commands = shapes(portable=False)
    with anyio.fail_after(60):
        async with driver(tmp_path, *commands, grace=0.3, quiet=True) as process:
            pids = await printed_pids(process, len(commands))
            # one that comes right before the loop waits is heard with the next event only
            while process.returncode is None:
                process.send_signal(signal.SIGINT)
                with anyio.move_on_after(1):
                    await process.wait()
            assert process.returncode == -signal.SIGINT
            # the two whose shells had ended by themselves go with the lifeline
            with anyio.fail_after(10 * PROMISE):
                await all_ended(pids)


CANARY = "sk-canary-0123456789"
LOOKS = [
    "env; printenv; declare -p; export -p",
    "cat /proc/self/environ /proc/$$/environ",
    "cat /proc/$PPID/environ",
    "cat /proc/$(ps -o ppid= $PPID | tr -d ' ')/environ",
    "cat /proc/AGENT/environ",
    f"{sys.executable} -c 'import os; print(os.environ)'",
]


async def test_no_command_sees_a_key(tmp_path):
    keys = {"DEEPSEEK_API_KEY": CANARY, "KEY_SOURCE_ODD": CANARY[::-1], "COPY": f"Bearer {CANARY[::-1]}"}
    command = "; ".join(f"{{ {look}; }} 2>&1 | base64 -w0; echo" for look in LOOKS)
    with anyio.fail_after(60):
        async with driver(tmp_path, f"{command}; echo end", **keys) as process:
            text = b""
            while not text.endswith(b"\nend\n"):
                text += await process.stdout.receive()
            shown = [base64.b64decode(line).decode() for line in text.split()[:-1]]
            await process.stdin.aclose()
            await process.wait()
    assert len(shown) == len(LOOKS)
    assert all("PATH" in look for look in shown)
    for secret in keys.values():
        assert not any(secret in look for look in shown)
