"""The block assembler (contract llm.md §3)."""

import pytest

from agent_loop.llm.assembler import BlockAssembler


def start(index, block_type):
    return {"type": "block-start", "index": index, "blockType": block_type}


def text(index, value):
    return {"type": "text-delta", "index": index, "text": value}


def reasoning(index, value):
    return {"type": "reasoning-delta", "index": index, "text": value}


def call(index, call_id, arguments, name=None):
    named = {} if name is None else {"name": name}
    return {"type": "tool-call-delta", "index": index, "id": call_id, **named, "argumentsDelta": arguments}


def end(index, block):
    return {"type": "block-end", "index": index, "block": block}


def assemble(*chunks):
    assembler = BlockAssembler()
    for chunk in chunks:
        assembler.add(chunk)
    return assembler


def test_blocks_stand_in_first_seen_order_not_in_index_order():
    assembler = assemble(text(3, "b"), reasoning(1, "a"), text(3, "c"))
    assert assembler.blocks() == [{"type": "text", "text": "bc"}, {"type": "reasoning", "text": "a"}]


def test_a_repeated_block_start_is_ignored():
    assembler = assemble(start(0, "text"), text(0, "a"), start(0, "reasoning"), text(0, "b"))
    assert assembler.blocks() == [{"type": "text", "text": "ab"}]


def test_a_delta_for_an_unseen_index_creates_a_block_of_its_type():
    assembler = assemble(call(0, "c1", "{}", "bash"))
    assert assembler.blocks() == [{"type": "tool-call", "id": "c1", "name": "bash", "arguments": "{}"}]


def test_a_delta_of_another_type_than_its_block_is_ignored():
    assembler = assemble(start(0, "text"), reasoning(0, "hidden"), call(0, "c1", "{}", "bash"), text(0, "shown"))
    assert assembler.blocks() == [{"type": "text", "text": "shown"}]


def test_the_first_close_wins_and_stragglers_are_ignored():
    closed = {"type": "text", "text": "closed"}
    assembler = assemble(text(0, "a"), end(0, closed), text(0, "late"), end(0, {"type": "text", "text": "second"}))
    assert assembler.blocks() == [closed]


def test_a_close_without_a_start_makes_the_block():
    block = {"type": "image", "url": "https://example.org/a.png"}
    assert assemble(end(2, block)).blocks() == [block]


def test_the_latest_id_and_the_latest_name_that_is_not_empty_count():
    assembler = assemble(call(0, "old", "{", "read"), call(0, "", "", "bash"), call(0, "new", "}", ""))
    assert assembler.blocks() == [{"type": "tool-call", "id": "new", "name": "bash", "arguments": "{}"}]


def test_a_call_without_an_id_is_named_after_its_index():
    assert assemble(call(4, "", "", "bash")).blocks()[0]["id"] == "call-4"


def test_the_last_usage_and_the_last_finish_win():
    first, last = {"inputTokens": 1, "outputTokens": 1}, {"inputTokens": 2, "outputTokens": 2}
    assembler = assemble(
        {"type": "usage", "usage": first},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
        {"type": "usage", "usage": last},
        {"type": "finish", "reason": {"kind": "max-tokens"}},
    )
    assert assembler.usage == last
    assert assembler.finish == {"kind": "max-tokens"}


def test_without_a_finish_the_reason_is_stop_and_there_is_no_usage():
    assembler = BlockAssembler()
    assert assembler.finish == {"kind": "stop"}
    assert assembler.usage is None


def test_the_message_can_be_read_again_and_again():
    assembler = assemble(text(0, "a"))
    assert assembler.message() == assembler.message() == {"role": "assistant", "content": assembler.blocks()}


def test_flush_ready_gives_the_leading_run_of_closed_blocks_once():
    first, second = {"type": "text", "text": "1"}, {"type": "text", "text": "2"}
    assembler = assemble(start(0, "text"), start(1, "text"), end(1, second))
    assert assembler.flush_ready() == []
    assembler.add(end(0, first))
    assert assembler.flush_ready() == [first, second]
    assert assembler.flush_ready() == []
    assembler.add(text(2, "3"))
    assert assembler.flush_remaining() == [{"type": "text", "text": "3"}]
    assert assembler.flush_remaining() == []


def test_an_unknown_chunk_type_raises():
    with pytest.raises(AssertionError):
        BlockAssembler().add({"type": "audio-delta", "index": 0})
