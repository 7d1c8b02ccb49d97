"""A transcript as Markdown."""

import pytest
from markdown_it import MarkdownIt

from acp_bridge.cli.about import About
from acp_bridge.cli.entries import Changed, Diff, Noticed, Planned, Said, TurnEnded, TurnStarted
from acp_bridge.cli.markdown import beginning, entry_text
from tests.support.transcript_entries import hostile_entries, tool_run


def test_the_title_is_text_and_the_facts_are_code():
    assert beginning(About("a *b* `c`", (("directory", "/w`x`"), ("session", "s")))) == (
        "# a \\*b\\* \\`c\\`\n\n- directory: `` /w`x` ``\n- session: `s`\n"
    )


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (TurnStarted(2, 0), "\n## Turn 2 — noon\n"),
        (Said("user", "do\n\nit"), "\n**User**\n\n> do\n>\n> it\n"),
        (Said("agent", "\n# done\n"), "\n# done\n"),
        (Said("thought", "hm", continued=True), "\n**Thought** (goes on)\n\n> hm\n"),
        (Said("context", "x", source="tool_bash"), "\n**Context** (from tool\\_bash)\n\n> x\n"),
        (Noticed("warning", "careful", "why"), "\n**warning**: careful\n\n> why\n"),
        (Noticed("info", "so", None), "\n**info**: so\n"),
        (Planned((("completed", "a"), ("pending", "b"))), "\n**Plan**\n\n- [x] a\n- [ ] b\n"),
        (Changed("mode", "full"), "\n*mode: full*\n"),
        (TurnEnded("cancelled", failed=False), "\n**Ended**: cancelled\n"),
        (TurnEnded("503", failed=True), "\n**Error**: 503\n"),
        (
            tool_run(directory="/x", described=("why",), output="a\n"),
            "\n*why · in /x*\n\n```console\n$ make all\n```\n\n```text\na\n```\n\n*exit 0*\n",
        ),
        (
            tool_run(command=False, title="Read a", texts=("```console\nx\n```",), ended=None),
            "\n**Tool** `Read a`\n\n```text\nx\n```\n",
        ),
        (tool_run(status="failed", ended=None), "\n```console\n$ make all\n```\n\n*failed*\n"),
        (tool_run(status="unfinished", ended=None), "\n```console\n$ make all\n```\n\n*no result is known*\n"),
        (
            tool_run(diffs=(Diff("a", "x", "y"),), ended=None),
            "\n```console\n$ make all\n```\n\n```diff\na\n@@ -1 +1 @@\n-x\n+y\n```\n",
        ),
    ],
)
def test_each_entry_has_its_part(entry, text):
    assert entry_text(entry, moment="noon") == text


def test_output_cannot_leave_its_fence():
    run = tool_run(output="```\n# not a heading\n````\n<b>")
    tokens = MarkdownIt().parse(entry_text(run))
    assert [token.content for token in tokens if token.type == "fence"][1] == "```\n# not a heading\n````\n<b>\n"
    assert all(token.type != "heading_open" for token in tokens)


def test_no_control_character_is_written():
    for entry in hostile_entries():
        assert all(char == "\n" or char >= " " for char in entry_text(entry, moment="noon"))
