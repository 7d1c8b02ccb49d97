"""The result of the event parser does not depend on how the bytes are cut (contract properties.md)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.openai_compat.sse import SseParser

PIECES = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"event: error",
        b": keep-alive",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        "\u2028\u0085h\u00e9\U0001f40d".encode(),
        b"[DONE]",
        b"{}",
        b"\xff",
    ]
)
STREAMS = st.lists(PIECES, max_size=20).map(b"".join)


def parse(pieces):
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close()


@given(STREAMS, st.lists(st.integers(0, 100), max_size=6))
def test_any_cutting_gives_the_same_events(stream, cuts):
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert parse(pieces) == parse([stream])


@given(STREAMS)
def test_one_byte_at_a_time_gives_the_same_events(stream):
    assert parse(stream[i : i + 1] for i in range(len(stream))) == parse([stream])


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)))
def test_every_text_without_line_ends_arrives_as_it_is(texts):
    stream = b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)
    assert [data.decode() for _, data in parse([stream])] == texts
