"""Terminal text does not depend on how the bytes were cut, and cleaning it twice changes nothing."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.tools.terminal_text import TerminalCapture, TerminalText

PIECES = [
    *(bytes([code]) for code in (0, 7, 8, 9, 10, 13, 0x18, 0x1A, 0x1B, 0x7F, 0x80, 0xC2, 0xFF)),
    *(letter.encode() for letter in "[]P_^X\\;:?0123mKHhq (#cé漢😀\x9b\x9c\x9d\x90"),
    b"\x1b[31m",
    b"\x1b]0;t\x07",
    b"\x1bPx\x1b\\",
    b"1;" * 70,
]
OUTPUT = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join)
CUTS = st.lists(st.integers(min_value=0, max_value=300), max_size=10)
ALLOWED = re.compile("(?:[\b\t\n\r -~\u00a0-\U0010ffff]|\x1b\\[[0-9;:]*[mK])*")


def cut(data, places):
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def clean(chunks):
    text = TerminalText()
    return "".join([text.feed(chunk) for chunk in chunks]) + text.finish()


@given(OUTPUT, CUTS)
def test_the_text_does_not_depend_on_the_chunks(data, places):
    assert clean(cut(data, places)) == clean([data])
    assert clean([bytes([byte]) for byte in data]) == clean([data])


@given(OUTPUT)
def test_cleaning_is_idempotent_and_leaves_only_text_and_colour(data):
    text = clean([data])
    assert ALLOWED.fullmatch(text)
    assert clean([text.encode()]) == text


@given(OUTPUT, CUTS, st.integers(0, 12), st.integers(1, 12))
def test_the_kept_output_does_not_depend_on_the_chunks(data, places, head, tail):
    def capture(chunks):
        kept = TerminalCapture(head=head, tail=tail)
        for chunk in chunks:
            kept.feed(chunk)
        return kept.finish()

    whole = capture([data])
    assert capture(cut(data, places)) == whole
    if len(clean([data]).encode()) <= head + tail:
        assert whole == clean([data])
