"""How the log of a crashed process is closed (contract session-log.md §8)."""

from agent_loop.session.events import make_event
from agent_loop.session.nesting import Nesting
from agent_loop.session.repair import CrashFold
from agent_loop.session.shapes import shape_fault
from tests.support.session_turns import (
    answer,
    call,
    call_block,
    delta,
    events_of,
    result,
    step_end,
    step_start,
    text_turn,
    tool_turn,
    turn_start,
    user,
)


def repaired(*pairs):
    crash, nesting = CrashFold(), Nesting()
    for event in events_of(list(pairs)):
        crash.feed(event)
        nesting.check(event.type, event.data)
        nesting.apply(event.type, event.data)
    closing = crash.repair()
    for event_type, data in closing:
        assert shape_fault(event_type, data) is None
        nesting.check(event_type, data)
        nesting.apply(event_type, data)
    assert nesting.open_turn is None
    return closing


def summary(closing):
    return [
        (event_type, data.get("callId"), data.get("error", {}).get("code") or data.get("reason", {}).get("kind"))
        for event_type, data in closing
    ]


INTERRUPTED = ("turn/end", None, "interrupted")
STEP_END = ("step/end", None, None)


def test_a_closed_log_needs_nothing():
    assert repaired() == []
    assert repaired(*text_turn(1), *tool_turn(2, "c")) == []


def test_an_open_turn_is_closed_as_interrupted():
    assert repaired(turn_start(1), user("x")) == [("turn/end", {"turn": 1, "reason": {"kind": "interrupted"}})]


def test_an_open_step_is_closed_first():
    assert summary(repaired(turn_start(1), step_start(1, 1), delta(1, 1, "par"))) == [STEP_END, INTERRUPTED]


def test_between_steps_only_the_turn_is_closed():
    assert summary(repaired(*tool_turn(1, "c")[:8])) == [INTERRUPTED]


def test_a_call_that_was_never_logged_is_logged_and_answered_as_not_started():
    closing = repaired(turn_start(1), step_start(1, 1), answer(1, 1, call_block("c", '{"a":1}')))
    assert summary(closing) == [
        ("tool/call", "c", None),
        ("tool/result", "c", "tool-not-started"),
        STEP_END,
        INTERRUPTED,
    ]
    assert closing[0][1] == {"turn": 1, "step": 1, "callId": "c", "name": "bash", "arguments": '{"a":1}'}
    assert closing[1][1]["isError"] is True
    assert closing[1][1]["error"]["name"] == "InterruptedError"
    assert "did not run" in closing[1][1]["content"][0]["text"]


def test_a_call_that_was_running_has_an_unknown_outcome():
    closing = repaired(turn_start(1), step_start(1, 1), answer(1, 1, call_block("c")), call(1, 1, "c"))
    assert summary(closing) == [("tool/result", "c", "tool-outcome-unknown"), STEP_END, INTERRUPTED]
    assert "outcome is unknown" in closing[0][1]["content"][0]["text"]


REQUEST = ("permission/request", {"callId": "c", "digest": "d"})


def decision(outcome: str):
    return "permission/decision", {"callId": "c", "digest": "d", "outcome": outcome, "by": "user"}


def test_a_call_that_waited_for_permission_did_not_start():
    head = (turn_start(1), step_start(1, 1), answer(1, 1, call_block("c")), REQUEST, call(1, 1, "c"))
    assert summary(repaired(*head))[0] == ("tool/result", "c", "tool-not-started")
    assert summary(repaired(*head, decision("reject")))[0] == ("tool/result", "c", "tool-not-started")
    assert summary(repaired(*head, decision("allow")))[0] == ("tool/result", "c", "tool-outcome-unknown")


def test_answered_calls_stay_as_they_are_and_the_others_follow_in_order():
    blocks = [call_block(name) for name in ("a", "b", "c")]
    head = (turn_start(1), step_start(1, 1), answer(1, 1, *blocks), call(1, 1, "a"), result(1, 1, "a"), call(1, 1, "b"))
    assert summary(repaired(*head)) == [
        ("tool/result", "b", "tool-outcome-unknown"),
        ("tool/call", "c", None),
        ("tool/result", "c", "tool-not-started"),
        STEP_END,
        INTERRUPTED,
    ]


def test_the_calls_of_an_earlier_step_are_none_of_the_open_ones():
    head = tool_turn(1, "c")[:8]
    assert summary(repaired(*head, step_start(1, 2), step_end(1, 2))) == [INTERRUPTED]
    assert summary(repaired(*head, step_start(1, 2))) == [STEP_END, INTERRUPTED]


def test_unknown_events_are_ignored():
    crash = CrashFold()
    crash.feed(make_event("someone/else", 0, 0, None))
    assert crash.repair() == []
