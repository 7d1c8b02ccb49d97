"""The words of the agent."""

from agent_loop.vocabulary import USER, text_block


def test_a_text_block_has_the_key_order_of_the_contract():
    assert list(text_block("hi").items()) == [("type", "text"), ("text", "hi")]


def test_the_user_is_a_source():
    assert USER == {"kind": "user"}
