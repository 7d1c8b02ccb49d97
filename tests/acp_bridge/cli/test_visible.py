"""Stored text made fit to be looked at."""

import pytest

from acp_bridge.cli.visible import coloured_output, one_line, plain_output, shortened, size_text, visible


def test_control_characters_become_pictures_and_line_feeds_and_tabs_stay():
    assert visible("a\x1b[31m\x00\x7f\tb\r\nc\rd\n") == "a␛[31m␀␡\tb\nc␍d\n"


def test_what_turns_the_direction_of_text_or_acts_as_a_c1_control_is_replaced():
    assert visible("a\u202eb\u2066c\x9bd") == "a�b�c�d"


def test_text_without_any_is_the_same_object():
    text = "ordinary — text, 漢字 🎉\n"
    assert visible(text) is text
    assert coloured_output(text) is text


def test_one_line_has_no_line_breaks():
    assert one_line(" a\n\tb\x07 ") == "a b␇"


def test_output_keeps_its_colours_and_nothing_else_that_acts():
    raw = "\x1b[1;32mok\x1b[0m \x1b]0;title\x07\x1b[2J\x1b[?25l\x1bPq\x1b\\done\x07 \u202ex"
    assert coloured_output(raw) == "\x1b[1;32mok\x1b[0m done �x"
    assert plain_output(raw) == "ok done �x"


def test_rewritten_lines_are_shown_in_their_last_form():
    assert plain_output("10%\r50%\r100%\nab\x08c\r\n\x08x\x1b[Ky\n") == "100%\nac\nxy\n"


def test_output_that_breaks_off_in_a_sequence_ends_before_it():
    assert coloured_output("a\x1b[3") == "a"


def test_long_output_keeps_its_head_and_tail_and_says_how_much_is_missing():
    lines = [str(number) for number in range(10)]
    assert shortened(lines, head=2, tail=3) == (["0", "1", "… 5 lines left out"], ["7", "8", "9"])
    assert shortened(lines, head=5, tail=4) == (lines, [])


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (45_120, "45.1 kB"), (150e6, "150.0 MB"), (10**13, "10000.0 GB")],
)
def test_sizes_read_like_sizes(size, text):
    assert size_text(int(size)) == text
