"""Events and headers as lines (contract session-log.md §1, §2, §9)."""

import json

import pytest

from agent_loop.session.codec import (
    LineError,
    UnknownVersionError,
    decode_event,
    decode_header,
    encode_event,
    encode_header,
)
from agent_loop.session.events import SessionHeader, make_event
from agent_loop.session.json_check import own_json


def test_the_envelope_has_the_key_order_of_the_contract_and_no_spaces():
    event = make_event("turn/end", 3, 7, {"turn": 1, "reason": {"kind": "completed"}})
    assert encode_event(event) == (
        b'{"type":"turn/end","seq":3,"time":7,"data":{"turn":1,"reason":{"kind":"completed"}}}\n'
    )


def test_every_character_that_some_reader_takes_for_a_line_end_is_escaped():
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\nj\rk"
    line = encode_event(make_event("x", 0, 0, {text: text}))
    assert len(line.decode().splitlines()) == 1
    assert b"\\u2028" in line
    assert b"\\u2029" in line
    assert b"\\u0085" in line
    assert decode_event(line).data == {text: text}


def test_other_text_is_written_as_it_is():
    assert "héllo 😀 \x7f".encode() in encode_event(make_event("x", 0, 0, "héllo 😀 \x7f"))


def test_the_deepest_data_that_may_be_logged_can_be_read_back():
    value: object = 1
    for _ in range(200):
        value = [value]
    event = make_event("x", 0, 0, own_json("x", value))
    assert decode_event(encode_event(event)) == ("x", 0, 0, value)


def test_lone_surrogates_of_other_writers_become_replacement_characters():
    line = rb'{"type":"x","seq":0,"time":0,"data":{"\udc00":["\ud83d","\ud83d\ude00",1,null]}}'
    assert decode_event(line).data == {"\ufffd": ["\ufffd", "😀", 1, None]}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\0\0\0\n",
        b'{"type":"x","seq":0,"time":0,"da',
        b"[]\n",
        b"42\n",
        b"\xff\xfe\n",
        b'{"type":"x","seq":0,"time":0}\n',
        b'{"type":1,"seq":0,"time":0,"data":{}}\n',
        b'{"type":"x","seq":"0","time":0,"data":{}}\n',
        b'{"type":"x","seq":true,"time":0,"data":{}}\n',
        b'{"type":"x","seq":0,"time":0.5,"data":{}}\n',
        b'{"type":"x","seq":0,"time":0,"data":NaN}\n',
        b'{"type":"x","seq":0,"time":0,"data":-Infinity}\n',
        b'{"type":"x","seq":0,"time":0,"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    ],
)
def test_what_is_no_event_is_refused(line):
    with pytest.raises(LineError):
        decode_event(line)


def test_fields_beyond_the_envelope_are_ignored():
    assert decode_event(b'{"data":null,"time":2,"more":1,"seq":1,"type":"x"}') == ("x", 1, 2, None)


FULL = SessionHeader("id-1", 5, cwd="/w", parent_session="p", seed_length=2)


def test_a_header_has_the_key_order_of_the_contract():
    assert encode_header(FULL) == (
        b'{"type":"session","version":1,"id":"id-1","createdAt":5,"cwd":"/w","parentSession":"p","seedLength":2}\n'
    )
    assert encode_header(SessionHeader("i", 0)) == b'{"type":"session","version":1,"id":"i","createdAt":0}\n'


@pytest.mark.parametrize("header", [FULL, SessionHeader("i", 0)])
def test_a_header_reads_back_as_it_was(header):
    assert decode_header(encode_header(header)) == header


def test_unknown_header_fields_are_ignored():
    assert decode_header(encode_header(FULL)[:-2] + b',"later":1}') == FULL


@pytest.mark.parametrize(
    "change",
    [
        {"type": "event"},
        {"version": "1"},
        {"version": True},
        {"version": 0},
        {"id": 1},
        {"createdAt": "now"},
        {"createdAt": None},
        {"cwd": 1},
        {"parentSession": []},
        {"seedLength": "2"},
    ],
)
def test_a_malformed_header_is_refused(change):
    with pytest.raises(LineError):
        decode_header(json.dumps(FULL.to_json() | change).encode())


def test_a_later_version_is_refused_by_its_number():
    with pytest.raises(UnknownVersionError) as caught:
        decode_header(b'{"type":"session","version":2,"name":"all else may differ"}')
    assert caught.value.version == 2
