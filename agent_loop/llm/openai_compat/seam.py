"""The HTTP that the adapter needs, and no more (contract llm.md §5).

May not know: which client library serves it, what is in the bodies. Invariant: `read` gives bytes as they arrive, so
that any byte can be seen at once; every response is closed by who opened it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping


class HttpResponse(ABC):
    """A response whose head has arrived. `headers` has lower-case names."""

    status: int
    headers: Mapping[str, str]

    @abstractmethod
    async def read(self) -> bytes:
        """The next bytes, as soon as there are any; `b""` at the end. Raises `LlmError` (`TRANSPORT`)."""

    @property
    def ended(self) -> bool:
        """Whether the body has come and was read to its end; False also where that is not known without a `read`."""
        return False

    @abstractmethod
    def interrupt(self) -> None:
        """Let whoever waits in `read` get an `LlmError` now; what comes later fails as well."""

    def give_back(self) -> bool:
        """Give the connection back when that can be done at once; otherwise False, and `aclose` is to be awaited."""
        return False

    @abstractmethod
    async def aclose(self) -> None:
        """Give the connection back when the body was read to its end, else close it. Idempotent."""


class HttpTransport(ABC):
    """Connections to one endpoint, kept open between requests."""

    @abstractmethod
    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send and return when the head of the response is there. Raises `LlmError` (`TRANSPORT`)."""

    @abstractmethod
    async def get(self, url: str, *, headers: Mapping[str, str]) -> HttpResponse:
        """The same for a request without a body."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close every connection. Idempotent."""
