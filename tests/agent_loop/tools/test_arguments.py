"""The raw argument text of a call (contract agent-loop.md §3)."""

import pytest

from agent_loop.tools.arguments import MAX_DEPTH, parse_arguments


@pytest.mark.parametrize("raw", ["", " ", "\n\t"])
def test_blank_arguments_are_an_empty_object(raw):
    assert parse_arguments(raw) == {}


def test_an_object_is_returned_as_it_is():
    assert parse_arguments('{"a": [1, 2.5, null, true, {"b": "ü"}]}') == {"a": [1, 2.5, None, True, {"b": "ü"}]}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"a": ', "Expecting value"),
        ("[1]", "must be a JSON object"),
        ('"text"', "must be a JSON object"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5_000 + "}", "integer string conversion"),
        ('{"a":' + "[" * 100_000, "deeper than 200"),
        ('{"a":' * 201 + "1" + "}" * 201, "deeper than 200"),
    ],
)
def test_unusable_arguments_give_an_error_text(raw, reason):
    answer = parse_arguments(raw)
    assert isinstance(answer, str)
    assert reason in answer


def test_the_error_quotes_the_raw_text():
    assert str(parse_arguments('{"command": "ls')).endswith('Received: {"command": "ls')


def test_a_long_raw_text_is_quoted_in_part():
    answer = parse_arguments("x" * 10_000)
    assert isinstance(answer, str)
    assert answer.endswith("x… (10000 characters)")
    assert len(answer) < 700


def test_the_deepest_allowed_nesting_is_read():
    assert isinstance(parse_arguments('{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH), dict)


def test_lone_surrogates_are_repaired_wherever_they_stand():
    assert parse_arguments(r'{"\ud800": ["\udfff", "\ud83d\ude00"]}') == {"\ufffd": ["\ufffd", "😀"]}
    assert "\ufffd" in str(parse_arguments("\ud800"))
