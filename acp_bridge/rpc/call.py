"""One incoming request while it is being handled.

May not know: descriptors, methods. Invariant: a cancel acts at most once and never by itself answers the request — the
peer answers when the handler has ended (contract acp.md §1).
"""

from collections.abc import Callable

import anyio

from acp_bridge.rpc.messages import RequestId


class Call:
    """What a handler may know and say about the request that it handles."""

    __slots__ = ("_behind", "_on_cancel", "id", "method", "scope")

    def __init__(self, request_id: RequestId, method: str) -> None:
        self.id = request_id
        self.method = method
        self.scope = anyio.CancelScope()
        self._behind: list[Callable[[], None]] = []
        self._on_cancel: Callable[[], None] = self.scope.cancel

    def after_response(self, callback: Callable[[], None]) -> None:
        """Run `callback` behind the successful response (never after an error).

        What it notifies leaves in a later write, ≥ 20 ms after the response or with the first frame that follows the
        client's next request.
        """
        self._behind.append(callback)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """The handler sees to `$/cancel_request` itself and still gives the result.

        Without this, the handler's task is cancelled and −32800 answered.
        """
        self._on_cancel = callback

    def cancel(self) -> None:
        """The client has asked for cancellation; later asks change nothing."""
        callback, self._on_cancel = self._on_cancel, _nothing
        callback()

    def behind_response(self) -> list[Callable[[], None]]:
        """What `after_response` was given, in order."""
        return self._behind


def _nothing() -> None:
    """A second cancel."""
