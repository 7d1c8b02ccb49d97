"""A raw client at the far end of two real pipes, with the product's Peer at the near end."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread

from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import METHOD_NOT_FOUND
from acp_bridge.rpc.errors import RpcError
from acp_bridge.rpc.peer import Peer
from acp_bridge.rpc.stdio import Stdio
from tests.support.recording_log import RecordingLog

Handler = Callable[[dict[str, Any], Call], Awaitable[dict[str, Any]]]


class ScriptedDispatcher:
    """Handlers, those that need no task and listeners by method name; `echo` answers with its params."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {"echo": self._echo}
        self.beginners: dict[str, Callable[[dict[str, Any], Call], None]] = {}
        self.listeners: dict[str, Callable[[dict[str, Any]], None]] = {}

    def is_notification(self, method: str) -> bool:
        return method in self.listeners

    def begin(self, method: str, params: dict[str, Any], call: Call) -> bool:
        if method not in self.beginners:
            return False
        self.beginners[method](params, call)
        return True

    async def request(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any] | None:
        if self.begin(method, params, call):
            return None
        if method not in self.handlers:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        return await self.handlers[method](params, call)

    def notification(self, method: str, params: dict[str, Any]) -> None:
        if method in self.listeners:
            self.listeners[method](params)

    async def _echo(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        return params


class WireClient:
    """The client's side. `writes` counts the writes of the agent, `served` is set when `serve` has returned."""

    def __init__(self, to_agent: int, from_agent: int) -> None:
        self._to_agent: int | None = to_agent
        self._from_agent: int | None = from_agent
        self._buffer = b""
        self._next_id = 1000
        self.dispatcher = ScriptedDispatcher()
        self.log = RecordingLog()
        self.writes = 0
        self.before_write: Callable[[], None] = lambda: None
        self.served = anyio.Event()
        self.peer: Peer

    def count_write(self) -> None:
        self.writes += 1
        self.before_write()

    async def send(self, *lines: dict[str, Any] | bytes) -> None:
        """Write the lines in one piece; bytes go out as they are, newline excluded."""
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        await self.send_raw(b"".join(text + b"\n" for text in texts))

    async def send_raw(self, data: bytes) -> None:
        assert self._to_agent is not None
        with anyio.fail_after(20):
            while data:
                data = data[await anyio.to_thread.run_sync(os.write, self._to_agent, data) :]

    async def line(self) -> bytes:
        """The next line of the agent; b"" at its end."""
        assert self._from_agent is not None
        with anyio.fail_after(20):
            while b"\n" not in self._buffer:
                await anyio.wait_readable(self._from_agent)
                piece = os.read(self._from_agent, 1 << 20)
                if not piece:
                    return b""
                self._buffer += piece
        line, _newline, self._buffer = self._buffer.partition(b"\n")
        return line

    async def frame(self) -> dict[str, Any]:
        loaded = json.loads(await self.line())
        assert loaded.pop("jsonrpc") == "2.0"
        return loaded

    async def frames(self, count: int) -> list[dict[str, Any]]:
        return [await self.frame() for _ in range(count)]

    async def assert_quiet(self) -> None:
        """Nothing was sent before the answer to a fresh request, and everything sent has been acted upon."""
        self._next_id += 1
        await self.send({"id": self._next_id, "method": "echo"})
        assert await self.frame() == {"id": self._next_id, "result": {}}

    def close_input(self) -> None:
        if self._to_agent is not None:
            os.close(self._to_agent)
            self._to_agent = None

    def close_output(self) -> None:
        if self._from_agent is not None:
            os.close(self._from_agent)
            self._from_agent = None


@asynccontextmanager
async def wire(
    *,
    preread: bytes = b"",
    on_eof: Callable[[], Awaitable[None]] | None = None,
    max_frame: int = 64 << 20,
    high_water: int = 1 << 20,
) -> AsyncIterator[WireClient]:
    """A peer that serves, and its client. Leaving closes the client's ends and waits for `serve` to return."""
    agent_in, to_agent = os.pipe()
    from_agent, agent_out = os.pipe()
    client = WireClient(to_agent, from_agent)
    client.peer = Peer(
        Stdio(agent_in, agent_out),
        before_write=client.count_write,
        log=client.log,
        max_frame=max_frame,
        high_water=high_water,
    )

    async def serve() -> None:
        if on_eof is None:
            await client.peer.serve(client.dispatcher, preread=preread)
        else:
            await client.peer.serve(client.dispatcher, preread=preread, on_eof=on_eof)
        client.served.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            yield client
            client.close_input()
            client.close_output()
            with anyio.fail_after(20):
                await client.served.wait()
    finally:
        client.close_input()
        client.close_output()
        os.close(agent_in)
        os.close(agent_out)
