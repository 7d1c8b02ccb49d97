"""A template's frames are the renderer's frames."""

from hypothesis import given
from hypothesis import strategies as st

from acp_bridge.rpc.messages import notification_frame
from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.cards import TEXT_LIMIT
from acp_bridge.translate.v1.chunk_frames import ChunkFrames
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event

NUMBERS = st.integers(1, 3)
TEXTS = st.text(max_size=8) | st.sampled_from(["\x00", '"', "\\u0000", "\u2028", "\u0085", "é", "😀", "\x1b[0m"])
KINDS = st.sampled_from(["text-delta", "reasoning-delta"])


def chunk(kind, turn, step, text):
    return {"turn": turn, "step": step, "chunk": {"type": kind, "index": 0, "text": text}}


@given(TEXTS, st.lists(st.tuples(KINDS, NUMBERS, NUMBERS, TEXTS)))
def test_a_frame_is_what_the_renderer_and_the_wire_would_make(session_id, chunks):
    frames = ChunkFrames(session_id)
    renderer = UpdateRenderer(lambda _n: None, ClientCapabilities(), cwd="/p", window=lambda: None, live=True)
    for seq, fields in enumerate(chunks):
        data = chunk(*fields)
        updates = renderer.render(make_event("assistant/chunk", seq, 0, data))
        wanted = [notification_frame("session/update", {"sessionId": session_id, "update": each}) for each in updates]
        frame = frames.frame(data)
        assert ([] if frame is None else [frame]) == wanted


def test_what_is_not_exactly_one_frame_is_left_to_the_renderer():
    frames = ChunkFrames("s")
    assert frames.frame(chunk("text-delta", 1, 1, "")) is None
    assert frames.frame(chunk("text-delta", 1, 1, "x" * (TEXT_LIMIT + 1))) is None
    assert frames.frame({"turn": 1, "step": 1, "chunk": {"type": "usage", "usage": {}}}) is None
