"""What a prompt gives as a title."""

import pytest

from agent_loop.session.title import MAX_TITLE, short_title, title_of
from agent_loop.vocabulary import text_block


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the build", "Fix the build"),
        ("\n \r\n\t\n  Fix\tthe \u00a0 build  \nand more", "Fix the build"),
        ("first\u2028second", "first"),
        ("a\x1b[31mred\x00b", "a [31mred b"),
        ("abc\u202edef soft\u00adhyphen \ufeffx", "abcdef softhyphen x"),
        ("\x00\x01\nsecond line", "second line"),
        ("\u200b\u200d", None),
        ("0\x1b\u200c", "0"),
        ("", None),
        (" \n\t ", None),
        ("👩\u200d💻 pair", "👩\u200d💻 pair"),
        ("/etc/hosts is wrong", "/etc/hosts is wrong"),
        ("/help", None),
        ("/deploy to the moon", None),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 12 + "end", "word word word word word word word word word word word word…"),
        ("short " + "y" * 100, "short " + "y" * 53 + "…"),
        ("a" * 59 + " bcd", "a" * 59 + "…"),
    ],
)
def test_the_first_line_with_something_to_see_becomes_the_title(text, title):
    assert title_of([text_block(text)]) == title


def test_only_text_gives_a_title_and_the_first_that_has_some():
    link = {"type": "resource-link", "uri": "file:///a", "name": "a"}
    assert title_of([link, text_block("  "), text_block("about this file"), text_block("more")]) == "about this file"
    assert title_of([link]) is None
    assert title_of([]) is None


def test_a_title_that_a_person_gives_may_begin_like_a_command():
    assert short_title("/title is a command") == "/title is a command"


def test_a_very_long_prompt_is_cut_like_any_other():
    title = title_of([text_block("word " * 10_000_000)])
    assert title is not None
    assert len(title) <= MAX_TITLE
