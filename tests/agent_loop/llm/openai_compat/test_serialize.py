"""Golden request bodies (contract llm.md §5)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile
from agent_loop.llm.openai_compat.serialize import RequestWriter, request_body
from agent_loop.vocabulary import text_block
from tests.support.llm_request import llm_request, user

FLASH = DEEPSEEK.models[0]
SEEING = ModelProfile("seeing", images=True)
IMAGE = {"type": "image", "data": "QUJD", "mimeType": "image/jpeg"}


def rows(*messages, profile=FLASH):
    return request_body(llm_request(messages=list(messages)), profile)["messages"]


def said(*blocks):
    return {"role": "user", "content": list(blocks)}


def test_the_smallest_body():
    assert json.dumps(request_body(llm_request(), FLASH)) == (
        '{"model": "deepseek-v4-flash", "messages": [{"role": "user", "content": "hi"}], "stream": true, '
        '"stream_options": {"include_usage": true}}'
    )


def test_what_is_sent_is_the_body_also_when_the_tools_have_changed():
    writer = RequestWriter()
    profile = ModelProfile("m", efforts=("high",), thinking_switch=True)
    one = [{"name": "bash", "description": "Run “it”.", "parameters": {}}]
    others = [*one, {"name": "read", "description": "", "parameters": {}}]
    for tools in (one, one, others, [], one):
        for rest in ({}, {"temperature": 0.0, "stop": ["END"], "effort": "high"}):
            request = llm_request(tools=tools, **rest)
            assert writer.write(request, profile) == to_json(request_body(request, profile))


@given(st.lists(st.sampled_from(["a user", "an answer", "calls", "results", "empty", "another beginning"])))
def test_what_is_sent_of_a_conversation_that_grows_is_the_body(steps):
    writer, messages = RequestWriter(), [user("hi")]
    for step in steps:
        match step:
            case "a user":
                messages = [*messages, user("more “of it”"), said({"type": "resource-link", "name": "n", "uri": "u"})]
            case "an answer":
                messages = [*messages, {"role": "assistant", "content": [text_block("a"), text_block("b")]}]
            case "calls":
                call = {"type": "tool-call", "id": "1", "name": "bash", "arguments": ""}
                messages = [*messages, {"role": "assistant", "content": [call]}]
            case "results":
                result = {"type": "tool-result", "toolCallId": "1", "content": []}
                messages = [*messages, said(result, result, text_block("x"))]
            case "empty":
                messages = []
            case _:
                messages = [user("summary"), *messages[2:]]
        for system in (None, "be brief"):
            for profile in (FLASH, SEEING):
                request = llm_request(messages=messages, system=system)
                assert writer.write(request, profile) == to_json(request_body(request, profile))


def test_the_largest_body_has_its_keys_in_the_order_of_the_contract():
    parameters = {"type": "object", "properties": {}}
    request = llm_request(
        system="be brief",
        tools=[
            {"name": "bash", "description": "Run.", "parameters": parameters, "effect": "execute"},
            {"name": "read", "description": "Read.", "parameters": parameters, "strict": True},
        ],
        temperature=0.0,
        max_tokens=100,
        stop=["END"],
        effort="high",
    )
    profile = ModelProfile("m", efforts=("high", "max"), thinking_switch=True)
    body = request_body(request, profile)
    assert list(body) == [
        "model",
        "messages",
        "stream",
        "stream_options",
        "thinking",
        "reasoning_effort",
        "tools",
        "temperature",
        "max_tokens",
        "stop",
    ]
    assert body["messages"][0] == {"role": "system", "content": "be brief"}
    assert body["thinking"] == {"type": "enabled"}
    assert body["reasoning_effort"] == "high"
    assert body["tools"] == [
        {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": parameters}},
        {
            "type": "function",
            "function": {"name": "read", "description": "Read.", "parameters": parameters, "strict": True},
        },
    ]
    assert (body["temperature"], body["max_tokens"], body["stop"]) == (0.0, 100, ["END"])


def test_a_tool_round_trip_carries_the_reasoning_back_byte_for_byte():
    messages = rows(
        user("run it"),
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": " I \u2028think\n"},
                {"type": "tool-call", "id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
                {"type": "tool-call", "id": "c2", "name": "bash_output", "arguments": " "},
            ],
        },
        said({"type": "tool-result", "toolCallId": "c1", "content": [text_block("a\n"), text_block("b")]}),
        said({"type": "tool-result", "toolCallId": "c2", "content": [], "isError": True}),
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "text": "done"}, text_block("Two "), text_block("files.")],
        },
    )
    assert messages == [
        {"role": "user", "content": "run it"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": " I \u2028think\n",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
                {"id": "c2", "type": "function", "function": {"name": "bash_output", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
        {"role": "assistant", "content": "Two files.", "reasoning_content": "done"},
    ]


def test_an_assistant_message_of_reasoning_alone_has_null_content():
    row = rows({"role": "assistant", "content": [{"type": "reasoning", "text": "hm"}]})[0]
    assert row == {"role": "assistant", "content": None, "reasoning_content": "hm"}


def test_an_assistant_message_of_text_alone_has_no_other_field():
    assert rows({"role": "assistant", "content": [text_block("a")]}) == [{"role": "assistant", "content": "a"}]


def test_an_assistant_message_without_reasoning_has_none():
    call = {"type": "tool-call", "id": "c", "name": "bash", "arguments": ""}
    row = rows({"role": "assistant", "content": [text_block("a"), call]})[0]
    assert list(row) == ["role", "content", "tool_calls"]


def test_user_blocks_are_joined_with_nothing_between():
    row = rows(
        said(text_block("see "), {"type": "resource-link", "uri": "file:///a b", "name": 'x"y'}, text_block("!"))
    )[0]
    assert row["content"] == 'see \n[resource_link name="x\\"y" uri="file:///a b"]\n!'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("code", "```\ncode\n```"),
        ("code\n", "```\ncode\n```"),
        ("a ```` b", "`````\na ```` b\n`````"),
    ],
)
def test_an_embedded_resource_is_fenced_beyond_its_own_backticks(text, expected):
    row = rows(said({"type": "resource", "uri": "file:///a.py", "text": text}))[0]
    assert row["content"] == f'\n[resource uri="file:///a.py"]\n{expected}\n'


def test_a_resource_that_is_no_text_leaves_a_note():
    row = rows(said({"type": "resource", "uri": "file:///a.bin", "ref": "abc"}))[0]
    assert row["content"] == '\n[resource uri="file:///a.bin": not text, left out]\n'


def test_an_image_becomes_a_note_where_the_model_reads_text_only():
    assert rows(said(text_block("look"), IMAGE))[0]["content"] == "look\n[image left out: this model reads text only]\n"


def test_an_image_is_a_part_where_the_model_sees():
    url = {"type": "image", "url": "https://example.org/a.png"}
    assert rows(said(text_block("look"), IMAGE, url), profile=SEEING)[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]


def test_a_seeing_model_gets_plain_text_where_there_is_no_image():
    assert rows(user("hi"), profile=SEEING) == [{"role": "user", "content": "hi"}]


def test_results_precede_the_text_of_their_message_and_no_empty_text_follows_them():
    result = {"type": "tool-result", "toolCallId": "c1", "content": [text_block("r")]}
    assert [row["role"] for row in rows(said(text_block("t"), result))] == ["tool", "user"]
    assert [row["role"] for row in rows(said(result, text_block("")))] == ["tool"]


def test_an_empty_user_message_is_sent_and_an_unknown_block_has_no_text():
    assert rows(said({"type": "video", "url": "x"})) == [{"role": "user", "content": ""}]


def test_the_built_in_provider_lists_its_models_and_knows_no_others():
    assert [model.id for model in DEEPSEEK.models] == ["deepseek-v4-flash", "deepseek-v4-pro"]
    assert {(m.context_window, m.max_output, m.images, m.reasoning) for m in DEEPSEEK.models} == {
        (1_000_000, 384_000, False, "echo")
    }
    assert DEEPSEEK.model("deepseek-v4-pro") is DEEPSEEK.models[1]
    assert DEEPSEEK.model("gpt") is None


@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        (None, {}),
        ("off", {"thinking": {"type": "disabled"}}),
        ("high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("on", {"thinking": {"type": "enabled"}}),
    ],
)
def test_a_thinking_level_is_sent_as_the_endpoint_takes_it(effort, sent):
    body = request_body(llm_request(effort=effort), FLASH)
    assert {key: body[key] for key in ("thinking", "reasoning_effort") if key in body} == sent


def test_an_endpoint_without_the_switch_is_sent_the_effort_alone():
    body = request_body(llm_request(effort="low"), ModelProfile("m", efforts=("low",)))
    assert body["reasoning_effort"] == "low"
    assert "thinking" not in body
