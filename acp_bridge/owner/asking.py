"""Speaking to the process that has a session open.

May not know: sessions, pages. Invariant: a socket is spoken to only when it lies in this user's private directory and
this user listens there; every wait is bounded; whatever goes wrong is an answer that says so.
"""

import errno
import os
import socket
from pathlib import Path
from typing import Final, Literal

import anyio

from acp_bridge.owner.lines import NoLineError, read_line, write_all
from acp_bridge.owner.places import IsOwn, is_own_peer, is_private, is_running
from acp_bridge.owner.protocol import MAX_ANSWER, Answer, ProtocolError, Request, encode_request, parse_answer
from agent_loop.session.file_lock import Holder, read_holder

ANSWER_SECONDS: Final = 25.0
NOBODY: Final = "No running agent has this session open. Open it in your editor and try again."


OwnerState = Literal["reachable", "open", "none"]
"""`open`: a process has the session, and cannot be spoken to."""


def owner_state(holder: Holder | None) -> OwnerState:
    """What became of the process that a lock file names; what a crash has left behind is nobody."""
    if holder is None or not is_running(holder.pid):
        return "none"
    if holder.address is None:
        return "open"
    try:
        _connect(holder.address).close()
    except OSError:
        return "none"
    return "reachable"


async def ask(lock: Path, request: Request, *, seconds: float = ANSWER_SECONDS, is_own: IsOwn = is_own_peer) -> Answer:
    """Have the owner of the session whose lock file this is carry out a command line."""
    holder = read_holder(lock)
    if holder is None or holder.address is None:
        return Answer(ok=False, text=NOBODY)
    try:
        with anyio.fail_after(seconds), _connect(holder.address, is_own) as connection:
            await write_all(connection, encode_request(request))
            return parse_answer(await read_line(connection, limit=MAX_ANSWER))
    except TimeoutError:
        return Answer(ok=False, text=f"The agent did not answer within {seconds:g} seconds.")
    except (NoLineError, ProtocolError) as error:
        return Answer(ok=False, text=f"The agent gave no answer: {error}.")
    except OSError as error:
        if error.errno in {errno.ECONNREFUSED, errno.ENOENT}:
            return Answer(ok=False, text=NOBODY)
        return Answer(ok=False, text=f"The agent cannot be reached: {error.strerror or error}.")


def _connect(address: str, is_own: IsOwn = is_own_peer) -> socket.socket:
    """Raises `OSError`; a full queue of a process that does not answer is one."""
    if not is_private(Path(address).parent):
        raise OSError(errno.EACCES, f"{os.path.dirname(address)} is not private")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(0)
        connection.connect(address)
        if not is_own(connection):
            raise OSError(errno.EACCES, "another user listens there")
    except OSError:
        connection.close()
        raise
    return connection
