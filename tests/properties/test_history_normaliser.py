"""Properties of the history normaliser (contract properties.md)."""

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.history import Normaliser, normalise
from agent_loop.vocabulary import text_block

IDS = st.sampled_from(["a", "b", "c"])
TEXTS = st.builds(text_block, st.sampled_from(["", "x", "y"]))
REASONING = st.builds(lambda text: {"type": "reasoning", "text": text}, st.sampled_from(["", "r"]))
CALLS = st.builds(lambda call_id: {"type": "tool-call", "id": call_id, "name": "n", "arguments": "{}"}, IDS)
RESULTS = st.builds(lambda call_id: {"type": "tool-result", "toolCallId": call_id, "content": []}, IDS)


def messages(role, *blocks):
    return st.fixed_dictionaries({"role": st.just(role), "content": st.lists(st.one_of(*blocks), max_size=4)})


HISTORIES = st.lists(
    st.one_of(messages("assistant", TEXTS, REASONING, CALLS), messages("user", TEXTS, RESULTS)), max_size=12
)
POLICIES = st.sampled_from(["echo", "echo-with-tools", "strip", "none"])


def of_type(message, block_type):
    return [block for block in message["content"] if block["type"] == block_type]


def is_results(message):
    return bool(of_type(message, "tool-result"))


def assert_valid(history, reasoning, merge_users):
    waiting = set()
    previous = None
    for message in history:
        assert message["content"]
        if is_results(message):
            assert message["role"] == "user"
            assert len(of_type(message, "tool-result")) == len(message["content"])
            # set.remove raises for a second result and for one that nobody waits for
            for block in message["content"]:
                waiting.remove(block["toolCallId"])
        else:
            assert not waiting
        if message["role"] == "assistant":
            calls = [block["id"] for block in of_type(message, "tool-call")]
            waiting = set(calls)
            assert len(waiting) == len(calls)
            allowed = reasoning == "echo" or (reasoning == "echo-with-tools" and calls)
            assert allowed or not of_type(message, "reasoning")
        elif merge_users and previous is not None and not is_results(message):
            assert previous["role"] == "assistant" or is_results(previous)
        previous = message
    assert not waiting


@given(HISTORIES, POLICIES, st.booleans())
def test_the_output_is_always_valid(history, reasoning, merge_users):
    assert_valid(normalise(history, reasoning=reasoning, merge_users=merge_users), reasoning, merge_users)


@given(HISTORIES, POLICIES, st.booleans())
def test_a_valid_history_passes_unchanged_so_it_is_idempotent(history, reasoning, merge_users):
    once = normalise(history, reasoning=reasoning, merge_users=merge_users)
    twice = normalise(once, reasoning=reasoning, merge_users=merge_users)
    assert all(after is before for after, before in zip(twice, once, strict=True))


@given(HISTORIES, POLICIES)
def test_no_call_and_no_text_is_lost(history, reasoning):
    def said(messages):
        return [block["text"] for message in messages for block in of_type(message, "text") if block["text"]]

    def called(messages):
        return [sorted({block["id"] for block in of_type(message, "tool-call")}) for message in messages]

    output = normalise(history, reasoning=reasoning, merge_users=False)
    assert sorted(said(output)) == sorted(said(history))
    assert [ids for ids in called(output) if ids] == [ids for ids in called(history) if ids]


@given(st.lists(st.tuples(HISTORIES, st.integers(0, 3), POLICIES, st.booleans()), max_size=4))
def test_what_is_made_of_a_history_that_grows_is_what_is_made_of_the_whole(changes):
    made, history = Normaliser(), []
    for new, gone, reasoning, merge_users in changes:
        history = history[: max(0, len(history) - gone)] + new
        whole = normalise(history, reasoning=reasoning, merge_users=merge_users)
        assert made(history, reasoning=reasoning, merge_users=merge_users) == whole
        assert made([*history, *new], reasoning=reasoning, merge_users=merge_users) == normalise(
            [*history, *new], reasoning=reasoning, merge_users=merge_users
        )


@given(HISTORIES, POLICIES, st.booleans())
def test_a_list_that_is_valid_is_not_even_copied(history, reasoning, merge_users):
    made = Normaliser()
    valid = made(history, reasoning=reasoning, merge_users=merge_users)
    assert made(valid, reasoning=reasoning, merge_users=merge_users) is valid
