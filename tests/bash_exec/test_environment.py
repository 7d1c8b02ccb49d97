"""What commands see, and what our own environment block forgets."""

import os
import subprocess
import sys

import pytest

from bash_exec.environment import (
    ADDITIONS,
    additions,
    is_secret_name,
    scrub_environment,
    secret_names,
    wipe_environment,
)


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "my_secret", "GITHUB_TOKEN", "PgPassword", "PASSWD", "AWS_CREDENTIALS"]
)
def test_a_secret_is_known_by_its_name(name):
    assert is_secret_name(name)
    assert name not in scrub_environment({name: "value"})


@pytest.mark.parametrize("name", ["PATH", "HOME", "SSH_AUTH_SOCK", "LANG"])
def test_an_ordinary_variable_stays(name):
    assert scrub_environment({name: "value"})[name] == "value"


def test_the_additions_win_over_the_parent():
    scrubbed = scrub_environment({"PAGER": "less", "TERM": "xterm"})
    assert {name: scrubbed[name] for name in ADDITIONS} == dict(ADDITIONS)


def test_the_allow_list_adds_a_name_back():
    scrubbed = scrub_environment({"MONKEY": "banana", "NPM_TOKEN": "t"}, allow=["MONKEY"])
    assert scrubbed["MONKEY"] == "banana"
    assert "NPM_TOKEN" not in scrubbed


def test_a_configured_key_goes_by_name_and_by_value_whatever_is_allowed():
    parent = {
        "MY_LLM": "sk-123456789",
        "COPY": "Bearer sk-123456789",
        "OTHER": "sk-abcdefghi",
        "SHORT": "abc",
        "S": "abc",
    }
    scrubbed = scrub_environment(
        parent, key_sources=["MY_LLM", "SHORT", "ABSENT"], allow=["MY_LLM", "COPY"], keys=["sk-abcdefghi"]
    )
    assert {"MY_LLM", "COPY", "OTHER", "SHORT"} & scrubbed.keys() == set()
    assert scrubbed["S"] == "abc"  # three letters are a word, not a secret


def test_ssh_runs_in_batch_mode_unless_the_user_has_a_command_of_their_own():
    assert scrub_environment({})["GIT_SSH_COMMAND"] == "ssh -oBatchMode=yes"
    assert scrub_environment({"GIT_SSH_COMMAND": "ssh -i x"})["GIT_SSH_COMMAND"] == "ssh -i x"
    assert "GIT_SSH_COMMAND" not in scrub_environment({"GIT_SSH": "/opt/ssh"})


def test_what_is_added_is_told_alone():
    assert additions({}) == {**ADDITIONS, "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
    assert additions({"GIT_SSH": "/opt/ssh", "A": "b"}) == ADDITIONS


def test_secret_names_are_those_by_pattern_and_the_key_sources():
    assert secret_names({"A_KEY": "1", "LLM": "2", "PATH": "3"}, key_sources=["LLM"]) == ["A_KEY", "LLM"]
    assert secret_names({"A_KEY": "1", "X": "my sk-123456789"}, allow=["A_KEY"], keys=["sk-123456789"]) == ["X"]


WIPE = """
import os
from bash_exec.environment import wipe_environment
captured = wipe_environment(["PLANTED_KEY", "ABSENT", "EMPTY"])
block = open("/proc/self/environ", "rb").read()
print(captured, "PLANTED_KEY" in os.environ, b"canary" in block, b"KEPT=value" in block)
"""


def test_a_wiped_name_leaves_the_process_and_its_block():
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    environment = {"PLANTED_KEY": "canary-123", "KEPT": "value", "EMPTY": "", **measured}
    done = subprocess.run([sys.executable, "-c", WIPE], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{'PLANTED_KEY': 'canary-123', 'EMPTY': ''} False False True\n"


def test_the_module_is_light_to_import():
    code = "import sys; sys.path.append('.'); import bash_exec.environment; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not {"ctypes", "asyncio", "anyio", "typing", "re", "dataclasses"} & set(eval(done.stdout))  # noqa: S307 - its own list


def test_wiping_here_forgets_only_what_was_named(monkeypatch):
    monkeypatch.setenv("DSH_TEST_KEY", "canary")
    monkeypatch.setenv("DSH_TEST_KEPT", "value")
    assert wipe_environment(["DSH_TEST_KEY"]) == {"DSH_TEST_KEY": "canary"}
    assert "DSH_TEST_KEY" not in os.environ
    assert os.environ["DSH_TEST_KEPT"] == "value"
    assert wipe_environment(["DSH_TEST_KEY"]) == {}


def test_without_proc_only_the_mapping_forgets(monkeypatch, tmp_path):
    monkeypatch.setenv("DSH_TEST_KEY", "canary")
    assert wipe_environment(["DSH_TEST_KEY"], stat_path=str(tmp_path / "absent")) == {"DSH_TEST_KEY": "canary"}
    assert "DSH_TEST_KEY" not in os.environ


CLOSED = """
import contextlib, ctypes, os, sys  # the user below may not be able to read them
sys.path.append(".")
from bash_exec.environment import close_memory
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)  # root may read everything
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # the change of user has closed it
if sys.argv[1] == "closed":
    close_memory()
parent = os.getpid()
if os.fork() == 0:
    try:
        open(f"/proc/{parent}/environ", "rb").close()  # the kernel asks for the same right as for /proc/<pid>/mem
        print("read")
    except PermissionError:
        print("refused")
else:
    os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes it")
@pytest.mark.parametrize(("memory", "said"), [("closed", "refused\n"), ("open", "read\n")])
def test_a_process_of_the_same_user_cannot_read_a_memory_that_is_closed(memory, said):
    measured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    argv = [sys.executable, "-I", "-S", "-c", CLOSED, memory]
    done = subprocess.run(argv, env=measured, capture_output=True, text=True, check=True)
    assert done.stdout == said


def test_a_process_that_has_closed_its_memory_goes_on():
    code = "import os; from bash_exec.environment import close_memory; close_memory(); print(os.system('exit 3') >> 8)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
