"""However a stream is cut, the window keeps the same bytes and counts the rest."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from bash_exec.capture import OutputWindow, UnreadOutput, model_text


def cut(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted(point % (len(data) + 1) for point in points), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


stream = st.one_of(
    st.binary(max_size=120), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
cuts = st.lists(st.integers(0, 10**6), max_size=12)


@given(stream, cuts, st.integers(0, 20), st.integers(1, 20))
def test_the_capture_does_not_depend_on_the_cuts(data, points, head, tail):
    pieces, whole = OutputWindow(head=head, tail=tail), OutputWindow(head=head, tail=tail)
    spilled = b"".join(pieces.feed(chunk) for chunk in cut(data, points))
    assert spilled == whole.feed(data)
    assert pieces.capture("p") == whole.capture("p")
    assert spilled == (data if len(data) > head + tail else b"")


@given(st.text(max_size=60), st.integers(0, 20), st.integers(1, 20))
def test_kept_and_dropped_add_up_and_both_ends_are_the_streams_own(text, head, tail):
    data = "".join(character for character in text if character.isprintable() or character == "\n").encode()
    window = OutputWindow(head=head, tail=tail)
    window.feed(data)
    capture = window.capture()
    kept = capture.text.encode()
    assert len(kept) + capture.dropped_bytes == len(data)
    assert kept.count(b"\n") + capture.dropped_lines == data.count(b"\n")
    assert not capture.binary
    assert any(data.startswith(kept[:n]) and data.endswith(kept[n:]) for n in range(len(kept) + 1))


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs")), max_size=80), cuts)
def test_reads_of_a_task_join_to_its_text(text, points):
    ring = UnreadOutput(limit=1000)
    read = ""
    for chunk in cut(text.encode(), points):
        ring.feed(chunk)
        piece = ring.take(final=False)
        assert piece.lost == 0
        assert piece.offset == len(read.encode())
        read += piece.text
    assert read + ring.take(final=True).text == text


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs")), max_size=80), cuts, st.integers(4, 40))
def test_every_byte_of_a_task_is_either_read_at_its_offset_or_counted_as_lost(text, points, limit):
    data = text.encode()
    ring = UnreadOutput(limit=limit)
    at = 0
    for number, chunk in enumerate(cut(data, points)):
        ring.feed(chunk)
        if number % 2:
            piece = ring.peek(at, final=False)
            assert ring.take(final=False) == piece
            assert piece.offset == at + piece.lost
            assert piece.text == data[piece.offset : piece.next_offset].decode()
            at = piece.next_offset
    assert ring.peek(at, final=True).next_offset == len(data)


@given(st.text(max_size=200))
def test_text_for_the_model_is_clean_and_cleaning_it_again_changes_nothing(text):
    clean = model_text(text)
    assert not any(character < " " and character not in "\n\t" for character in clean)
    assert model_text(clean) == clean
