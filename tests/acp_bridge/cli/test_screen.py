"""A transcript on a terminal."""

import re

import pytest

from acp_bridge.cli.about import About
from acp_bridge.cli.entries import Said, TurnStarted
from acp_bridge.cli.screen import Screen, console_on
from acp_bridge.cli.text import Layout
from tests.support.session_commands import Stream
from tests.support.transcript_entries import hostile_entries, tool_run

LAYOUT = Layout(full=False, colours=True, thoughts=True)
SGR = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def screen():
    stream = Stream(tty=True)
    return Screen(console_on(stream)), stream


def test_the_title_and_the_facts_stand_above():
    shown, stream = screen()
    shown.begin(About("a [b]title[/b]", (("session", "s"), ("directory", "/srv/app"))))
    assert SGR.sub("", stream.text) == "a [b]title[/b]\nsession      s\ndirectory    /srv/app\n"
    assert "\x1b[1m" in stream.text


def test_markdown_is_rendered_and_html_stays_visible():
    shown, stream = screen()
    shown.show(Said("agent", "# Head\n\n**bold** `code` <b>x</b> Vec<String>\n\n```python\nx = 1\n```"), LAYOUT)
    text = SGR.sub("", stream.text)
    assert "**" not in text
    assert "```" not in text
    assert "bold code <b>x</b> Vec<String>" in text
    assert "\x1b[1mbold\x1b[0m" in stream.text


def test_a_link_shows_where_it_leads_and_is_none_for_the_terminal():
    shown, stream = screen()
    shown.show(Said("agent", "[here](http://there.example/x) ![image](http://there.example/y)"), LAYOUT)
    assert "http://there.example/x" in stream.text
    assert "http://there.example/y" in stream.text
    assert "\x1b]8" not in stream.text


def test_a_commands_own_colours_are_shown_and_what_it_hides_is_not_hidden():
    shown, stream = screen()
    shown.show(tool_run(output="\x1b[31mred\x1b[0m \x1b[8mhidden\x1b[0m"), LAYOUT)
    assert "\x1b[31mred\x1b[0m" in stream.text
    assert "hidden" in stream.text
    assert "\x1b[8m" not in stream.text


def test_a_colour_goes_on_in_the_next_line_but_not_into_the_frame():
    shown, stream = screen()
    shown.show(tool_run(output="\x1b[31mred\nalso\x1b[0m\nplain"), LAYOUT)
    assert "\x1b[2m  │ \x1b[0m\x1b[31malso\x1b[0m" in stream.text
    assert "  │ plain" in SGR.sub("", stream.text)


def test_no_sequence_but_colour_reaches_the_terminal_whatever_was_stored():
    shown, stream = screen()
    for entry in hostile_entries():
        shown.show(entry, LAYOUT, moment="noon")
    assert all(char == "\n" or char >= " " for char in SGR.sub("", stream.text))


def test_nothing_is_printed_for_a_thought_that_is_not_wanted():
    shown, stream = screen()
    shown.show(Said("thought", "hm"), Layout(full=True, colours=True, thoughts=False))
    assert stream.text == ""


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_left_out_where_they_are_not_wanted(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    shown, stream = screen()
    shown.show(TurnStarted(1, 0), LAYOUT, moment="noon")
    shown.show(tool_run(output="\x1b[31mred\x1b[0m"), LAYOUT)
    assert not re.search("\x1b\\[[0-9;]*(3[0-9]|4[0-9])", stream.text)
    assert "red" in stream.text
