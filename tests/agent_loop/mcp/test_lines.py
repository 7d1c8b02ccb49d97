"""The messages on a server's stdout."""

import pytest

from agent_loop.mcp.lines import Lines, messages_of


def test_lines_come_whole_wherever_they_are_cut():
    lines = Lines()
    assert lines.feed(b"on") == []
    assert lines.feed(b"e\r\n\n  \ntwo\nthr") == [b"one", b"two"]
    assert lines.feed(b"ee\n") == [b"three"]


def test_a_line_that_is_too_long_is_dropped_and_the_next_is_whole():
    lines = Lines(limit=4)
    assert lines.feed(b"12345") == []
    assert lines.feed(b"6\nnext\n") == [b"next"]
    assert lines.feed(b"12345678\nlast\n") == [b"last"]


def test_an_array_is_several_messages():
    first, second = messages_of(b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"m"}]')
    assert first.id == 1
    assert second.method == "m"


def test_half_a_character_becomes_a_mark():
    (message,) = messages_of(b'{"jsonrpc":"2.0","id":1,"result":{"text":"a\\ud83d"}}')
    assert message.result == {"text": "a\ufffd"}


@pytest.mark.parametrize("line", [b"Starting", b"7", b"{}", b"\xff", b'{"jsonrpc":"2.0"}', b"[" * 100_000])
def test_what_is_no_message_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        messages_of(line)
