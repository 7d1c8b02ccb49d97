"""The socket of a process that owns sessions: made when it is first wanted, gone when the process ends.

May not know: sessions, commands. Invariant: only this user is answered, only what the protocol allows is carried out,
and a peer that is slow, says too much or nothing costs one of few places for a bounded time.
"""

import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from acp_bridge.owner.lines import NoLineError, read_line, write_all
from acp_bridge.owner.places import IsOwn, is_own_peer, socket_path, sweep
from acp_bridge.owner.protocol import (
    MAX_REQUEST,
    Answer,
    ProtocolError,
    Request,
    encode_answer,
    parse_request,
)
from agent_loop.runtime import Runtime

PEERS: Final = 8
"""So many are served at a time; others wait."""
PEER_SECONDS: Final = 20.0
_WAITING: Final = 64
_PAUSE_SECONDS: Final = 1.0

Execute = Callable[[Request], Awaitable[Answer]]


class OwnerSocket:
    """`address` makes the socket; its tasks run in `tasks` until that is cancelled."""

    def __init__(
        self,
        candidates: Sequence[Path],
        execute: Execute,
        *,
        tasks: TaskGroup,
        runtime: Runtime,
        peer_seconds: float = PEER_SECONDS,
        is_own: IsOwn = is_own_peer,
    ) -> None:
        self._candidates = candidates
        self._execute = execute
        self._tasks = tasks
        self._runtime = runtime
        self._peer_seconds = peer_seconds
        self._is_own = is_own
        self._places = anyio.Semaphore(PEERS)
        self._path: Path | None = None

    def address(self) -> str:
        """The path of the socket, which listens from now on. Raises `OSError` when it cannot be made."""
        if self._path is None:
            path = socket_path(self._candidates, self._runtime.new_id()[-8:])
            sweep(path.parent)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.settimeout(0)
                listener.bind(str(path))
                os.chmod(path, 0o600)
                listener.listen(_WAITING)
            except OSError:
                listener.close()
                raise
            self._path = path
            self._tasks.start_soon(self._listen, listener, path)
        return str(self._path)

    async def _listen(self, listener: socket.socket, path: Path) -> None:
        try:
            async with anyio.create_task_group() as peers:
                while True:
                    await self._places.acquire()
                    await anyio.wait_readable(listener)
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        # no descriptor is left, or the peer is gone again
                        self._places.release()
                        await self._runtime.sleep(_PAUSE_SECONDS)  # no event tells that a descriptor is free again
                    else:
                        peers.start_soon(self._serve, connection)
        finally:
            listener.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, anyio.move_on_after(self._peer_seconds):
                connection.settimeout(0)
                await self._answer(connection)
        except (NoLineError, OSError):
            # there is nobody to tell
            return
        finally:
            self._places.release()

    async def _answer(self, connection: socket.socket) -> None:
        if not self._is_own(connection):
            return
        try:
            answer = await self._execute(parse_request(await read_line(connection, limit=MAX_REQUEST)))
        except ProtocolError as error:
            answer = Answer(ok=False, text=str(error))
        await write_all(connection, encode_answer(answer))
