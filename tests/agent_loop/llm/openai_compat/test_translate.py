"""Stream payloads into chunks: the tolerance list (contract llm.md §5)."""

import json

import pytest

from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.translate import StreamTranslator


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def finish(reason, **fields):
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **fields}


def tool(**row):
    function = {key: row.pop(key) for key in ("name", "arguments") if key in row}
    return {**row, "function": function}


def translate(*payloads, done=True):
    translator = StreamTranslator("deepseek")
    chunks = []
    for payload in payloads:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        chunks += translator.feed(b"", data)
    if done:
        chunks += translator.feed(b"", b"[DONE]")
        assert translator.done
    return chunks


def block_ends(chunks):
    return [chunk["block"] for chunk in chunks if chunk["type"] == "block-end"]


def calls(chunks):
    return [(block["id"], block["name"], block["arguments"]) for block in block_ends(chunks)]


def failure_of(*payloads, event=b""):
    translator = StreamTranslator("deepseek")
    *harmless, last = [payload if isinstance(payload, bytes) else json.dumps(payload).encode() for payload in payloads]
    for data in harmless:
        translator.feed(b"", data)
    with pytest.raises(LlmError) as caught:
        translator.feed(event, last)
    return caught.value


def test_reasoning_text_and_a_call_become_blocks_in_open_order_then_usage_then_finish():
    chunks = translate(
        delta(role="assistant", content=None, reasoning_content=""),
        delta(reasoning_content="th"),
        delta(reasoning_content="ink"),
        delta(content="say"),
        delta(tool_calls=[tool(index=0, id="c1", type="function", name="bash", arguments="")]),
        delta(tool_calls=[tool(index=0, arguments='{"a"')]),
        delta(tool_calls=[tool(index=0, arguments=":1}")]),
        finish("tool_calls", usage={"prompt_tokens": 10, "completion_tokens": 4}),
    )
    assert chunks == [
        {"type": "block-start", "index": 0, "blockType": "reasoning"},
        {"type": "reasoning-delta", "index": 0, "text": "th"},
        {"type": "reasoning-delta", "index": 0, "text": "ink"},
        {"type": "block-start", "index": 1, "blockType": "text"},
        {"type": "text-delta", "index": 1, "text": "say"},
        {"type": "block-start", "index": 2, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 2, "id": "c1", "name": "bash", "argumentsDelta": ""},
        {"type": "tool-call-delta", "index": 2, "id": "c1", "argumentsDelta": '{"a"'},
        {"type": "tool-call-delta", "index": 2, "id": "c1", "argumentsDelta": ":1}"},
        {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "think"}},
        {"type": "block-end", "index": 1, "block": {"type": "text", "text": "say"}},
        {
            "type": "block-end",
            "index": 2,
            "block": {"type": "tool-call", "id": "c1", "name": "bash", "arguments": '{"a":1}'},
        },
        {"type": "usage", "usage": {"inputTokens": 10, "outputTokens": 4}},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
    assert list(chunks[6]) == ["type", "index", "id", "name", "argumentsDelta"]


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": []},
        {"choices": None},
        {"choices": "x"},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{}]},
        {},
        {"error": None, "usage": None},
        delta(content=None, reasoning_content=None, tool_calls=None),
        delta(content="", reasoning_content="", tool_calls=[]),
        delta(content=5, reasoning_content=["x"], tool_calls=[None]),
    ],
)
def test_payloads_that_say_nothing_give_nothing(odd):
    assert translate(odd, done=False) == []


def test_reasoning_is_read_under_its_other_name_too():
    assert block_ends(translate(delta(reasoning="hm"), delta(content="x")))[0] == {"type": "reasoning", "text": "hm"}


def test_line_separators_and_repaired_surrogates_are_text():
    chunks = translate(
        '{"choices":[{"delta":{"content":"a\u2028\u0085b"}}]}'.encode(),
        b'{"choices":[{"delta":{"content":"\\ud83d|"}}]}',
        b'{"choices":[{"delta":{"content":"\xff|"}}]}',
    )
    assert block_ends(chunks) == [{"type": "text", "text": "a\u2028\u0085b\ufffd|\ufffd|"}]


def test_usage_is_taken_from_any_payload_and_the_last_one_counts():
    chunks = translate(
        {**delta(content="x"), "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        finish("stop"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    )
    assert chunks[-2:] == [
        {"type": "usage", "usage": {"inputTokens": 9, "outputTokens": 2}},
        {"type": "finish", "reason": {"kind": "stop"}},
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "prompt_tokens": 890,
                "completion_tokens": 95,
                "prompt_tokens_details": {"cached_tokens": 768},
                "prompt_cache_hit_tokens": 5,
                "completion_tokens_details": {"reasoning_tokens": 23},
            },
            {"inputTokens": 122, "outputTokens": 95, "cacheReadTokens": 768, "reasoningTokens": 23},
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 4, "prompt_tokens_details": None},
            {"inputTokens": 6, "outputTokens": 1, "cacheReadTokens": 4},
        ),
        (
            {"prompt_tokens": 3, "prompt_cache_hit_tokens": 9},
            {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 9},
        ),
        ({"prompt_tokens": "9", "completion_tokens": True}, {"inputTokens": 0, "outputTokens": 0}),
        ({"prompt_tokens": -1, "completion_tokens": 2**53}, {"inputTokens": 0, "outputTokens": 0}),
    ],
)
def test_usage_counts_are_disjoint(usage, expected):
    assert translate(delta(content="x"), {"choices": [], "usage": usage})[-2]["usage"] == expected


def test_calls_are_assembled_by_index():
    chunks = translate(
        delta(tool_calls=[tool(index=0, id="a", name="read", arguments="")]),
        delta(tool_calls=[tool(index=1, id="b", name="bash", arguments="")]),
        delta(tool_calls=[tool(index=0, arguments="0")]),
        delta(tool_calls=[tool(index=1, arguments="1")]),
    )
    assert calls(chunks) == [("a", "read", "0"), ("b", "bash", "1")]


def test_calls_are_assembled_by_a_known_id_whatever_the_index_says():
    chunks = translate(
        delta(tool_calls=[tool(id="a", name="read", arguments="0"), tool(id="b", name="bash", arguments="1")]),
        delta(tool_calls=[tool(id="a", arguments="2")]),
        delta(tool_calls=[tool(id="b", index=0, arguments="3")]),
    )
    assert calls(chunks) == [("a", "read", "02"), ("b", "bash", "13")]


def test_without_id_and_index_the_current_call_goes_on():
    chunks = translate(
        delta(tool_calls=[tool(index=0, id="a", name="read", arguments="0")]),
        delta(tool_calls=[tool(arguments="1")]),
    )
    assert calls(chunks) == [("a", "read", "01")]


def test_an_id_on_every_delta_makes_one_call():
    row = {"index": 0, "id": "a", "name": "read"}
    chunks = translate(*(delta(tool_calls=[tool(**row, arguments=piece)]) for piece in "012"))
    assert calls(chunks) == [("a", "read", "012")]


def test_a_new_id_on_a_used_index_opens_a_new_block():
    chunks = translate(
        delta(tool_calls=[tool(index=0, id="a", name="read", arguments="0")]),
        delta(tool_calls=[tool(index=0, id="b", name="bash", arguments="1")]),
        delta(tool_calls=[tool(index=0, arguments="2")]),
    )
    assert calls(chunks) == [("a", "read", "0"), ("b", "bash", "12")]


def test_a_missing_id_is_made_up_and_stays():
    chunks = translate(
        delta(content="x"),
        delta(tool_calls=[tool(index=0, name="read", arguments="0")]),
        delta(tool_calls=[tool(index=0, id=None, arguments="1")]),
    )
    assert block_ends(chunks)[1] == {"type": "tool-call", "id": "call-1", "name": "read", "arguments": "01"}


def test_a_late_id_replaces_the_one_that_was_made_up():
    chunks = translate(
        delta(tool_calls=[tool(index=0, name="read")]),
        delta(tool_calls=[tool(index=0, id="a")]),
        delta(tool_calls=[tool(index=0, arguments="1")]),
    )
    deltas = [chunk for chunk in chunks if chunk["type"] == "tool-call-delta"]
    assert [(chunk["id"], chunk["argumentsDelta"]) for chunk in deltas] == [("call-0", ""), ("a", ""), ("a", "1")]
    assert calls(chunks) == [("a", "read", "1")]


def test_several_rows_without_ids_and_indices_are_several_calls():
    chunks = translate(delta(tool_calls=[tool(name="read", arguments="0"), tool(name="bash", arguments="1")]))
    assert calls(chunks) == [("call-0", "read", "0"), ("call-1", "bash", "1")]


def test_a_call_delta_that_brings_nothing_is_not_passed_on():
    chunks = translate(
        delta(tool_calls=[tool(index=0, id="a", name="read")]),
        delta(tool_calls=[{"index": 0, "id": "a", "function": None}]),
        done=False,
    )
    assert len(chunks) == 2


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("stop", "stop"), ("tool_calls", "tool-calls"), ("length", "max-tokens"), ("content_filter", "refusal")],
)
def test_finish_reasons_are_translated(reason, kind):
    assert translate(delta(content="x"), finish(reason))[-1]["reason"] == {"kind": kind}


def test_an_unknown_finish_reason_is_an_error_with_its_upper_cased_code():
    reason = translate(delta(content="x"), finish("insufficient_system_resource"))[-1]["reason"]
    assert reason == {
        "kind": "error",
        "message": "deepseek ended the answer with the reason 'insufficient_system_resource'",
        "code": "INSUFFICIENT_SYSTEM_RESOURCE",
    }


def test_a_missing_finish_reason_follows_from_the_blocks():
    assert translate(delta(content="x"))[-1]["reason"] == {"kind": "stop"}
    assert translate(delta(tool_calls=[tool(id="a", name="b")]))[-1]["reason"] == {"kind": "tool-calls"}


@pytest.mark.parametrize("payloads", [(), (finish("stop"),), (finish("tool_calls"),)])
def test_an_answer_without_blocks_is_an_empty_response(payloads):
    assert failure_of(*payloads, b" [DONE] ").code == "EMPTY_RESPONSE"


def test_an_answer_cut_before_its_first_block_is_no_empty_response():
    assert translate(finish("length")) == [{"type": "finish", "reason": {"kind": "max-tokens"}}]


@pytest.mark.parametrize("data", [b'{"choices":[', b"null", b"[]", b"5", b"", b"[" * 100_000, b'{"a":' + b"9" * 5000])
def test_what_is_no_json_object_is_a_malformed_response(data):
    assert failure_of(data).code == "MALFORMED_RESPONSE"


@pytest.mark.parametrize(
    ("payload", "event", "message"),
    [
        ({"error": {"message": "Model overloaded"}}, b"", "Model overloaded"),
        ({"error": "plain words"}, b"", "plain words"),
        ({"message": "by name"}, b"error", "by name"),
        ("text alone", b"error", "text alone"),
        ({"choices": [], "error": {"detail": "in detail"}}, b"", "in detail"),
    ],
)
def test_an_error_inside_the_stream_is_raised_with_the_providers_words(payload, event, message):
    error = failure_of(payload, event=event)
    assert error.message == f"deepseek failed inside its stream: {message}"
    assert error.code == "SERVER"
