"""A transcript as a page."""

import re
from html.parser import HTMLParser

import pytest

from acp_bridge.cli.about import About
from acp_bridge.cli.entries import Changed, Diff, Noticed, Planned, Said, TurnEnded, TurnStarted
from acp_bridge.cli.html import beginning, ending, entry_html
from tests.support.transcript_entries import hostile_entries, tool_run

TAGS = re.compile(r"</?([a-z0-9]+)([^>]*)>")


def test_the_page_stands_around_the_entries_and_forbids_everything():
    page = beginning(About("<b>$title", (("directory", "/w & x"),))) + ending()
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert page.count("&lt;b&gt;$title") == 2
    assert "<dt>directory</dt><dd>/w &amp; x</dd>" in page
    assert "default-src 'none'" in page
    assert "$entries" not in page


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        (TurnStarted(2, 0), '<h2 id="turn-2">Turn 2 <time>noon</time></h2>'),
        (Said("user", "a < b"), '<article class="user"><b>User</b><pre>a &lt; b</pre></article>'),
        (
            Said("context", "x", source="p", continued=True),
            '<article class="context"><b>Context (from p) (goes on)</b><pre>x</pre></article>',
        ),
        (
            Said("thought", "hm"),
            '<details class="thought"><summary>Thought</summary><pre>hm</pre></details>',
        ),
        (Said("agent", "**x**"), '<article class="agent" aria-label="Agent"><p><strong>x</strong></p>\n</article>'),
        (Noticed("error", "no", "why"), '<div class="bad"><b>error</b> no<pre>why</pre></div>'),
        (Noticed("info", "so", None), '<div class="note"><b>info</b> so</div>'),
        (
            Planned((("completed", "a"), ("pending", "b"))),
            (
                '<div class="note"><b>plan</b><ul class="plan"><li class="done">a <i>completed</i></li>'
                '<li class="open">b <i>pending</i></li></ul></div>'
            ),
        ),
        (Changed("mode", "full"), '<div class="note"><b>mode</b> full</div>'),
        (TurnEnded("cancelled", failed=False), '<div class="note">cancelled</div>'),
        (TurnEnded("503", failed=True), '<div class="bad">503</div>'),
        (
            tool_run(directory="/x", described=("why",), output="a\n"),
            (
                '<section class="tool"><pre class="title">$ make all</pre><p class="quiet">why · in <code>/x</code></p>'
                "<details open><summary>output, 1 line</summary><pre>a</pre></details>"
                '<p class="good ended">exit 0</p></section>'
            ),
        ),
        (
            tool_run(command=False, title="Read", status="failed", ended=None),
            '<section class="tool"><pre class="title">Read</pre><p class="bad ended">failed</p></section>',
        ),
        (
            tool_run(command=False, title="Read", status="running", ended=None),
            '<section class="tool"><pre class="title">Read</pre><p class="quiet ended">running</p></section>',
        ),
        (
            tool_run(status="unfinished", diffs=(Diff("a", "x\nz", "y\nz"),), ended=None),
            (
                '<section class="tool"><pre class="title">$ make all</pre><details open><summary>a</summary>'
                "<pre>@@ -1,2 +1,2 @@\n<del>-x</del>\n<ins>+y</ins>\n z</pre></details>"
                '<p class="bad ended">no result is known</p></section>'
            ),
        ),
        (tool_run(ended=None), '<section class="tool"><pre class="title">$ make all</pre></section>'),
    ],
)
def test_each_entry_has_its_part(entry, part):
    assert entry_html(entry, moment="noon") == part + "\n"


def test_long_output_is_folded():
    assert "<details><summary>output, 13 lines</summary>" in entry_html(tool_run(output="x\n" * 13))


def test_the_models_markdown_gives_no_link_no_image_and_no_html():
    text = "[a](javascript:x) ![b](http://c/d) <http://e> <img src=x> [r]\n\n[r]: http://f\n\n<script>x</script>"
    page = entry_html(Said("agent", text))
    assert {tag for tag, _ in TAGS.findall(page)} == {"article", "p"}
    assert "&lt;script&gt;" in page


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_no_stored_text_makes_an_element_or_an_attribute():
    seen = Elements()
    for entry in hostile_entries():
        page = entry_html(entry, moment="noon")
        assert all(char == "\n" or char >= " " for char in page)
        seen.feed(page)
    ours = "h2 time article b pre details summary section p code div ul li i ins del"
    assert seen.tags == set(ours.split())
    assert seen.attributes == {"id", "class", "aria-label", "open"}
