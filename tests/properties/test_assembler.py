"""Properties of the block assembler (contract properties.md)."""

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.assembler import BlockAssembler

INDICES = st.integers(0, 4)
TEXTS = st.text(max_size=3)
BLOCKS = st.one_of(
    st.builds(lambda kind, text: {"type": kind, "text": text}, st.sampled_from(["text", "reasoning"]), TEXTS),
    st.builds(lambda name, args: {"type": "tool-call", "id": "x", "name": name, "arguments": args}, TEXTS, TEXTS),
)
CHUNKS = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("block-start"),
            "index": INDICES,
            "blockType": st.sampled_from(["text", "reasoning", "tool-call", "image"]),
        }
    ),
    st.fixed_dictionaries({"type": st.just("text-delta"), "index": INDICES, "text": TEXTS}),
    st.fixed_dictionaries({"type": st.just("reasoning-delta"), "index": INDICES, "text": TEXTS}),
    st.fixed_dictionaries(
        {"type": st.just("tool-call-delta"), "index": INDICES, "id": TEXTS, "argumentsDelta": TEXTS},
        optional={"name": TEXTS},
    ),
    st.fixed_dictionaries({"type": st.just("block-end"), "index": INDICES, "block": BLOCKS}),
    st.just({"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 1}}),
    st.just({"type": "finish", "reason": {"kind": "stop"}}),
)
# None asks for what is ready in mid-stream
STREAMS = st.lists(st.one_of(CHUNKS, st.none()), max_size=30)


def run(stream):
    """Feed the stream; gives the assembler and what was flushed on the way."""
    assembler = BlockAssembler()
    flushed = []
    for chunk in stream:
        if chunk is None:
            flushed += assembler.flush_ready()
        else:
            assembler.add(chunk)
    return assembler, flushed


@given(STREAMS)
def test_what_was_flushed_and_what_remains_equal_the_blocks(stream):
    assembler, flushed = run(stream)
    blocks = assembler.blocks()
    assert flushed == blocks[: len(flushed)]
    assert flushed + assembler.flush_ready() + assembler.flush_remaining() == blocks
    assert assembler.flush_ready() + assembler.flush_remaining() == []


@given(STREAMS)
def test_there_are_at_most_as_many_blocks_as_indices(stream):
    assembler, _ = run(stream)
    assert len(assembler.blocks()) == len({chunk["index"] for chunk in stream if chunk and "index" in chunk})


@given(STREAMS)
def test_assembling_the_blocks_again_changes_nothing(stream):
    assembler, _ = run(stream)
    blocks = assembler.blocks()
    again, _ = run({"type": "block-end", "index": index, "block": block} for index, block in enumerate(blocks))
    assert again.blocks() == blocks
    assert assembler.message() == assembler.message() == again.message()
