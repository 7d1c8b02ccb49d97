"""Which event may follow which (contract session-log.md §4)."""

import pytest

from agent_loop.session.nesting import Nesting, NestingError
from tests.support.session_turns import (
    answer,
    call,
    delta,
    result,
    step_end,
    step_start,
    text_turn,
    tool_turn,
    turn_end,
    turn_start,
    user,
)

STEERING = ("steering/message", {"turn": 1, "content": [], "source": {}})


def fed(*pairs) -> Nesting:
    nesting = Nesting()
    for event_type, data in pairs:
        nesting.check(event_type, data)
        nesting.apply(event_type, data)
    return nesting


def test_whole_turns_follow_each_other():
    nesting = fed(*text_turn(1), *tool_turn(2, "a"), *tool_turn(3, "b"))
    assert (nesting.open_turn, nesting.open_step, nesting.last_turn, nesting.last_step) == (None, None, 3, 2)


def test_the_open_turn_and_step_are_those_of_the_log():
    nesting = fed(*text_turn(1), turn_start(2), step_start(2, 1))
    assert (nesting.open_turn, nesting.open_step, nesting.last_turn) == (2, 1, 2)


def test_log_only_and_unknown_events_stand_anywhere():
    title = ("session/title", {"title": "t", "by": "agent"})
    unknown = ("someone/else", {})
    fed(
        title,
        unknown,
        turn_start(1),
        title,
        unknown,
        step_start(1, 1),
        title,
        unknown,
        step_end(1, 1),
        title,
        turn_end(1),
    )


def test_messages_stand_between_steps_too():
    fed(turn_start(1), step_start(1, 1), user("while"), step_end(1, 1), user("between"), STEERING, step_start(1, 2))


IN_STEP = (turn_start(1), step_start(1, 1))


@pytest.mark.parametrize(
    ("before", "event", "words"),
    [
        ((turn_start(1),), turn_start(2), "turn 1 is still open"),
        ((), turn_start(2), "turn 2 follows turn 0"),
        (text_turn(1), turn_start(1), "turn 1 follows turn 1"),
        ((), turn_end(1), "it names turn 1, open is none"),
        ((turn_start(1),), turn_end(2), "it names turn 2, open is turn 1"),
        (IN_STEP, turn_end(1), "step 1 is still open"),
        ((), step_start(1, 1), "open is none"),
        (IN_STEP, step_start(1, 2), "step 1 is still open"),
        ((turn_start(1),), step_start(1, 2), "step 2 follows step 0"),
        ((*IN_STEP, step_end(1, 1)), step_start(1, 1), "step 1 follows step 1"),
        ((turn_start(1),), step_end(1, 1), "it names step 1, open is none"),
        (IN_STEP, step_end(1, 2), "it names step 2, open is step 1"),
        ((turn_start(1),), delta(1, 1, "x"), "open is none"),
        (IN_STEP, delta(1, 2, "x"), "it names step 2"),
        (IN_STEP, delta(2, 1, "x"), "it names turn 2"),
        ((), answer(1, 1), "open is none"),
        ((turn_start(1),), call(1, 1, "c"), "it names step 1"),
        (IN_STEP, result(1, 1, "c"), "call 'c' was not logged in this step"),
        (
            (*IN_STEP, call(1, 1, "c"), result(1, 1, "c"), step_end(1, 1), step_start(1, 2)),
            result(1, 2, "c"),
            "call 'c' was not logged in this step",
        ),
        ((), user("x"), "no turn is open"),
        (text_turn(1), user("x"), "no turn is open"),
        ((), ("context/message", {"content": [], "source": {}}), "no turn is open"),
        ((), STEERING, "no turn is open"),
        ((*text_turn(1), turn_start(2)), STEERING, "it names turn 1, open is turn 2"),
    ],
)
def test_an_event_out_of_place_is_refused_and_changes_nothing(before, event, words):
    nesting = fed(*before)
    state = (nesting.open_turn, nesting.open_step, nesting.last_turn, nesting.last_step)
    with pytest.raises(NestingError, match=words) as caught:
        nesting.check(*event)
    assert caught.value.event_type == event[0]
    assert caught.value.code == "NESTING"
    assert state == (nesting.open_turn, nesting.open_step, nesting.last_turn, nesting.last_step)
