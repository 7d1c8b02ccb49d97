"""Which beginnings of commands a standing permission may name, and what they never cover."""

import pytest

from acp_bridge.permission.programs import beginning_of, covers
from acp_bridge.runners import runs_anything


@pytest.mark.parametrize(
    ("command", "beginning"),
    [
        ("ls", "ls"),
        ("ls -la src", "ls"),
        ("git status -s", "git status"),
        ("git log --oneline -5", "git log"),
        ("npm run build:all -- --fast", "npm run build:all"),
        ("gh pr view 3", "gh pr view"),
        ("find . -name x", "find"),
        ("go test ./... -count=1", "go test"),
    ],
)
def test_a_beginning_is_the_program_and_the_words_of_its_subcommand(command, beginning):
    assert beginning_of(tuple(command.split())) == tuple(beginning.split())


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm -rf /",
        "git",
        "git -c core.pager=x status",
        "git config user.name x",
        "./git status",
        "/usr/bin/git status",
        "npm run",
        "npm run --script-shell=x",
        "npm exec x",
        "gh pr",
        "gh api x",
        "docker run x",
        "python x.py",
        "find . -exec rm {} +",
        "find . -delete",
        "sort -uo x y",
        "git grep -nO less x",
        "git log --output=x",
        "git log --out=x",
        "git fetch --upload-p x",
        "go test -exec=x",
        "go test --exec x",
        "rg --pre x y",
        "pytest -vp x",
    ],
)
def test_other_commands_have_none(command):
    assert beginning_of(tuple(command.split())) is None


def test_an_option_that_only_looks_alike_is_covered():
    assert covers(("tsc",), ("tsc", "--pretty"))
    assert covers(("git", "diff"), ("git", "diff", "--", "x"))


@pytest.mark.parametrize("program", ["bash", "/bin/sh", "python3.11", "./node", "env", ".", "source", "ssh"])
def test_what_runs_its_own_words_is_known_in_every_form(program):
    assert runs_anything(program)
    assert not covers((program,), (program, "x"))


@pytest.mark.parametrize("program", ["git", "bashful", "ls"])
def test_other_programs_do_not(program):
    assert not runs_anything(program)
