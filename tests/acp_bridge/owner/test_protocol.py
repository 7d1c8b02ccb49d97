"""What may be said over the socket of a process that owns sessions."""

import pytest

from acp_bridge.owner.protocol import (
    MAX_ANSWER,
    Answer,
    ProtocolError,
    Request,
    encode_answer,
    encode_request,
    may_run,
    parse_answer,
    parse_request,
)


def test_what_is_said_is_what_is_heard():
    request = Request("s\u2028\ud7ff", "/loop delete loop_1")
    assert encode_request(request).count(b"\n") == 1
    assert parse_request(encode_request(request)) == request
    assert parse_answer(encode_answer(Answer(ok=True, text="a\nb"))) == Answer(ok=True, text="a\nb")
    assert len(encode_answer(Answer(ok=True, text="\U0001f600" * 100_000))) <= MAX_ANSWER


@pytest.mark.parametrize("line", ["/loop list", "/loop delete loop_00000000-0000-4000-8000-000000000001"])
def test_loops_are_looked_at_and_ended(line):
    assert may_run(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "/loop",
        "/loop 60 do evil",
        "/loop list\n/loop 60 do evil",
        "/loop delete a b",
        f"/loop delete {'x' * 201}",
        "/compact",
        " /loop list",
        "hello",
    ],
)
def test_nothing_else_comes_this_way(line):
    assert not may_run(line)
    with pytest.raises(ProtocolError, match="only"):
        parse_request(encode_request(Request("s", line)))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\n",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"sessionId":1,"line":"/loop list"}',
        b'{"sessionId":"s","line":null}',
        b'{"sessionId":"s","line":"/loop list","more":1}',
    ],
)
def test_what_is_no_request_is_refused(line):
    with pytest.raises(ProtocolError):
        parse_request(line)


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b'{"ok":1,"text":""}', b'{"ok":true}'])
def test_what_is_no_answer_is_refused(line):
    with pytest.raises(ProtocolError):
        parse_answer(line)


def test_a_request_that_would_be_cut_is_not_sent():
    with pytest.raises(ProtocolError, match="too long"):
        encode_request(Request("s" * 5000, "/loop list"))
