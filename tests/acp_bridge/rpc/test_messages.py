"""Envelopes: what a line means, and how one is written."""

import json

import pytest

from acp_bridge.rpc.codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from acp_bridge.rpc.json_text import decode, encode
from acp_bridge.rpc.messages import (
    InvalidMessage,
    MalformedNotification,
    NotificationMessage,
    RequestMessage,
    ResponseMessage,
    error_frame,
    notification_frame,
    parse,
    request_frame,
    result_frame,
)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("request_id", [0, -1, 1, "", "1", "a", None, 2**80])
def test_a_request_keeps_its_id_with_its_type(request_id):
    message = parse(json.dumps({"id": request_id, "method": "m"}).encode())
    assert message == RequestMessage(request_id, "m", {})
    assert type(message.id) is type(request_id)


@pytest.mark.parametrize("request_id", ["true", "false", "1.0", "1.5", "{}", "[1]"])
def test_an_illegal_id_is_refused_without_an_id(request_id):
    message = parse(f'{{"id":{request_id},"method":"m"}}'.encode())
    assert isinstance(message, InvalidMessage)
    assert (message.code, message.id) == (INVALID_REQUEST, None)


def test_without_id_it_is_a_notification_and_params_default_to_empty():
    assert parse(b'{"method":"m"}') == NotificationMessage("m", {})
    assert parse(b'{"jsonrpc":"2.0","method":"m","params":null}') == NotificationMessage("m", {})
    assert parse(b'{"method":"m","params":{"a":[1]}}') == NotificationMessage("m", {"a": [1]})


def test_params_that_are_no_object_are_refused_or_for_a_notification_dropped():
    assert parse(b'{"method":"m","params":5}') == MalformedNotification("m")
    assert parse(b'{"method":"m","params":[]}') == MalformedNotification("m")
    scalar = parse(b'{"id":7,"method":"m","params":5}')
    positional = parse(b'{"id":7,"method":"m","params":[1]}')
    assert isinstance(scalar, InvalidMessage)
    assert isinstance(positional, InvalidMessage)
    assert (scalar.code, scalar.id) == (INVALID_REQUEST, 7)
    assert (positional.code, positional.id) == (INVALID_PARAMS, 7)


@pytest.mark.parametrize(
    ("line", "answered"),
    [
        (b"[]", None),
        (b'[{"id":1,"method":"m"}]', None),
        (b"42", None),
        (b'"hi"', None),
        (b"null", None),
        (b"{}", None),
        (b'{"id":3}', 3),
        (b'{"id":"x","jsonrpc":"2.0"}', "x"),
        (b'{"id":3,"method":null}', 3),
        (b'{"id":3,"method":5}', 3),
        (b'{"method":5}', None),
    ],
)
def test_what_is_no_message_is_an_invalid_request_that_echoes_a_legal_id(line, answered):
    message = parse(line)
    assert isinstance(message, InvalidMessage)
    assert (message.code, message.id) == (INVALID_REQUEST, answered)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0"',
        b"\x1b[?25h",
        b"\xff\xfe",
        b'{"a":"\xff"}',
        '{"a":"\ud800"}'.encode("utf-8", "surrogatepass"),
        '{"id":1,"method":"m"}'.encode("utf-16"),
        b"\0" * 700,
        b'{"a":NaN}',
        b'{"a":"\\ud800","b":Infinity}',
        b'{"a":"\x01"}',
        b'{"id":' + b"9" * 5000 + b',"method":"m"}',
        b"[" * 100_000,
        nested(100_000),
        nested(201),
        b'{"a":' * 201 + b"1" + b"}" * 201,
        b'{} {"id":1}',
    ],
)
def test_what_is_no_json_is_a_parse_error_without_id(line):
    message = parse(line)
    assert isinstance(message, InvalidMessage)
    assert (message.code, message.id) == (PARSE_ERROR, None)
    assert message.reason.startswith("Parse error: ")


def test_two_hundred_levels_are_read():
    assert decode(nested(200)) == json.loads(nested(200))
    assert decode(b'[{"a":"' + b"[" * 300 + b'"}]') == [{"a": "[" * 300}]


def test_lone_surrogates_become_replacement_characters_and_pairs_stay():
    message = parse(b'{"id":"\\udc00","method":"m","params":{"\\ud800":["a\\ud83d","\\ud83d\\ude00",1.5]}}')
    assert message == RequestMessage("\ufffd", "m", {"\ufffd": ["a\ufffd", "\U0001f600", 1.5]})


def test_the_last_of_duplicate_keys_counts_and_a_bare_cr_is_space():
    assert parse(b'{"id":1,\r"id":2,"method":"m"}\r') == RequestMessage(2, "m", {})


@pytest.mark.parametrize(
    ("line", "response"),
    [
        (b'{"id":1,"result":null}', ResponseMessage(1, None, None)),
        (b'{"id":1,"result":{"a":1},"error":null}', ResponseMessage(1, {"a": 1}, None)),
        (b'{"id":"x","error":{"code":1}}', ResponseMessage("x", None, {"code": 1})),
        (b'{"id":null,"error":"no"}', ResponseMessage(None, None, "no")),
        (b'{"id":true,"result":1}', ResponseMessage(None, 1, None)),
        (b'{"id":2,"method":null,"result":1}', ResponseMessage(2, 1, None)),
    ],
)
def test_result_or_error_without_method_is_a_response(line, response):
    assert parse(line) == response


def test_frames_are_compact_ordered_lines():
    assert request_frame(1, method="m", params={}) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}\n'
    assert (
        notification_frame("m", {"a": "\u00e9"}) == '{"jsonrpc":"2.0","method":"m","params":{"a":"\u00e9"}}\n'.encode()
    )
    assert result_frame(None, {}) == b'{"jsonrpc":"2.0","id":null,"result":{}}\n'
    assert error_frame("a", {"code": 1, "message": "x"}) == (
        b'{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"x"}}\n'
    )


def test_line_separators_are_escaped_and_other_text_is_not():
    text = "a\u2028b\u2029c\u0085d\u2027\u00c2\u00e9\U0001f600\0\x7f\n"
    written = encode({"t": text})
    assert json.loads(written) == {"t": text}
    assert b"\\u2028" in written
    assert b"\\u2029" in written
    assert b"\\u0085" in written
    assert "\u2027\u00c2\u00e9\U0001f600".encode() in written
    assert len(written.decode().splitlines()) == 1


def test_lone_surrogates_and_infinite_numbers_are_never_written():
    assert (
        encode({"\ud800": ["a\udcff", float("nan"), float("inf"), 1]}) == '{"\ufffd":["a\ufffd",null,null,1]}'.encode()
    )


def test_what_is_no_json_raises_a_value_error():
    with pytest.raises(ValueError, match="serialize"):
        encode({"a": object()})
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(ValueError, match="deep"):
        encode(deep)
