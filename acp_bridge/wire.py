"""What a session needs of the connection to its client.

May not know: JSON-RPC, descriptors. Invariant: what is queued leaves in the order in which it was queued.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from agent_loop.abort import AbortSignal


class Wire(Protocol):
    """The peer, as far as sessions go."""

    @property
    @abstractmethod
    def congested(self) -> bool:
        """Producers should wait."""

    @abstractmethod
    def notify(self, method: str, params: dict[str, Any], /) -> None:
        """Queue a notification."""

    @abstractmethod
    def notify_encoded(self, frame: bytes, /) -> None:
        """Queue a ready line."""

    @abstractmethod
    async def drained(self) -> None:
        """Return when not congested."""

    @abstractmethod
    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        signal: AbortSignal | None = None,
        on_late: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Ask the client. Raises `RpcError`, `ConnectionClosed`; a result after that goes to `on_late`."""

    @abstractmethod
    def post(self, method: str, params: dict[str, Any], /) -> None:
        """Ask the client without waiting for the answer."""
