"""Head and tail, exact counts, whole code points, text for a reader without a terminal."""

import pytest

from bash_exec.capture import OutputWindow, UnreadOutput, continued_start, incomplete_end, model_text


def fed(*chunks: bytes, head: int = 8, tail: int = 8) -> OutputWindow:
    window = OutputWindow(head=head, tail=tail)
    for chunk in chunks:
        window.feed(chunk)
    return window


def test_a_short_stream_is_kept_whole():
    capture = fed(b"hello\n", b"world\n").capture("unused")
    assert (capture.text, capture.truncated, capture.dropped_bytes, capture.spill_path) == (
        "hello\nworld\n",
        False,
        0,
        None,
    )


def test_a_long_stream_keeps_both_ends_and_counts_the_middle():
    capture = fed(b"first--\n", b"a\nb\nc\n", b"--last-\n").capture("/spill")
    assert capture.text == "first--\n--last-\n"
    assert (capture.truncated, capture.dropped_bytes, capture.dropped_lines, capture.spill_path) == (
        True,
        6,
        3,
        "/spill",
    )


def test_the_spill_gets_nothing_until_the_window_overflows_then_everything():
    window = OutputWindow(head=4, tail=4)
    assert window.feed(b"123") == b""
    assert window.feed(b"45678") == b""
    assert window.feed(b"9") == b"123456789"
    assert window.feed(b"0") == b"0"


def test_no_code_point_is_split_where_bytes_were_dropped():
    capture = fed("aaaaaaa€".encode(), b"-" * 20, "€zzzzzz".encode()).capture()
    assert capture.text == "aaaaaaazzzzzz"
    assert capture.dropped_bytes == 20 + 3 + 3
    assert not capture.binary


def test_a_code_point_over_two_chunks_is_one():
    assert fed(b"\xe2\x82", b"\xac").capture().text == "€"


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe\x00", b"\xc4\xe3\xba\xc3", b"\xff" * 100, b"x" * 100 + b"\xff"])
def test_what_is_not_utf8_text_is_called_binary(data):
    assert fed(data).capture().binary


def test_plain_text_is_not_binary():
    assert not fed("grün €\n".encode()).capture().binary


@pytest.mark.parametrize(
    ("data", "count"),
    [(b"", 0), (b"abc", 0), (b"\xe2", 1), (b"a\xe2\x82", 2), (b"\xe2\x82\xac", 0), (b"\xf0\x9f\x98", 3),
     (b"\xf0\x9f\x98\x80", 0), (b"\xc3", 1), (b"\xc3\xa9", 0), (b"\xff", 0), (b"\x80\x80\x80\x80", 0)],
)  # fmt: skip
def test_an_unfinished_code_point_at_the_end_is_measured(data, count):
    assert incomplete_end(data) == count


@pytest.mark.parametrize(("data", "count"), [(b"", 0), (b"a", 0), (b"\x80a", 1), (b"\x80\x80\x80\x80", 3)])
def test_a_continued_code_point_at_the_start_is_measured(data, count):
    assert continued_start(data) == count


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1mbold", "bold"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]52;c;c2VjcmV0\x07after", "after"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b]0;never closed\nnext", "\nnext"),
        ("cut \x1b[31", "cut "),
        ("\x1b(B\x1b7plain\x1b", "plain"),
        (" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        ("a\rb\r", "b"),
        ("crlf\r\n\r\n", "crlf\n\n"),
        ("N\bNA\bAM\bM", "NAM"),
        ("\b\bx\n\by", "x\ny"),
        ("a\0b\x07c\x7f\td", "abc\td"),
        ("plain\n", "plain\n"),
    ],
)
def test_terminal_control_is_taken_out_of_the_text(text, shown):
    assert model_text(text) == shown


@pytest.mark.parametrize(
    "text", ["\r" * 65536 + "x", "\x1b[" + "0" * 65536, "\x1b]" * 32768, "x" * 65536 + "\n\ry", "\b" * 65536]
)
def test_hostile_control_sequences_cost_no_more_than_their_length(text):
    model_text(text)  # quadratic work here would take minutes


def test_unread_output_is_given_once_and_its_loss_is_counted():
    ring = UnreadOutput(limit=8)
    ring.feed(b"abc")
    assert ring.take(final=False) == ("abc", 0, 3, 0)
    assert ring.take(final=False) == ("", 3, 3, 0)
    ring.feed(b"0123456789")
    assert ring.take(final=False) == ("23456789", 5, 13, 2)


def test_output_from_an_offset_is_given_as_often_as_it_is_asked_for():
    ring = UnreadOutput(limit=8)
    ring.feed(b"0123456789")
    for _ in range(2):
        assert ring.peek(0, final=False) == ("23456789", 2, 10, 2)
        assert ring.peek(7, final=False) == ("789", 7, 10, 0)
        assert ring.peek(99, final=False) == ("", 10, 10, 0)
    assert ring.take(final=False) == ("23456789", 2, 10, 2)


def test_unread_output_holds_back_half_a_code_point_until_it_is_whole_or_final():
    ring = UnreadOutput(limit=8)
    ring.feed(b"a\xe2\x82")
    assert ring.take(final=False) == ("a", 0, 1, 0)
    assert ring.peek(3, final=False) == ("", 3, 3, 0)
    ring.feed(b"\xac\xe2")
    assert ring.take(final=False) == ("€", 1, 4, 0)
    assert ring.take(final=True) == ("\N{REPLACEMENT CHARACTER}", 4, 5, 0)


def test_unread_output_does_not_start_in_the_middle_of_a_code_point():
    ring = UnreadOutput(limit=4)
    ring.feed("€abc".encode())
    assert ring.take(final=True) == ("abc", 3, 6, 3)
