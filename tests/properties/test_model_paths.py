from hypothesis import given
from hypothesis import strategies as st

from acp_bridge.testing.model_paths import moved

texts = st.lists(st.text(alphabet="/wxc", max_size=8), max_size=8)


@given(texts)
def test_what_is_said_is_moved_wherever_it_is_cut(pieces):
    answer = {"stream": [{"event": {"choices": [{"index": 0, "delta": {"content": piece}}]}} for piece in pieces]}
    (found,) = moved([answer], old="/w/c", new="<>")
    said = [op["event"]["choices"][0]["delta"]["content"] for op in found["stream"]]
    assert len(said) == len(pieces)
    assert "".join(said) == "".join(pieces).replace("/w/c", "<>")
