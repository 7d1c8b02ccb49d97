"""What an editor's terminal card is given of raw command output (contract acp.md §3)."""

import pytest

from agent_loop.tools.terminal_text import TerminalCapture, TerminalText


def clean(data):
    text = TerminalText()
    return text.feed(data) + text.finish()


@pytest.mark.parametrize(
    "text",
    [
        "plain\n",
        "ünï 漢字 😀 \u2028 \u00a0",
        "tab\tand\rreturn\b",
        "\x1b[31mred\x1b[0m",
        "\x1b[1;38;2;1;2;3mrgb\x1b[m",
        "\x1b[38:5:1mcolon\x1b[K",
    ],
)
def test_text_and_colour_pass_unchanged(text):
    assert clean(text.encode()) == text


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b]0;title\x07",
        "\x1b]8;;https://example.org\x1b\\",
        "\x1b]52;c;c2VjcmV0\x07",
        "\x1b]52;c;c2VjcmV0\x9c",
        "\x9d0;title\x07",
        "\x1bP1$r0m\x1b\\",
        "\x1bPq#0;2;0;0;0\nsixel\x1b\\",
        "\x1b_Gimage\x1b\\",
        "\x1b^private\x1b\\",
        "\x1bXstart\x1b\\",
        "\x90dcs\x9c",
        "\x98sos\x9c",
        "\x9epm\x9c",
        "\x9fapc\x9c",
        "\x1bPcancelled\x18",
        "\x1b[2J",
        "\x1b[10;20H",
        "\x1b[?1049h",
        "\x1b[>4;2m",
        "\x1b[ q",
        "\x1b[6n",
        "\x9b5A",
        "\x1b7",
        "\x1bc",
        "\x1b(B",
        "\x1b#8",
        "\x1b" + "[" + "1;" * 500 + "m",
        "\x00\x07\x0e\x0f\x7f\x85\x0b\x0c",
    ],
)
def test_strings_cursor_moves_and_controls_are_removed(sequence):
    assert clean(f"a{sequence}b".encode()) == "ab"


def test_an_eight_bit_colour_sequence_becomes_the_seven_bit_one():
    assert clean("\x9b31mred".encode()) == "\x1b[31mred"


def test_an_escape_inside_a_sequence_begins_a_new_one():
    assert clean(b"\x1b\x1b[31mred") == "\x1b[31mred"
    assert clean(b"\x1b[3\x1b[31mred") == "\x1b[31mred"
    assert clean(b"\x1b]0;title\x1b[31mred") == "\x1b[31mred"


def test_a_character_that_cannot_continue_a_sequence_stands_for_itself():
    assert clean("\x1b[3é".encode()) == "é"
    assert clean(b"\x1b\nx") == "\nx"
    assert clean(b"\x1b(\nx") == "\nx"


def test_a_line_feed_ends_an_unterminated_title():
    assert clean(b"\x1b]0;title\nthe rest\n") == "\nthe rest\n"


def test_an_unterminated_sequence_at_the_end_is_dropped():
    assert clean(b"a\x1b[31") == "a"
    assert clean(b"a\x1b") == "a"
    assert clean(b"a\x1bPdata") == "a"


def test_invalid_and_cut_utf8_become_replacement_characters():
    assert clean(b"a\xffb\xc3") == "a\ufffdb\ufffd"


def test_a_character_is_given_when_its_last_byte_arrives():
    text = TerminalText()
    assert text.feed(b"\xe6\xbc") == ""
    assert text.feed(b"\xa2") == "漢"


def capture(*chunks, head=8, tail=16):
    kept = TerminalCapture(head=head, tail=tail)
    for chunk in chunks:
        kept.feed(chunk)
    return kept.finish()


def test_short_output_is_kept_whole():
    assert capture(b"one\n", b"two\n") == "one\ntwo\n"
    assert capture(b"x" * 24) == "x" * 24
    assert capture() == ""


def test_long_output_keeps_both_ends_and_says_what_is_missing():
    kept = capture(*[b"%04d\n" % number for number in range(100)])
    assert kept == "0000\n000\x1b[0m\n[477 bytes not shown]\n0097\n0098\n0099\n"


def test_no_character_is_split_by_the_cut():
    kept = capture("漢".encode() * 20)
    assert kept == "漢漢\x1b[0m\n[39 bytes not shown]\n漢漢漢漢漢"


def test_the_shortened_text_accounts_for_every_byte():
    for size in range(25, 60):
        kept = capture(b"x" * size)
        head, _, rest = kept.partition("\x1b[0m\n[")
        number, _, tail = rest.partition(" bytes not shown]\n")
        assert len(head) + int(number) + len(tail) == size


def test_the_number_of_dropped_bytes_is_known_after_the_end():
    for size, dropped in ((24, 0), (30, 6)):
        kept = TerminalCapture(head=8, tail=16)
        kept.feed(b"x" * size)
        kept.finish()
        assert kept.dropped == dropped


def test_memory_is_bounded_whatever_arrives():
    kept = TerminalCapture(head=8, tail=16)
    for _ in range(10_000):
        kept.feed(b"0123456789")
    assert sum(len(piece) for piece in kept._tail) < 16 + 10
