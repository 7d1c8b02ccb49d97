"""Requests that we send to the client, and how each of them ends.

May not know: descriptors, methods. Invariant: each request ends exactly once — by its answer, by its caller's abort or
cancellation (the client is told by `$/cancel_request`), or by the end of the connection; an answer that comes later
finds nobody (contract acp.md §1).
"""

import asyncio
import itertools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, cast

from acp_bridge.rpc.codes import INTERNAL_ERROR, REQUEST_CANCELLED
from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from acp_bridge.rpc.messages import ResponseMessage, notification_frame, request_frame


class Abort(Protocol):
    """The part of an abort signal that a request needs."""

    @property
    @abstractmethod
    def aborted(self) -> bool:
        """Whether it has happened."""

    @abstractmethod
    def on_abort(self, callback: Callable[[], None], /) -> Callable[[], None]:
        """Call `callback` once when it happens; returns a remover."""


class OutgoingRequests:
    """The table of requests in flight. `queue` sends a frame in order."""

    def __init__(self, queue: Callable[[bytes], None]) -> None:
        self._queue = queue
        self._ids = itertools.count(1)
        # None = the request ends without an answer: aborted, or the connection is closed
        self._waiting: dict[int, asyncio.Future[ResponseMessage | None]] = {}
        self.closed = False

    async def request(self, method: str, *, params: dict[str, Any], signal: Abort | None) -> dict[str, Any]:
        """Ask and wait for the result; null is `{}`.

        Raises `ConnectionClosed`, `RpcError` (the client's own error; −32800 after an abort; −32603 for a result that
        is no object), `ValueError` for params that JSON cannot say.
        """
        if self.closed:
            raise ConnectionClosed
        if signal is not None and signal.aborted:
            raise _cancelled(method)
        request_id = next(self._ids)
        frame = request_frame(request_id, method=method, params=params)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        self._queue(frame)
        forget = signal.on_abort(lambda: self._withdraw(request_id)) if signal is not None else None
        try:
            response = await answer
        finally:
            if forget is not None:
                forget()
            self._withdraw(request_id)
        # the abort may have come in the tick between the answer and here: it wins
        if signal is not None and signal.aborted:
            raise _cancelled(method)
        if response is None:
            raise ConnectionClosed
        return _result(response, method)

    def settle(self, response: ResponseMessage) -> bool:
        """Give `response` to the request that it answers; False when there is none (unknown, late, null id)."""
        if not isinstance(response.id, int):
            return False
        waiting = self._waiting.pop(response.id, None)
        return waiting is not None and _wake(waiting, response)

    def close(self) -> None:
        """End every request with `ConnectionClosed`, now and from now on."""
        self.closed = True
        for waiting in self._waiting.values():
            _wake(waiting, None)
        self._waiting.clear()

    def _withdraw(self, request_id: int) -> None:
        """Tell the client that nobody waits for this answer; nothing when it has come already."""
        waiting = self._waiting.pop(request_id, None)
        if waiting is not None:
            self._queue(notification_frame("$/cancel_request", {"requestId": request_id}))
            _wake(waiting, None)


def _wake(waiting: asyncio.Future[ResponseMessage | None], response: ResponseMessage | None) -> bool:
    if waiting.done():
        # its task was cancelled and has not run since
        return False
    waiting.set_result(response)
    return True


def _cancelled(method: str) -> RpcError:
    return RpcError(REQUEST_CANCELLED, f"{method} was cancelled")


def _result(response: ResponseMessage, method: str) -> dict[str, Any]:
    error, result = response.error, response.result
    if error is not None:
        raise _client_error(error, method)
    if result is None:
        return {}
    if not isinstance(result, dict):
        raise RpcError(INTERNAL_ERROR, f"the client answered {method} with a result that is no object")
    return cast("dict[str, Any]", result)


def _client_error(error: object, method: str) -> RpcError:
    members = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code, message, data = members.get("code"), members.get("message"), members.get("data")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else f"the client refused {method} without saying why",
        cast("dict[str, Any]", data) if isinstance(data, dict) else None,
    )
