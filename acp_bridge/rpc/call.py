"""One incoming request while it is being handled.

May not know: descriptors, methods. Invariant: a cancel acts at most once and never by itself answers the request — the
peer answers when the handler has ended, or what `answer` was given (contract acp.md §1).
"""

from collections.abc import Callable
from typing import Any

from acp_bridge.rpc.errors import RpcError
from acp_bridge.rpc.messages import RequestId

Outcome = dict[str, Any] | RpcError
"""The result of a request, or the error that it ended in."""


def _nothing(*_args: object) -> None:
    """Nobody waits."""


class Call:
    """What a handler may know and say about the request that it handles.

    `answer` ends a request that was begun without a task (`Dispatcher.begin`), from anywhere: its answer is queued on
    return. Once the request was answered it changes nothing.
    """

    __slots__ = ("_behind", "_cancelled", "_on_cancel", "answer", "id", "method")

    def __init__(self, request_id: RequestId, method: str) -> None:
        self.id = request_id
        self.method = method
        self.answer: Callable[[Outcome], None] = _nothing
        self._behind: list[Callable[[], None]] = []
        self._on_cancel: Callable[[], None] = _nothing
        self._cancelled = False

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
        if self._cancelled:
            # the ask came while the handler was between two of these
            self._act()

    def cancel(self) -> None:
        """The client has asked for cancellation; later asks change nothing."""
        if not self._cancelled:
            self._cancelled = True
            self._act()

    def _act(self) -> None:
        callback, self._on_cancel = self._on_cancel, _nothing
        callback()

    def behind_response(self) -> list[Callable[[], None]]:
        """What `after_response` was given, in order."""
        return self._behind
