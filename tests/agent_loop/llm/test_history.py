"""The history normaliser (contract llm.md §5)."""

import pytest

from agent_loop.llm.history import NO_RESULT_TEXT, normalise
from agent_loop.vocabulary import text_block
from tests.support.llm_request import user


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def call(call_id):
    return {"type": "tool-call", "id": call_id, "name": "bash", "arguments": "{}"}


def result(*call_ids):
    blocks = [{"type": "tool-result", "toolCallId": call_id, "content": [text_block("ok")]} for call_id in call_ids]
    return {"role": "user", "content": blocks}


def missing(*call_ids):
    blocks = [
        {"type": "tool-result", "toolCallId": call_id, "content": [text_block(NO_RESULT_TEXT)], "isError": True}
        for call_id in call_ids
    ]
    return {"role": "user", "content": blocks}


THOUGHT = {"type": "reasoning", "text": " thought\n"}
SAID = text_block("said")


def norm(messages, reasoning="echo", merge_users=False):
    return normalise(messages, reasoning=reasoning, merge_users=merge_users)


def test_a_valid_history_passes_as_the_very_same_messages():
    history = [user("a"), assistant(THOUGHT, SAID, call("1"), call("2")), result("2"), result("1"), user("b")]
    output = norm(history)
    assert all(after is before for after, before in zip(output, history, strict=True))


def test_a_call_without_a_result_gets_a_synthetic_error_result():
    history = [user("a"), assistant(call("1"), call("2"), call("3")), result("2"), user("b")]
    assert norm(history) == [*history[:3], missing("1", "3"), user("b")]


def test_a_call_at_the_end_of_the_history_gets_one_too():
    assert norm([assistant(call("1"))])[1:] == [missing("1")]


def test_results_without_a_call_and_second_results_are_dropped():
    history = [result("0"), user("a"), assistant(call("1")), result("1"), result("1"), result("9")]
    assert norm(history) == [user("a"), assistant(call("1")), result("1")]


def test_a_result_behind_the_next_assistant_message_is_an_orphan():
    history = [assistant(call("1")), assistant(SAID), result("1")]
    assert norm(history) == [assistant(call("1")), missing("1"), assistant(SAID)]


def test_a_result_that_was_logged_behind_a_user_message_moves_up_to_its_call():
    history = [assistant(call("1"), call("2")), result("1"), user("steering"), result("2")]
    assert norm(history) == [assistant(call("1"), call("2")), result("1"), result("2"), user("steering")]


def test_a_message_of_results_and_text_is_split_in_two():
    mixed = {"role": "user", "content": [text_block("and"), *result("1")["content"]]}
    assert norm([assistant(call("1")), mixed]) == [assistant(call("1")), result("1"), user("and")]


def test_a_call_id_twice_in_one_message_is_sent_once():
    assert norm([assistant(call("1"), call("1")), result("1")]) == [assistant(call("1")), result("1")]


def test_messages_without_content_are_dropped():
    history = [assistant(), user("a"), {"role": "user", "content": []}, assistant(text_block(""))]
    assert norm(history) == [user("a")]


def test_an_empty_assistant_message_between_a_call_and_its_result_parts_nothing():
    history = [assistant(call("1")), assistant(), result("1")]
    assert norm(history) == [assistant(call("1")), result("1")]


@pytest.mark.parametrize(
    ("policy", "with_calls", "without_calls"),
    [("echo", True, True), ("echo-with-tools", True, False), ("strip", False, False), ("none", False, False)],
)
def test_reasoning_is_sent_back_as_the_policy_says(policy, with_calls, without_calls):
    output = norm([assistant(THOUGHT, SAID, call("1")), result("1"), assistant(THOUGHT, SAID)], policy)
    assert (THOUGHT in output[0]["content"]) is with_calls
    assert (THOUGHT in output[2]["content"]) is without_calls


def test_a_message_of_reasoning_alone_vanishes_where_reasoning_is_stripped():
    assert norm([user("a"), assistant(THOUGHT)], "strip") == [user("a")]


def test_two_user_messages_in_a_row_are_merged_only_where_the_provider_demands_it():
    history = [user("a"), assistant(), user("b"), user("c"), assistant(call("1")), result("1"), user("d")]
    assert norm(history) == [user("a"), user("b"), user("c"), *history[4:]]
    joined = [text_block(text) for text in ("a", "\n\n", "b", "\n\n", "c")]
    assert norm(history, merge_users=True) == [{"role": "user", "content": joined}, *history[4:]]


def test_the_given_messages_are_never_changed():
    history = [user("a"), user("b"), assistant(THOUGHT, call("1"))]
    copies = [{**message, "content": list(message["content"])} for message in history]
    norm(history, "strip", merge_users=True)
    assert history == copies
