"""What a session says about its MCP servers (acp/surface.md §1.6).

May not know: the `mcp` package, ACP, processes. Invariant: plain data, checked by whoever made it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that speaks over its standard streams; `environment` comes on top of the scrubbed one."""

    name: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server at an address; `kind`: streamable HTTP, or the older one of server-sent events."""

    name: str
    kind: Literal["http", "sse"]
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that cannot be used, and why."""

    name: str
    reason: str


Streams = tuple[Any, Any]
"""The two message streams of a transport, as the `mcp` package wants them."""

Server = StdioServer | RemoteServer
Entry = Server | Refused


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: until a server must have told its tools; of one call; that a session's first model call waits."""

    connect: float = 30.0
    call: float = 300.0
    first_call_waits: float = 5.0
