"""The system prompt."""

import os
import socket

from agent_loop.prompt import PromptSection, default_sections, render


def test_sections_are_sorted_by_order_and_joined_by_a_blank_line():
    sections = (PromptSection("b", 2, "second"), PromptSection("a", 1, "first"), PromptSection("c", 2, "third"))
    assert render(sections) == "first\n\nsecond\n\nthird"


def test_blank_sections_are_dropped():
    assert render((PromptSection("a", 1, " \n"), PromptSection("b", 2, "text\n"))) == "text"


def test_nothing_left_is_no_prompt():
    assert render((PromptSection("a", 1, ""),)) is None
    assert render(()) is None


def test_the_default_prompt_names_the_tools_and_the_directory():
    text = render(default_sections("/there/tree"))
    assert text is not None
    for word in ("`bash`", "`bash_output`", "`bash_kill`", "/there/tree"):
        assert word in text


def test_the_default_prompt_holds_nothing_of_this_run():
    text = render(default_sections("/d"))
    assert text is not None
    assert str(os.getpid()) not in text
    assert socket.gethostname() not in text.split()
