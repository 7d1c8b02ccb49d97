"""What may be logged: losslessly JSON, copied (contract session-log.md §5.1)."""

import enum
from collections import OrderedDict

import pytest

from agent_loop.session.json_check import MAX_INTEGER, InvalidEventError, copy_json, own_json


def nested(levels: int, leaf: object = "leaf") -> object:
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        MAX_INTEGER,
        -MAX_INTEGER,
        0.5,
        -0.0,
        1e300,
        "",
        "héllo \u2028 😀",
        [],
        {},
        [1, [{"a": None}]],
    ],
)
def test_json_values_are_accepted_as_they_are(value):
    assert own_json("x", value) == value
    assert type(own_json("x", value)) is type(value)


class Text(str):
    __slots__ = ()


class Number(enum.IntEnum):
    ONE = 1


def cycle() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((1, 2), "a tuple is not JSON"),
        (b"x", "a bytes is not JSON"),
        ({1}, "a set is not JSON"),
        (float("nan"), "nan is not a JSON number"),
        (float("inf"), "inf is not a JSON number"),
        (float("-inf"), "-inf is not a JSON number"),
        (MAX_INTEGER + 1, "2^53-1"),
        (-MAX_INTEGER - 1, "2^53-1"),
        pytest.param(10**6000, "2^53-1", id="6000-digits"),
        ({1: 2}, "a key of type int"),
        ("\ud800", "U+D800"),
        ({"\udfff": 1}, "U+DFFF"),
        ("é\ud83d", "U+D83D"),
        (Text("x"), "a Text is not JSON"),
        (Number.ONE, "a Number is not JSON"),
        (OrderedDict(), "a OrderedDict is not JSON"),
        (object(), "a object is not JSON"),
        (nested(201), "deeper than 200"),
        (cycle(), "contains itself"),
    ],
)
def test_anything_else_is_refused_naming_the_event_and_the_reason(value, words):
    with pytest.raises(InvalidEventError) as caught:
        own_json("user/message", {"deep": [value]} if "200" not in words else value)
    assert "'user/message'" in caught.value.message
    assert words in caught.value.message
    assert caught.value.code == "INVALID_EVENT"


@pytest.mark.parametrize("value", [float("nan"), MAX_INTEGER + 1, "\ud800", (1,), Text("x"), Number.ONE, OrderedDict()])
def test_what_is_refused_in_a_list_is_refused_as_a_field(value):
    with pytest.raises(InvalidEventError):
        own_json("x", {"field": value})


def test_two_hundred_levels_are_accepted_and_not_one_more():
    assert own_json("x", nested(200)) == nested(200)
    for deeper in (nested(200, leaf=[]), nested(200, leaf={})):
        with pytest.raises(InvalidEventError, match="deeper than 200"):
            own_json("x", deeper)


def test_the_copy_shares_nothing_with_the_original():
    for copy in (lambda value: own_json("x", value), copy_json):
        original = {"list": [{"a": 1}], "object": {"b": [2]}}
        copied = copy(original)
        original["list"][0]["a"] = 9
        original["object"]["b"].append(3)
        assert copied == {"list": [{"a": 1}], "object": {"b": [2]}}
