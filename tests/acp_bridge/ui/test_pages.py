"""The pages, without what is live on them."""

import pytest

from acp_bridge.ui.pages import PAGE_ROWS, list_page, session_page, transcript_style
from agent_loop.session.store import SessionSummary
from tests.support.session_commands import NOW
from tests.support.transcript_entries import MARKUP


def rows(count, **fields):
    given = {"cwd": "/home/ada/work", "title": "A title", **fields}
    return [
        SessionSummary(f"s{number}", created_at=0, updated_at=NOW, event_count=7, size=812, **given)
        for number in range(count)
    ]


def shown(sessions, page=1):
    return list_page(sessions, page, now_ms=NOW + 300_000, short_path=lambda path: path.replace("/home/ada", "~"))


def test_without_sessions_the_list_says_so():
    page = shown([])
    assert "No sessions are stored yet." in page
    assert '<table class="sessions" hidden>' in page


def test_a_session_is_a_row_that_leads_to_it():
    page = shown(rows(1))
    for part in ('<a href="session/s0">A title</a>', "~/work", "5 min ago", ">7<", "812 B"):
        assert part in page
    assert "<nav></nav>" in page


def test_what_is_stored_is_escaped_and_an_id_may_be_anything():
    page = shown(rows(1, title=MARKUP, cwd=None))
    assert "<script>" not in page
    assert ">–<" in page
    session = session_page('a/../b"?#', MARKUP)
    assert 'data-name="a%2F..%2Fb%22%3F%23"' in session
    assert "<script>" not in session
    assert "untitled session" in session_page("s", None)


@pytest.mark.parametrize(
    ("page", "first", "turns"),
    [
        (1, "s0", ["Page 1 of 3", "?page=2"]),
        (2, f"s{PAGE_ROWS}", ["?page=1", "Page 2 of 3", "?page=3"]),
        (3, f"s{2 * PAGE_ROWS}", ["?page=2", "Page 3 of 3"]),
        (99, f"s{2 * PAGE_ROWS}", ["Page 3 of 3"]),
        (0, "s0", ["Page 1 of 3"]),
    ],
)
def test_the_list_has_pages(page, first, turns):
    written = shown(rows(2 * PAGE_ROWS + 1), page)
    assert written.index('<a href="session/') == written.index(f'<a href="session/{first}"')
    assert all(part in written for part in turns)


def test_the_entries_look_as_on_an_exported_page():
    assert "article.user" in transcript_style()
    assert "<" not in transcript_style()
