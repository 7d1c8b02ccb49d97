"""The splitter: 0x0A and nothing else ends a frame."""

import pytest

from acp_bridge.rpc.framing import OVERSIZE, FrameSplitter


def split(*pieces: bytes, limit: int = 100):
    splitter = FrameSplitter(limit=limit)
    return [event for piece in pieces for event in splitter.feed(piece)] + splitter.finish()


def test_frames_of_one_piece_are_cut_at_the_newline():
    assert split(b'{"a":1}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_a_frame_in_one_byte_pieces_is_whole():
    assert split(*(bytes([byte]) for byte in b'{"a":1}\n')) == [b'{"a":1}']


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_no_other_line_separator_cuts(separator):
    line = f'{{"a":"{separator}"}}'.encode()
    assert split(line + b"\n") == [line]


def test_blank_lines_are_no_frames():
    assert split(b"\n\r\n   \n\t\n\xef\xbb\xbf\n{}\r\n\n") == [b"{}\r"]


def test_a_leading_bom_is_dropped():
    assert split(b"\xef\xbb", b"\xbf{}\n") == [b"{}"]


def test_a_last_line_without_newline_counts():
    assert split(b"{}\n[") == [b"{}", b"["]


def test_a_frame_of_exactly_the_limit_passes():
    assert split(b"x" * 100 + b"\n") == [b"x" * 100]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_an_oversize_frame_is_one_event_and_the_next_is_intact(size):
    stream = b"x" * 350 + b"\n{}\n"
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert split(*pieces) == [OVERSIZE, b"{}"]


def test_an_oversize_frame_is_reported_before_its_line_ends():
    splitter = FrameSplitter(limit=3)
    assert splitter.feed(b"abcd") == [OVERSIZE]
    assert splitter.feed(b"e") == []
    assert splitter.finish() == []
