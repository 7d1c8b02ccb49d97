"""What asks somebody fails fast, and the result has a hint: commands have no input and no terminal."""

import os
import shutil
import sys

import anyio
import pytest

from agent_loop.tools.bash_text import model_text
from tests.support.executors import local_executor, run_command
from tests.support.refusing_server import refusing_server

ANSWERS = "[hint: commands have no terminal and no standard input; pass the answers"
FAST = 30  # ten times what the slowest of them takes


async def answer(root, command: str, **more) -> str:
    """What the model reads of a command that must end by itself."""
    async with local_executor(root) as executor:
        with anyio.fail_after(FAST):
            result = await run_command(executor, command, **more)
        assert not result.timed_out
        return model_text(result, command=command)


def needs(program: str, condition: bool = True):
    return pytest.mark.skipif(not (shutil.which(program) and condition), reason=f"{program} cannot ask here")


PROMPTS = [
    ("read x", "[exit code: 1]", ANSWERS),
    ("read -p 'Continue? ' x </dev/tty", "[exit code: 1]", ANSWERS),
    ("cat", "(no output)", ANSWERS),
    (f"{sys.executable} -c 'input()'", "EOFError", ANSWERS),
    pytest.param(
        "git -c http.sslVerify=false push SERVER/x.git HEAD",
        "could not read Username",
        "[hint: git cannot ask for credentials",
        marks=[needs("git"), needs("openssl")],
    ),
    pytest.param(
        "ssh -oUserKnownHostsFile=/dev/null -oGlobalKnownHostsFile=/dev/null -F none -oProxyCommand='SSHD' x",
        "Host key verification failed",
        "[hint: ssh runs in batch mode",
        marks=[needs("ssh"), needs("sshd", os.getuid() != 0 or os.path.isdir("/run/sshd"))],
    ),
    pytest.param(
        "runuser -u nobody -- sudo -k true",
        "sudo: ",
        "[hint: commands have no terminal and no standard input, so sudo cannot ask",
        marks=[needs("sudo", os.getuid() == 0), needs("runuser")],
    ),
    pytest.param(
        "APT remove demo",
        "Do you want to continue? [Y/n] Abort.",
        "[hint: apt asks before it goes on and nobody can answer; add -y",
        marks=needs("apt-get"),
    ),
]

# a system of its own with one package, and a dpkg that does nothing
STATUS = (
    "Package: demo\nStatus: install ok installed\nMaintainer: x <x@x>\nArchitecture: all\nVersion: 1\nDescription: x\n"
)
APT = "apt-get -o Dir=apt -o Dir::State::status=$PWD/status -o Dir::Bin::dpkg=/bin/true -o Debug::NoLocking=1"


@pytest.mark.parametrize(("command", "said", "hint"), PROMPTS)
async def test_a_prompt_fails_fast_with_a_hint_in_the_result(tmp_path, command, said, hint):
    (tmp_path / "status").write_text(STATUS)
    for folder in ("apt/var/lib/apt/lists/partial", "apt/var/cache/apt/archives/partial", "apt/etc/apt/preferences.d"):
        (tmp_path / folder).mkdir(parents=True)
    setup = "git init -q; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x"
    keys = f"ssh-keygen -q -N '' -t ed25519 -f {tmp_path}/host"
    command = command.replace("APT", APT).replace("SSHD", f"$(which sshd) -i -f /dev/null -h {tmp_path}/host")
    async with refusing_server(tmp_path) if "SERVER" in command else local_executor(tmp_path) as address:
        command = command.replace("SERVER", str(address))
        before = f"{setup}; " if "git" in command else f"{keys}; " if "ssh" in command else ""
        text = await answer(tmp_path, before + command, cwd=str(tmp_path))
    assert said in text
    assert text.splitlines()[-1].startswith(hint)


@needs("ssh")
async def test_ssh_that_reaches_nobody_fails_fast_and_gets_no_hint_about_input(tmp_path):
    text = await answer(tmp_path, "ssh -F none -oProxyCommand=false nowhere")
    assert text.splitlines()[-1] == "[exit code: 255]"


async def test_a_command_has_no_terminal_and_an_empty_input(tmp_path):
    command = "readlink /proc/self/fd/0; ps -o tty= $$; tty"
    assert (await answer(tmp_path, command)).split()[:2] == ["/dev/null", "?"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("SSH_ASKPASS_REQUIRE", "never"),
        ("CI", "1"),
    ],
)
async def test_programs_are_told_not_to_ask(tmp_path, variable, value):
    assert await answer(tmp_path, f"echo ${variable}") == f"{value}\n"
