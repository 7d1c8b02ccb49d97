"""Titles, whatever people write."""

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.session.title import MAX_TITLE, short_title, title_of
from agent_loop.vocabulary import text_block

ANY_TEXT = st.text(max_size=200) | st.text(
    st.sampled_from("ab \n\t\x00\x1b\x85\u2028\u200b\u200d\u202e…😀"), max_size=150
)


@given(ANY_TEXT)
def test_a_title_is_one_short_line_without_controls_and_a_title_of_itself(text: str):
    title = title_of([text_block(text)])
    if title is not None:
        assert 1 <= len(title) <= MAX_TITLE
        assert title.replace("\u200c", "").replace("\u200d", "").isprintable()
        assert title == " ".join(title.split())
        assert short_title(title) == title
