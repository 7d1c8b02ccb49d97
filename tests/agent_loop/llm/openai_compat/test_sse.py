"""Server-sent events on bytes (contract llm.md §5)."""

import pytest

from agent_loop.llm.openai_compat.sse import SseParser


def parse(*pieces):
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_ends_a_line(line_end):
    assert parse(line_end.join([b"data: a", b"", b"data: b", b"", b""])) == [(b"", b"a"), (b"", b"b")]


def test_a_crlf_cut_in_two_ends_one_line():
    assert parse(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [(b"", b"a\nb")]


def test_an_empty_piece_between_the_halves_of_a_crlf_changes_nothing():
    assert parse(b"data: a\r", b"", b"\ndata: b\n\n") == [(b"", b"a\nb")]


def test_two_bare_carriage_returns_end_an_event():
    assert parse(b"data: a\r", b"\rdata: b\r\r") == [(b"", b"a"), (b"", b"b")]


def test_data_lines_of_one_event_are_joined():
    assert parse(b"data: a\ndata:b\ndata:\ndata:  c\n\n") == [(b"", b"a\nb\n\n c")]


def test_comments_keep_alives_other_fields_and_leading_blank_lines_are_ignored():
    stream = b"\n\r\n\n: keep-alive\n\nid: 7\nretry: 3\ndata: a\n: inside\nnothing\n\n: keep-alive\n\n"
    assert parse(stream) == [(b"", b"a")]


def test_an_event_name_holds_for_one_event():
    assert parse(b"event: error\ndata: a\n\ndata: b\n\nevent:x\n\ndata: c\n\n") == [
        (b"error", b"a"),
        (b"", b"b"),
        (b"", b"c"),
    ]


def test_a_byte_order_mark_at_the_start_is_no_text():
    assert parse(b"\xef\xbb", b"\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n") == [(b"", b"a"), (b"", b"\xef\xbb\xbfb")]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_other_line_separators_are_text(character):
    payload = f"a{character}b".encode()
    assert parse(b"data: " + payload + b"\n\n") == [(b"", payload)]


def test_a_last_event_without_its_blank_line_is_given_at_the_end():
    assert parse(b"data: a\n\ndata: [DONE]") == [(b"", b"a"), (b"", b"[DONE]")]
    assert parse(b"data: [DONE]\n") == [(b"", b"[DONE]")]
    assert parse() == []
