"""Requests that we send to the client, and how each of them ends.

May not know: descriptors, methods. Invariant: each request ends exactly once — by its answer, by its caller's abort or
cancellation (the client is told by `$/cancel_request`), or by the end of the connection; an answer that comes later
finds nobody but the `on_late` of its request, once (contract acp.md §1).
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


OnLate = Callable[[dict[str, Any]], None]
"""Gets the result that came when nobody waited for it any more."""


class OutgoingRequests:
    """The table of requests in flight. `queue` sends a frame in order."""

    def __init__(self, queue: Callable[[bytes], None]) -> None:
        self._queue = queue
        self._ids = itertools.count(1)
        # None = the request ends without an answer: aborted, or the connection is closed
        self._waiting: dict[int, asyncio.Future[ResponseMessage | None]] = {}
        # of requests that nobody may be waiting for when their answer comes
        self._on_late: dict[int, OnLate] = {}
        self.closed = False

    def post(self, method: str, params: dict[str, Any]) -> None:
        """Ask without waiting; the answer is dropped. Also after the end of the input: the client may still read."""
        self._queue(request_frame(next(self._ids), method=method, params=params))

    async def request(
        self, method: str, *, params: dict[str, Any], signal: Abort | None, on_late: OnLate | None = None
    ) -> dict[str, Any]:
        """Ask and wait for the result; null is `{}`.

        `on_late` gets a result that comes after all when nobody waits for it any more: something may have been made
        that must be given back. Raises `ConnectionClosed`, `RpcError` (the client's own error; −32800 after an abort;
        −32603 for a result that is no object), `ValueError` for params that JSON cannot say.
        """
        if self.closed:
            raise ConnectionClosed
        if signal is not None and signal.aborted:
            raise _cancelled(method)
        request_id = next(self._ids)
        frame = request_frame(request_id, method=method, params=params)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        if on_late is not None:
            self._on_late[request_id] = on_late
        self._queue(frame)
        forget = signal.on_abort(lambda: self._withdraw(request_id)) if signal is not None else None
        taken = False
        try:
            response = await answer
            # the abort may have come in the tick between the answer and here: it wins
            if signal is not None and signal.aborted:
                raise _cancelled(method)
            taken = True
        finally:
            if forget is not None:
                forget()
            self._withdraw(request_id)
            if answer.done() and not answer.cancelled() and (come := answer.result()) is not None:
                self._answered(request_id, come, taken=taken)
        if response is None:
            raise ConnectionClosed
        return _result(response, method)

    def settle(self, response: ResponseMessage) -> bool:
        """Give `response` to the request that it answers; False when there is none (unknown, late, null id)."""
        if not isinstance(response.id, int):
            return False
        waiting = self._waiting.pop(response.id, None)
        if waiting is not None and _wake(waiting, response):
            return True
        return self._answered(response.id, response, taken=False)

    def close(self) -> None:
        """End every request with `ConnectionClosed`, now and from now on."""
        self.closed = True
        for waiting in self._waiting.values():
            _wake(waiting, None)
        self._waiting.clear()
        self._on_late.clear()

    def _answered(self, request_id: int, response: ResponseMessage, *, taken: bool) -> bool:
        """The answer has come; unless somebody has taken it, it is late. False when that is of no interest."""
        on_late = self._on_late.pop(request_id, None)
        if on_late is None or taken:
            return False
        if response.error is None and isinstance(response.result, dict):
            on_late(cast("dict[str, Any]", response.result))
        return True

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
