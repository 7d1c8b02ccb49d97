"""What goes wrong on the wire, and the one place where an exception becomes an error object.

May not know: ACP, the agent. Invariant: an error object has an integer code and a string message; `data` is absent or
an object with `details`, never null; the text of an unexpected exception stays in the log, since nobody vouches for
what is in it (contract acp.md §1).
"""

from typing import Any, cast

from acp_bridge.rpc.codes import INTERNAL_ERROR
from acp_bridge.rpc.messages import ProtocolError, TransportError


class RpcError(ProtocolError):
    """A request that ends in an error object, ours or the client's.

    `message` is one readable sentence; `data`, if any, is `{"reason": symbol, "details": whole text, …}`
    (`details` defaults to the message).
    """

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ConnectionClosed(TransportError):
    """The client has closed its end: nothing that we ask will be answered any more."""

    def __init__(self) -> None:
        super().__init__("the client closed the connection")


def error_object(error: BaseException) -> dict[str, Any]:
    """The error member of the response to a request that ended in `error`."""
    lone = _lone(error)
    if not isinstance(lone, RpcError):
        details = f"unexpected {type(lone).__name__}; the agent's log has the whole story"
        return {"code": INTERNAL_ERROR, "message": "Internal error", "data": {"reason": "internal", "details": details}}
    answer: dict[str, Any] = {"code": lone.code, "message": lone.message}
    if lone.data is not None:
        answer["data"] = {**lone.data, "details": lone.data.get("details", lone.message)}
    return answer


def _lone(error: BaseException) -> BaseException:
    """What is inside when task groups wrapped a single error."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _lone(group.exceptions[0]) if len(group.exceptions) == 1 else group
