"""The tokens of a session by model: a fold of the log."""

from agent_loop.session.events import make_event
from agent_loop.session.spending import add_usage
from agent_loop.session.state import LogState


def test_calls_of_one_model_are_added_up_and_what_was_before_stays():
    first = add_usage({}, ("p", "m"), {"inputTokens": 1, "outputTokens": 2})
    second = add_usage(first, ("p", "m"), {"inputTokens": 10, "outputTokens": 20, "cacheReadTokens": 5})
    third = add_usage(second, ("q", "m"), {"inputTokens": 7, "outputTokens": 0})
    assert first == {("p", "m"): {"inputTokens": 1, "outputTokens": 2}}
    assert third == {
        ("p", "m"): {"inputTokens": 11, "outputTokens": 22, "cacheReadTokens": 5},
        ("q", "m"): {"inputTokens": 7, "outputTokens": 0},
    }


def test_what_is_no_count_is_left_out():
    odd = {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": "many", "reasoningTokens": None}
    assert add_usage({}, ("p", "m"), odd) == {("p", "m"): {"inputTokens": 1, "outputTokens": 2}}


def test_a_log_counts_each_call_for_the_model_that_answered_it():
    state = LogState(None)
    turn = {"turn": 1, "trigger": {"kind": "message", "source": {"kind": "user"}}}
    header = {"turn": 1, "step": 1, "model": "m", "provider": "p", "fingerprint": "f"}
    usage = {"inputTokens": 3, "outputTokens": 4}
    rows = [
        ("turn/start", turn),
        ("step/start", {"turn": 1, "step": 1}),
        ("request/header", header),
        ("assistant/message", {"turn": 1, "step": 1, "content": [], "usage": usage}),
        ("config/change", {"configId": "model", "value": "p/other"}),
        ("config/change", {"configId": "odd"}),
    ]
    for seq, (kind, data) in enumerate(rows):
        state.feed(make_event(kind, seq, 0, data))
    assert state.spent == {("p", "m"): usage}
    assert state.config == {"model": "p/other", "odd": None}
