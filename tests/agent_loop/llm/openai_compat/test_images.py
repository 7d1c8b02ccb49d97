"""Images that a log names: sent as they are to a model that sees, read once each, and noted where they are gone."""

import dataclasses

from acp_bridge.testing.model_server import model_server
from agent_loop.llm.openai_compat.adapter import OpenAICompatAdapter
from agent_loop.llm.openai_compat.images import image_urls, is_picture
from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile
from agent_loop.llm.openai_compat.serialize import RESOURCE_LIMIT, request_body
from agent_loop.vocabulary import text_block
from tests.support.immediate_runtime import ImmediateRuntime
from tests.support.llm_request import llm_request, user

SEEING = ModelProfile("seeing", images=True)
BLIND = ModelProfile("blind")
PNG = b"\x89PNG\r\n\x1a\n"
URL = "data:image/png;base64,iVBORw0KGgo="
IMAGE = {"type": "image", "mimeType": "image/x-odd", "ref": "r1"}
PICTURE = {"type": "resource", "uri": "file:///a.png", "mimeType": "image/png", "ref": "r1"}
SENT = {"type": "image_url", "image_url": {"url": URL}}


def said(*blocks):
    return {"role": "user", "content": list(blocks)}


def result(call_id, *blocks):
    return said({"type": "tool-result", "toolCallId": call_id, "content": list(blocks)})


def rows(*messages, urls=None, profile=SEEING):
    return request_body(llm_request(messages=list(messages)), profile, urls)["messages"]


async def test_each_image_is_read_once_and_named_by_what_it_is():
    asked = []

    async def attachment(ref):
        asked.append(ref)
        return {"r1": PNG, "r2": b"no image"}.get(ref)

    gone = {"type": "image", "ref": "r3"}
    messages = [said(IMAGE, text_block("a")), result("c", PICTURE, {"type": "image", "ref": "r2"}), said(gone, IMAGE)]
    request = llm_request(messages=messages, attachment=attachment)
    assert await image_urls(request) == {"r1": URL}
    assert asked == ["r1", "r2", "r3"]
    assert await image_urls(llm_request(messages=[said(IMAGE)])) == {}, "nothing is kept where nobody keeps"


def test_an_embedded_file_is_a_picture_when_it_says_so_and_is_no_text():
    assert is_picture(IMAGE)
    assert is_picture(PICTURE)
    assert not is_picture({**PICTURE, "text": "<svg/>"})
    assert not is_picture({"type": "resource", "uri": "u", "ref": "r1"})
    assert not is_picture(text_block("a"))


def test_a_model_that_sees_gets_the_image_in_its_place():
    assert rows(said(text_block("see"), IMAGE, PICTURE, text_block("!")), urls={"r1": URL})[0]["content"] == [
        {"type": "text", "text": "see"},
        SENT,
        SENT,
        {"type": "text", "text": "!"},
    ]


def test_an_image_that_is_not_kept_any_more_is_noted():
    note = {"type": "text", "text": "\n[image left out: it is not kept any more]\n"}
    assert rows(said(IMAGE), urls={})[0]["content"] == [note]


def test_what_tools_show_stands_behind_all_results_of_their_group():
    messages = (result("c1", text_block("a"), IMAGE), result("c2", text_block("b")), user("go on"))
    tools = [
        {"role": "tool", "tool_call_id": "c1", "content": "a\n[image below]\n"},
        {"role": "tool", "tool_call_id": "c2", "content": "b"},
    ]
    shown = {"role": "user", "content": [{"type": "text", "text": "[images in the result of call c1]"}, SENT]}
    assert rows(*messages, urls={"r1": URL}) == [*tools, shown, {"role": "user", "content": "go on"}]
    assert rows(*messages[:2], urls={"r1": URL}) == [*tools, shown]


def test_a_blind_model_is_told_of_it_only():
    assert rows(result("c1", IMAGE), said(IMAGE), profile=BLIND) == [
        {"role": "tool", "tool_call_id": "c1", "content": "\n[image left out: this model reads text only]\n"},
        {"role": "user", "content": "\n[image left out: this model reads text only]\n"},
    ]


def test_a_huge_resource_is_cut_and_says_so():
    text = "x" * (RESOURCE_LIMIT + 5)
    content = rows(said({"type": "resource", "uri": "file:///a", "text": text}))[0]["content"]
    assert content.endswith("x\n```\n[5 more characters of this resource were left out]\n")
    assert "x" * RESOURCE_LIMIT in content


async def test_the_adapter_sends_what_the_session_keeps():
    async def attachment(_ref):
        return PNG

    async def key():
        return "k"

    async with model_server([{"text": ["red"]}, {"text": ["?"]}]) as server:
        provider = dataclasses.replace(DEEPSEEK, base_url=server.base_url, models=(SEEING, BLIND))
        adapter = OpenAICompatAdapter(provider, credential=key, runtime=ImmediateRuntime())
        for model in ("seeing", "blind"):
            request = llm_request(model=model, messages=[said(IMAGE)], attachment=attachment)
            assert [chunk async for chunk in adapter.stream(request)]
        await adapter.aclose()
        contents = [request.body["messages"][0]["content"] for request in server.requests]
    assert contents == [[SENT], "\n[image left out: this model reads text only]\n"]
