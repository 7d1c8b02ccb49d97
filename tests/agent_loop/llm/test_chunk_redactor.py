"""Chunks as they go into the log: the same objects without secrets, nothing of a secret with one."""

import json

import pytest

from agent_loop.llm.assembler import BlockAssembler
from agent_loop.llm.chunk_redactor import ChunkRedactor
from bash_exec.secrets import DELTA_REVEAL, SecretRegistry

KEY = "hunter2-is-it"
MARK = "[redacted:KEY]"


def redactor():
    secrets = SecretRegistry()
    secrets.add("KEY", KEY)
    return ChunkRedactor(secrets)


def text(part, *, index=0, kind="text-delta"):
    return {"type": kind, "index": index, "text": part}


def call(part, *, index=0, call_id="c1", **more):
    return {"type": "tool-call-delta", "index": index, "id": call_id, **more, "argumentsDelta": part}


def end(index=0):
    return {"type": "block-end", "index": index, "block": {"type": "text", "text": f"is {KEY}"}}


def fed(chunks, given=None):
    given = given or redactor()
    return [logged for chunk in chunks for logged in given.feed(chunk)] + given.finish()


PLAIN = [
    {"type": "block-start", "index": 0, "blockType": "text"},
    text("the hunt"),
    text("er is", kind="reasoning-delta", index=1),
    call('{"a":', index=2, name="bash"),
    call("1}", index=2),
    call("", index=3, call_id=""),
    {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 2}},
]


@pytest.mark.parametrize("given", [redactor(), ChunkRedactor(SecretRegistry())])
def test_chunks_without_secrets_pass_as_they_are(given):
    chunks = [*PLAIN, {"type": "finish", "reason": {"kind": "stop"}}]
    logged = fed(chunks, given)
    assert logged == chunks
    assert all(one is other for one, other in zip(logged[:-1], chunks, strict=False))


@pytest.mark.parametrize("kind", ["text-delta", "reasoning-delta"])
def test_a_secret_that_is_split_anywhere_shows_only_its_first_characters(kind):
    for size in range(1, len(KEY) + 1):
        whole = f"the key {KEY} is"
        chunks = [text(whole[at : at + size], kind=kind) for at in range(0, len(whole), size)]
        shown = "".join(chunk["text"] for chunk in fed(chunks))
        before, _, behind = shown.partition(MARK)
        assert behind == " is"
        assert KEY[: len(before) - len("the key ")] == before.removeprefix("the key ")
        assert len(before) <= len("the key ") + DELTA_REVEAL


def test_held_text_joins_the_next_delta_of_its_block():
    given = redactor()
    assert given.feed(text("say hunter2")) == [text("say ")]
    assert given.feed(text("-is")) == []
    assert given.feed(text("other", index=1)) == [text("other", index=1)]
    assert given.feed(text("n't")) == [text("hunter2-isn't")]


@pytest.mark.parametrize(
    "last",
    [{"type": "block-end", "index": 0, "block": {"type": "text", "text": "hunter2"}}, {"type": "finish", "reason": {}}],
)
def test_held_text_comes_before_the_end_of_its_block_or_of_the_answer(last):
    given = redactor()
    assert given.feed(text("hunter2")) == []
    assert given.feed(last) == [text("hunter2"), last]
    assert given.finish() == []


def test_the_end_of_another_block_leaves_held_text_alone():
    given = redactor()
    given.feed(text("hunter2"))
    assert given.feed(end(index=4)) == [{**end(index=4), "block": {"type": "text", "text": f"is {MARK}"}}]
    assert given.finish() == [text("hunter2")]


def test_an_error_that_ends_the_answer_is_redacted():
    reason = {"kind": "error", "message": f"bad key {KEY}"}
    assert fed([{"type": "finish", "reason": reason}])[0]["reason"]["message"] == f"bad key {MARK}"


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("call_id", ["c1", ""])
def test_the_arguments_of_a_call_are_kept_as_they_were_written(ended, call_id):
    written = json.dumps({"command": f"echo {KEY}"})
    given = redactor()
    chunks = [
        call(written[at : at + 3], call_id=call_id, **({} if at else {"name": "bash"}))
        for at in range(0, len(written), 3)
    ]
    if ended:
        block = {"type": "tool-call", "id": call_id or "call-0", "name": "bash", "arguments": written}
        chunks.append({"type": "block-end", "index": 0, "block": block})
    logged = fed(chunks, given)
    assembler = BlockAssembler()
    for chunk in logged:
        assembler.add(chunk)
    (block,) = assembler.blocks()
    assert KEY not in json.dumps(logged)
    assert (block["name"], block["id"]) == ("bash", call_id or "call-0")
    assert MARK in block["arguments"]
    assert given.exact_arguments(block["id"], block["arguments"]) == written
    assert given.exact_arguments(block["id"], written) is None


def test_arguments_that_end_within_a_secret_are_the_same():
    given = redactor()
    assert fed([call("hunter2-", name="bash")], given) == [call("", name="bash"), call("hunter2-")]
    assert given.exact_arguments("c1", "hunter2-") is None


def test_an_id_or_a_name_that_is_a_secret_is_redacted():
    assert fed([call("{", call_id=KEY, name=KEY), call("}", call_id=KEY)]) == [
        call("{", call_id=MARK, name=MARK),
        call("}", call_id=MARK),
    ]
