"""The connection to a server that is a program of ours (acp/surface.md §1.6, stdio).

May not know: sessions, tools. Invariant: the program's whole process tree is gone when the streams are left, whichever
way; what it writes to stderr, and what of its stdout is no message, goes into its own log file and nowhere else.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from agent_loop.mcp.lines import Lines, messages_of
from agent_loop.mcp.seam import StdioServer, Streams
from agent_loop.mcp.server_log import ServerLog
from bash_exec.service import Service, Services

_DRAIN_SECONDS = 0.2  # between the exit and the end of stdout, either first: a child of the server may hold the pipe
_LOG_PAUSE = 0.01  # seconds between two reads of stderr: who floods it gets a slow reader, not all of the loop


class Program:
    """Starts `server` in `directory`. `on_over` is called when it has ended, or closed its stdout."""

    def __init__(
        self, server: StdioServer, *, directory: str, services: Services, log: ServerLog, on_over: Callable[[], None]
    ) -> None:
        self._server = server
        self._directory = directory
        self._services = services
        self._log = log
        self._on_over = on_over
        self._is_over = False
        self._silent = anyio.Event()  # stdout is at its end
        self._ending = ""

    def explained(self, problem: str) -> str:
        """`problem`, or the end of the program when that is the cause, with its last words."""
        words = self._log.last_words
        return f"{self._ending or problem}{f' ({words})' if words else ''}"

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Streams]:
        """Its message streams. Raises `ExecutorError` when it cannot be started."""
        service = await self._services.start(
            [self._server.command, *self._server.arguments],
            directory=self._directory,
            environment=self._server.environment,
        )
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as pumps:
                pumps.start_soon(self._listen, service, to_session)
                pumps.start_soon(self._speak, service, from_session)
                pumps.start_soon(self._log_errors, service)
                try:
                    with from_server, to_server:
                        yield from_server, to_server
                finally:
                    pumps.cancel_scope.cancel()
        finally:
            if self._is_over:
                with anyio.move_on_after(_DRAIN_SECONDS, shield=True):
                    await service.exited()
                self._ending = service.ending or ""
            await service.end()

    async def _listen(self, service: Service, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        with to_session:
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive, service, to_session)
                await service.exited()
                with anyio.move_on_after(_DRAIN_SECONDS):
                    await self._silent.wait()
                group.cancel_scope.cancel()
        self._end()

    async def _receive(self, service: Service, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        lines = Lines()
        while data := await service.read_output():
            for line in lines.feed(data):
                try:
                    messages = messages_of(line)
                except ValueError:
                    self._log.note(line)
                    continue
                for message in messages:
                    await to_session.send(SessionMessage(message))
        # nobody will answer any more, and the exit may never come
        to_session.close()
        self._silent.set()
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._on_over()

    async def _speak(self, service: Service, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with from_session:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await service.send(text.encode() + b"\n")
                except BrokenPipeError:
                    return

    async def _log_errors(self, service: Service) -> None:
        while data := await service.read_errors():
            self._log.write(data)
            await anyio.sleep(_LOG_PAUSE)
