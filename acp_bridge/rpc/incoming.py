"""Requests and notifications of the client, from their envelope to their answer.

May not know: descriptors, methods other than `$/cancel_request`. Invariants (contract acp.md §1): what was received
first runs first, up to the first await of its handler; each request is answered exactly once, also when a cancel races
its end; what a handler raises never leaves here.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.abc

from acp_bridge.rpc.bounded_log import WireLog
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import REQUEST_CANCELLED
from acp_bridge.rpc.errors import RpcError, error_object
from acp_bridge.rpc.messages import (
    NotificationMessage,
    RequestId,
    RequestMessage,
    error_frame,
    is_request_id,
    result_frame,
)
from acp_bridge.rpc.writer import OrderedWriter

CANCEL_REQUEST = "$/cancel_request"


class Dispatcher(Protocol):
    """What the connection is served with."""

    @abstractmethod
    def is_notification(self, method: str) -> bool:
        """Whether `method` is a notification that it knows; sent with an id, it is acted upon and answered `{}`."""

    @abstractmethod
    def begin(self, method: str, params: dict[str, Any], call: Call) -> bool:
        """Handle a request that needs no task of its own: True when `call.answer` will tell how it ended.

        False when nothing was done, and `request` has to handle it. Raises as `request` does.
        """

    @abstractmethod
    async def request(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any] | None:
        """Handle a request; None when `call.answer` will tell how it ended.

        Raises `RpcError`; anything else is a bug and answered −32603.
        """

    @abstractmethod
    def notification(self, method: str, params: dict[str, Any]) -> None:
        """Act upon a notification; unknown ones are ignored. What it raises is logged, never answered."""


class IncomingRequests:
    """Handles each request, as a task of `handlers` when it needs one, and queues its answer on `writer`."""

    def __init__(
        self, dispatcher: Dispatcher, *, handlers: anyio.abc.TaskGroup, writer: OrderedWriter, log: WireLog
    ) -> None:
        self._dispatcher = dispatcher
        self._handlers = handlers
        self._writer = writer
        self._log = log
        self._unanswered: set[Call] = set()
        self._calls: dict[RequestId, Call] = {}
        self._tasks = 0

    def lone_request(self, message: RequestMessage) -> None:
        """Handle a request that came in a piece of its own: without a task it can overtake nothing but tasks."""
        self._request(message, self._start if self._tasks else self._begin)

    def request(self, message: RequestMessage) -> None:
        """Handle a request, behind those received before it."""
        self._request(message, self._start)

    def notification(self, message: NotificationMessage) -> None:
        """Act upon a notification, behind the requests received before it."""
        # a task takes its first step in the order in which it was started among the loop's callbacks
        asyncio.get_running_loop().call_soon(self._act, message.method, message.params)

    def end(self) -> None:
        """The connection is over: whatever no task has answered is answered as cancelled."""
        for call in tuple(self._unanswered):
            self._answer(call, RpcError(REQUEST_CANCELLED, "Request cancelled"))

    def _request(self, message: RequestMessage, handle: Callable[[Call, dict[str, Any]], None]) -> None:
        self._writer.admit()
        if message.method == CANCEL_REQUEST or self._dispatcher.is_notification(message.method):
            asyncio.get_running_loop().call_soon(self._act_and_answer, message)
            return
        call = Call(message.id, message.method)
        call.answer = partial(self._answer, call)
        self._unanswered.add(call)
        # of two requests with one id both are answered, the later one is what a cancel can name
        self._calls[call.id] = call
        handle(call, message.params)

    def _act(self, method: str, params: dict[str, Any]) -> Exception | None:
        if method == CANCEL_REQUEST:
            return self._contained(lambda: self._cancel(params.get("requestId")), method)
        return self._contained(lambda: self._dispatcher.notification(method, params), method)

    def _act_and_answer(self, message: RequestMessage) -> None:
        error = self._act(message.method, message.params)
        self._writer.queue(result_frame(message.id, {}) if error is None else _failure(message.id, error))

    def _cancel(self, request_id: object) -> None:
        # looked up by type too: as keys, 1, 1.0 and true would be one
        call = self._calls.get(request_id) if is_request_id(request_id) else None
        if call is not None:
            call.cancel()

    def _begin(self, call: Call, params: dict[str, Any]) -> None:
        try:
            begun = self._dispatcher.begin(call.method, params, call)
        except Exception as error:  # noqa: BLE001 - the peer handler wall: a bug costs its request, not the connection
            self._answer(call, error)
        else:
            if not begun:
                self._start(call, params)

    def _start(self, call: Call, params: dict[str, Any]) -> None:
        scope = anyio.CancelScope()
        call.on_cancel(scope.cancel)
        self._tasks += 1
        self._handlers.start_soon(self._handle, call, params, scope)

    async def _handle(self, call: Call, params: dict[str, Any], scope: anyio.CancelScope) -> None:
        with scope:
            try:
                result = await self._dispatcher.request(call.method, params, call)
            except anyio.get_cancelled_exc_class():
                self._answer(call, RpcError(REQUEST_CANCELLED, "Request cancelled"))
                raise
            except Exception as error:  # noqa: BLE001 - the peer handler wall, for one that runs as a task
                self._answer(call, error)
            else:
                if result is not None:
                    self._answer(call, result)
            finally:
                self._tasks -= 1

    def _answer(self, call: Call, outcome: dict[str, Any] | Exception) -> None:
        if call not in self._unanswered:
            return
        self._unanswered.remove(call)
        if self._calls.get(call.id) is call:
            del self._calls[call.id]
        if not isinstance(outcome, Exception):
            try:
                self._writer.queue(result_frame(call.id, outcome))
            except ValueError as unwritable:
                outcome = unwritable
        if isinstance(outcome, Exception):
            if not isinstance(outcome, RpcError):
                self._log.warning("handler_failed", method=call.method, exc_info=outcome)
            self._writer.queue(_failure(call.id, outcome))
        elif behind := call.behind_response():
            with self._writer.deferring():
                for callback in behind:
                    self._contained(callback, call.method)

    def _contained(self, action: Callable[[], None], method: str) -> Exception | None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the listener wall: nobody waits for this, the log must have it
            self._log.warning("listener_failed", method=method[:200], exc_info=error)
            return error
        return None


def _failure(request_id: RequestId, error: Exception) -> bytes:
    try:
        return error_frame(request_id, error_object(error))
    except ValueError as unwritable:
        # its data was no JSON; the class name of that is what can be said
        return error_frame(request_id, error_object(unwritable))
