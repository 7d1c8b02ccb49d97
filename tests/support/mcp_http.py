"""MCP servers at an address of this machine: streamable HTTP and server-sent events, as little as a client needs."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

TOOL = {"name": "say", "inputSchema": {"type": "object"}}
Reply = Callable[[str, str, str], Awaitable[None]]


@dataclass
class Site:
    """`requests` are the `(method, path, headers)` that came; `status` 401 refuses every one of them."""

    url: str = ""
    status: int = 200
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    streams: list[asyncio.StreamWriter] = field(default_factory=list)

    def methods(self) -> list[str]:
        return [method for method, _path, _headers in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, until it ends."""
        try:
            while line := await reader.readline():
                method, path, _version = line.decode().split()
                headers = {}
                while (row := (await reader.readline()).decode().strip()) != "":
                    name, _, value = row.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append((method, path, headers))
                await self._answer(writer, method, path, body)
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, method: str, path: str, body: bytes) -> None:
        if self.status != 200:
            await respond(writer, self.status, b"")
        elif method == "GET" and path == "/sse":
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n"
            writer.write(head.encode())
            self.streams.append(writer)
            await writer.drain()
        elif method == "POST":
            answer = answer_to(json.loads(body))
            if path == "/messages":
                await respond(writer, 202, b"")
                if answer:
                    self.streams[-1].write(b"event: message\ndata: " + answer + b"\n\n")
            else:
                await respond(writer, 200 if answer else 202, answer)
        else:
            await respond(writer, 200 if method == "DELETE" else 405, b"")


def answer_to(frame: dict[str, Any]) -> bytes:
    """The frame that answers, empty for a notification."""
    if "id" not in frame:
        return b""
    server = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    said = frame.get("params", {}).get("arguments")
    results = {
        "initialize": server,
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(said)}]},
    }
    return json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": results[frame["method"]]}).encode()


async def respond(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """A server on a free port."""
    place = Site()
    server = await asyncio.start_server(place.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        place.url = f"http://127.0.0.1:{port}"
        yield place
        for stream in place.streams:
            stream.close()
