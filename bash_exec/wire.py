"""What the agent, the supervisor and a command's monitor say to each other over their sockets.

May not know: who sends it, processes, the loop. Loaded by the supervisor child too, so its imports stay light.
Invariant: a request is one length-prefixed frame of NUL-separated fields and carries exactly `DESCRIPTORS`
descriptors, and one more when it has an input; a monitor speaks in lines.
"""

import os
from typing import NamedTuple

DESCRIPTORS = 3  # the monitor's control socket, the write ends of stdout and stderr; then the read end of an input
_PREFIX = 4

KILL = b"K"  # run the kill ladder, then say `survivors`
LIST = b"L"  # say what is alive: `running`

WATCHING = "watching"  # <monitor pid>: it is there, the shell is not yet
STARTED = "started"  # <shell pid>
FAILED = "failed"  # <errno> <stage>
EXITED = "exited"  # <exit code, negative signal number>
RUNNING = "running"  # [<pid>:<hex of the command line> …]
SURVIVORS = "survivors"  # the same list
GONE = "gone"  # no process of the command is left; the last line

STAGE_FORK = "fork"
STAGE_DIRECTORY = "directory"
STAGE_SHELL = "shell"


class Request(NamedTuple):
    """One command to start. `environment`: entries `NAME=VALUE` over those of the supervisor.

    `has_input`: its standard input is a descriptor of the request; otherwise it is `/dev/null`.
    """

    marker: str
    directory: str
    shell: str
    command: str
    has_input: bool = False
    environment: tuple[str, ...] = ()


def encode_request(request: Request) -> bytes:
    """The frame of a request."""
    marker, directory, shell, command, has_input, environment = request
    fields = (marker, directory, shell, command, "input" if has_input else "", *environment)
    payload = b"\0".join(os.fsencode(field) for field in fields)
    return len(payload).to_bytes(_PREFIX, "big") + payload


def take_request(buffer: bytearray) -> Request | None:
    """Remove and return the first whole request of `buffer`, None while there is none."""
    end = _PREFIX + int.from_bytes(buffer[:_PREFIX], "big")
    if len(buffer) < max(end, _PREFIX + 1):
        return None
    fields = [os.fsdecode(field) for field in bytes(buffer[_PREFIX:end]).split(b"\0")]
    del buffer[:end]
    marker, directory, shell, command, has_input, *environment = fields
    return Request(marker, directory, shell, command, bool(has_input), tuple(environment))


def encode_processes(word: str, processes: list[tuple[int, str]]) -> str:
    """`word` and the processes, as one line without its end."""
    return " ".join([word, *(f"{pid}:{command.encode(errors='replace').hex()}" for pid, command in processes)])


def decode_processes(fields: list[str]) -> list[tuple[int, str]]:
    """The processes of a line's fields behind its word."""
    pairs = (field.split(":") for field in fields)
    return [(int(pid), bytes.fromhex(command).decode()) for pid, command in pairs]
