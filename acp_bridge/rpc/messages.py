"""Frames to envelopes and back: what a line means, and how a message is written.

May not know: methods, handlers, descriptors. The only importer of `jsonrpc_base`: its error classes are the roots of
ours and `Request.parse` checks the shape of params; the detection of envelopes and every serialisation are ours (it
can neither tell `id:null` from no id nor keep empty params).
Invariant: `parse` is total — any bytes give a message, no exception; a frame that we write holds no NaN, no lone
surrogate and no raw line separator of any kind (contract acp.md §1).
"""

from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from jsonrpc_base import ProtocolError, Request, TransportError

from acp_bridge.rpc.codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from acp_bridge.rpc.json_text import decode, encode

__all__ = [
    "InvalidMessage",
    "MalformedNotification",
    "Message",
    "NotificationMessage",
    "ProtocolError",
    "RequestId",
    "RequestMessage",
    "ResponseMessage",
    "TransportError",
    "encode",
    "error_frame",
    "is_request_id",
    "notification_frame",
    "parse",
    "request_frame",
    "result_frame",
]

RequestId = int | str | None


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """Wants exactly one answer. `id` may be null; absent and null params are `{}`."""

    id: RequestId
    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NotificationMessage:
    """Is never answered."""

    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResponseMessage:
    """Answers a request of ours. `error` is the error member when it is not null, of whatever type the client sent."""

    id: RequestId
    result: Any
    error: Any


@dataclass(frozen=True, slots=True)
class InvalidMessage:
    """Is answered with an error of `code`; `id` is null unless a legal one could be read; `reason` is its message."""

    code: int
    id: RequestId
    reason: str


@dataclass(frozen=True, slots=True)
class MalformedNotification:
    """A notification whose params are no object: it cannot be acted upon and must not be answered."""

    method: str


Message = RequestMessage | NotificationMessage | ResponseMessage | InvalidMessage | MalformedNotification


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Whether `value` is a legal id: int, string or null (a bool is no int here)."""
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def parse(frame: bytes) -> Message:
    """Read one frame. Never raises: what is no message is an `InvalidMessage`."""
    try:
        loaded = decode(frame)
    except ValueError as error:
        return InvalidMessage(PARSE_ERROR, None, f"Parse error: {error}")
    if isinstance(loaded, list):
        return InvalidMessage(INVALID_REQUEST, None, "Invalid request: batches are not part of this protocol")
    if not isinstance(loaded, dict):
        return InvalidMessage(INVALID_REQUEST, None, "Invalid request: a message is a JSON object")
    members = cast("dict[str, Any]", loaded)
    if members.get("method") is None and ("result" in members or "error" in members):
        return _response(members)
    request_id = members.get("id")
    if not is_request_id(request_id):
        return InvalidMessage(INVALID_REQUEST, None, "Invalid request: the id must be an integer, a string or null")
    method = members.get("method")
    if not isinstance(method, str):
        return InvalidMessage(INVALID_REQUEST, request_id, "Invalid request: there is no method, result or error")
    return _call(method, request_id, members)


def _response(members: dict[str, Any]) -> ResponseMessage:
    answered = members.get("id")
    # an illegal id was never one of ours; null is nobody's either, so both are dropped by the same rule
    return ResponseMessage(
        id=answered if is_request_id(answered) else None, result=members.get("result"), error=members.get("error")
    )


def _call(method: str, request_id: RequestId, members: dict[str, Any]) -> Message:
    is_notification = "id" not in members
    params = members.get("params")
    # an object, as nearly all have, is nothing to be checked
    invalid = None if isinstance(params, dict) else _params_fault(request_id, members)
    if invalid is not None:
        return MalformedNotification(method) if is_notification else invalid
    named = cast("dict[str, Any]", params or {})
    return NotificationMessage(method, named) if is_notification else RequestMessage(request_id, method, named)


def _params_fault(request_id: RequestId, members: dict[str, Any]) -> InvalidMessage | None:
    try:
        params = Request.parse(members).params
    except ProtocolError as error:
        return InvalidMessage(INVALID_REQUEST, request_id, f"Invalid request: {error}")
    if isinstance(params, list):
        return InvalidMessage(INVALID_PARAMS, request_id, "Invalid params: they are given by name, in an object")
    return None


def request_frame(request_id: int, *, method: str, params: dict[str, Any]) -> bytes:
    """A request of ours as a line. Raises `ValueError` for what JSON cannot say."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + b"\n"


def notification_frame(method: str, params: dict[str, Any]) -> bytes:
    """A notification as a line. Raises `ValueError` for what JSON cannot say."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"


def result_frame(request_id: RequestId, result: dict[str, Any]) -> bytes:
    """A successful response as a line. Raises `ValueError` for what JSON cannot say."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def error_frame(request_id: RequestId, error: dict[str, Any]) -> bytes:
    """An error response as a line. Raises `ValueError` for what JSON cannot say."""
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error}) + b"\n"
