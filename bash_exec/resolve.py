"""From what a caller asks to what is run: every default and cap (contract tools-and-bash.md §3).

May not know: how a command is run. Invariant: a spec that leaves here has an absolute directory, a command that an
exec can take, and a timeout between 1 ms and the cap.
"""

import os

from bash_exec.errors import InvalidCommand
from bash_exec.seam import CommandRequest, CommandSpec

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000


def resolve_request(request: CommandRequest, *, default_timeout_ms: int, max_timeout_ms: int) -> CommandSpec:
    """The spec of a request. Raises `InvalidCommand`."""
    if not request.command.strip():
        raise InvalidCommand("the command is blank: give a shell command")
    timeout_ms = default_timeout_ms if request.timeout_ms is None else request.timeout_ms
    if timeout_ms <= 0:
        raise InvalidCommand(f"the timeout of {timeout_ms} ms is not positive: leave it out or give milliseconds")
    if not os.path.isabs(request.cwd):
        raise InvalidCommand(f"the session directory {request.cwd!r} is not absolute")
    cwd = os.path.join(request.cwd, request.workdir) if request.workdir else request.cwd
    for what, text in (("command", request.command), ("directory", cwd)):
        try:
            encoded = os.fsencode(text)
        except UnicodeEncodeError as error:
            raise InvalidCommand(
                f"the {what} holds a character that no program can be given: {error.reason}"
            ) from error
        if b"\0" in encoded:
            raise InvalidCommand(f"the {what} holds a NUL character, which no program can be given")
    return CommandSpec(request.command, cwd, request.owner, min(timeout_ms, max_timeout_ms))
