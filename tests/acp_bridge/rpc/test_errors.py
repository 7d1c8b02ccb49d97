"""The one exception-to-error-object mapping, and the bounded log."""

from jsonrpc_base import ProtocolError, TransportError

from acp_bridge.rpc.bounded_log import LINES, WINDOW, BoundedLog
from acp_bridge.rpc.errors import ConnectionClosed, RpcError, error_object
from tests.support.recording_log import RecordingLog


def test_the_error_families_are_rooted_in_jsonrpc_base():
    assert issubclass(RpcError, ProtocolError)
    assert issubclass(ConnectionClosed, TransportError)
    assert str(RpcError(-32602, "Invalid params: cwd")) == "Invalid params: cwd"


def test_a_refusal_without_data_has_no_data_member():
    assert error_object(RpcError(-32602, "no")) == {"code": -32602, "message": "no"}


def test_data_always_holds_details():
    assert error_object(RpcError(-32603, "no", {"reason": "busy"}))["data"] == {"reason": "busy", "details": "no"}
    assert error_object(RpcError(-32603, "no", {"reason": "busy", "details": "why"}))["data"]["details"] == "why"


def test_an_unexpected_exception_is_internal_and_keeps_its_text_to_itself():
    answer = error_object(KeyError("sk-secret"))
    assert answer["code"] == -32603
    assert answer["data"]["reason"] == "internal"
    assert "KeyError" in answer["data"]["details"]
    assert "sk-secret" not in str(answer)


def test_a_refusal_that_a_task_group_wrapped_is_found():
    wrapped = ExceptionGroup("a", [ExceptionGroup("b", [RpcError(-32602, "no")])])
    assert error_object(wrapped) == {"code": -32602, "message": "no"}
    both = ExceptionGroup("a", [RpcError(-32602, "no"), RpcError(-32602, "nor this")])
    assert error_object(both)["code"] == -32603


def test_a_flood_is_logged_at_a_bounded_rate_and_what_was_left_out_is_said():
    now = [0.0]
    log = RecordingLog()
    bounded = BoundedLog(log, clock=lambda: now[0])
    for _ in range(100):
        bounded.warning("bad", reason="x")
        bounded.debug("late")
    assert len(log.named("bad")) == len(log.named("late")) == LINES
    now[0] = WINDOW
    bounded.warning("bad", reason="x")
    assert log.lines[-1] == ("warning", "bad", {"reason": "x", "left_out": 100 - LINES})
    now[0] = 2 * WINDOW
    bounded.warning("bad", reason="x")
    assert log.lines[-1] == ("warning", "bad", {"reason": "x"})
