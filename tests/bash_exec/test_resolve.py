"""Which requests become commands."""

import pytest

from bash_exec.errors import InvalidCommand
from bash_exec.resolve import resolve_request
from bash_exec.seam import CommandRequest, CommandSpec


def resolve(*args, **more):
    return resolve_request(CommandRequest(*args, **more), default_timeout_ms=1000, max_timeout_ms=5000)


def test_an_absolute_workdir_stands_alone_and_an_empty_one_is_the_sessions():
    assert resolve("ls", "/w", "o", workdir="/x").cwd == "/x"
    assert resolve("ls", "/w", "o", workdir="") == CommandSpec("ls", "/w", "o", 1000)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"command": "\n"}, "blank"),
        ({"command": "ls", "timeout_ms": 0}, "not positive"),
        ({"command": "ls", "timeout_ms": -5}, "-5 ms"),
        ({"command": "ls", "cwd": "w"}, "not absolute"),
        ({"command": "ls\0"}, "NUL"),
        ({"command": "ls", "workdir": "a\0"}, "directory holds a NUL"),
        ({"command": "echo \ud800"}, "no program can be given"),
    ],
)
def test_a_wrong_request_is_refused_with_its_reason(arguments, said):
    request = {"cwd": "/w", "owner": "o", **arguments}
    with pytest.raises(InvalidCommand, match=said):
        resolve(**request)
