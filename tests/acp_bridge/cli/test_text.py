"""A transcript as lines."""

import pytest

from acp_bridge.cli.entries import Changed, Diff, Noticed, Planned, Said, TurnEnded, TurnStarted
from acp_bridge.cli.text import Layout, Line, difference, lines_of, plain, unfenced
from tests.support.transcript_entries import hostile_entries, tool_run

PLAIN = Layout(full=False, colours=False, thoughts=True)


def shown(entry, layout=PLAIN, moment=""):
    return plain(lines_of(entry, layout, moment=moment))


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (Said("user", "do\nit"), "\n› do\n  it\n"),
        (Said("agent", "\n# done\n\nyes\n"), "\n# done\n\nyes\n"),
        (Said("thought", "a\nb"), "\n┆ a\n┆ b\n"),
        (Said("context", "ended", source="tool-bash"), "\n» (from tool-bash)\n  ended\n"),
        (Noticed("warning", "careful", "one\ntwo"), "\n! warning: careful\n  one\n  two\n"),
        (Noticed("error", "no", None), "\n! error: no\n"),
        (
            Planned((("completed", "a"), ("in_progress", "b"), ("pending", "c"))),
            "\nplan\n  [x] a\n  [~] b\n  [ ] c\n",
        ),
        (Changed("mode", "full"), "\n~ mode: full\n"),
        (TurnEnded("cancelled", failed=False), "\n■ cancelled\n"),
        (tool_run(), "\n$ make all\n  └ exit 0\n"),
        (
            tool_run(title="a\nb", directory="/x", described=("why",), output="1\n2\n", ended="exit 2"),
            "\n$ a\n  b\n  in /x\n  why\n  │ 1\n  │ 2\n  └ exit 2\n",
        ),
        (
            tool_run(command=False, title="Output of bash-1", texts=("```console\nnew\n```",), ended=None),
            "\n● Output of bash-1\n  │ new\n",
        ),
        (tool_run(status="failed", texts=("Error: no",), ended=None), "\n$ make all\n  │ Error: no\n  └ failed\n"),
        (tool_run(status="unfinished", ended=None), "\n$ make all\n  └ no result is known\n"),
        (
            tool_run(diffs=(Diff("a.py", "x\n", "y\n"),), ended=None),
            "\n$ make all\n  a.py\n  @@ -1 +1 @@\n  -x\n  +y\n",
        ),
    ],
)
def test_each_entry_has_its_lines(entry, text):
    assert shown(entry) == text


def test_a_turn_begins_with_its_number_and_time():
    assert shown(TurnStarted(3, 0), moment="noon") == "\n── turn 3 · noon ──\n"


def test_thoughts_can_be_left_out():
    assert shown(Said("thought", "hm"), Layout(full=True, colours=False, thoughts=False)) == ""


def test_long_output_is_shortened_unless_all_of_it_is_wanted():
    run = tool_run(output="".join(f"{number}\n" for number in range(100)) + "x" * 600)
    short = shown(run).split("\n")
    assert len(short) == 1 + 1 + 20 + 1 + 20 + 2
    assert "  │ … 61 lines left out" in short
    assert short[-3] == f"  │ {'x' * 500} … 100 characters left out"
    full = shown(run, Layout(full=True, colours=False, thoughts=True))
    assert "left out" not in full
    assert full.count("\n") == 1 + 1 + 101 + 1


def test_a_long_line_that_is_long_by_its_colours_alone_is_whole():
    coloured = Layout(full=False, colours=True, thoughts=True)
    line = "\x1b[31m\x1b[1mx" * 100
    assert Line("output", f"  │ {line}") in list(lines_of(tool_run(output=line), coloured))
    # what is cut loses its colours: half a sequence would be none
    cut = [line.text for line in lines_of(tool_run(output=line * 6), coloured) if line.role == "output"]
    assert cut == [f"  │ {'x' * 500} … 100 characters left out"]


def test_nothing_that_acts_on_a_terminal_comes_out():
    for entry in hostile_entries():
        text = shown(entry, moment="noon")
        assert all(char == "\n" or char >= " " for char in text)
        assert "\x1b" not in text


def test_a_new_file_and_one_that_is_too_long_to_compare_are_told_in_a_line():
    assert next(iter(difference(Diff("a", None, "x")))) == Line("title", "a (new)")
    long = "x\n" * 5000
    assert list(difference(Diff("a", long, "y"))) == [
        Line("title", "a"),
        Line("detail", "5000 lines before, 1 lines after"),
    ]
    assert list(difference(Diff("a", "x\n", "x\n"))) == [Line("title", "a")]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```console\na\n```", "a"),
        ("````\na ``` b\n````", "a ``` b"),
        ("plain", "plain"),
        ("```\na\n```\nmore", "```\na\n```\nmore"),
    ],
)
def test_one_fenced_block_is_shown_without_its_fence(text, inside):
    assert unfenced(text) == inside
