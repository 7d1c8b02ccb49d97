"""Prompt blocks: in order, checked before anything is kept, and on a reload as they were sent."""

import re
from base64 import b64encode

import pytest

from acp_bridge.schema import SchemaProblem
from acp_bridge.translate.v1.prompts import ATTACHMENT_LIMIT, SHOWN_LIMIT, from_block, to_prompt
from agent_loop.session.attachments import ref_of

PNG = b"\x89PNG\r\n\x1a\nrest"


def base64(data):
    return b64encode(data).decode()


def taken(*contents, images=True, redact=str):
    return to_prompt(list(contents), images=images, redact=redact)


def shown(prompt):
    kept = {ref_of(data): data for data in prompt.attachments}
    return [from_block(block, kept.get) for block in prompt.blocks]


IMAGE = {"type": "image", "mimeType": "image/jpg", "data": base64(PNG), "uri": "file:///a.png"}
HINTS = {"audience": ["user"], "lastModified": "2026-01-01", "priority": 0.5}
EVERY = [
    {"type": "text", "text": "a"},
    IMAGE,
    {"type": "resource_link", "uri": "file:///a", "name": "a", "annotations": HINTS},
    {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}, "annotations": {"priority": 1.0}},
    {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "text/plain", "blob": base64(b"c")}},
    {"type": "resource", "resource": {"uri": "file:///d", "blob": base64(b"\xff\0")}},
    {"type": "text", "text": "z"},
]


def test_every_block_stands_in_its_place_and_comes_back_as_it_was_sent():
    prompt = taken(*EVERY)
    assert [block["type"] for block in prompt.blocks] == [
        "text",
        "image",
        "resource-link",
        "resource",
        "resource",
        "resource",
        "text",
    ]
    assert shown(prompt) == EVERY
    assert prompt.blocks[1] == {
        "type": "image",
        "mimeType": "image/jpg",
        "uri": "file:///a.png",
        "ref": ref_of(PNG),
    }
    assert prompt.blocks[4]["text"] == "c", "what is text is text for the model"
    assert "text" not in prompt.blocks[5]


def test_hints_that_do_not_fit_and_nulls_read_as_absent():
    link = {"type": "resource_link", "uri": "file:///a", "name": "a", "title": None, "annotations": {"priority": "x"}}
    assert taken(link).blocks == [{"type": "resource-link", "uri": "file:///a", "name": "a"}]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"type": "audio", "data": "", "mimeType": "audio/wav"}, "a block of type 'audio' is not supported here"),
        ({"type": "image", "mimeType": "image/png", "data": "%%%"}, "is not base64"),
        ({"type": "image", "mimeType": "image/png", "data": "ä"}, "is not base64"),
        ({"type": "image", "mimeType": "image/svg+xml", "data": base64(b"<svg/>")}, "no PNG, JPEG, GIF or WebP image"),
        ({"type": "image", "mimeType": "image/png", "data": ""}, "no PNG, JPEG, GIF or WebP image"),
        ({"type": "image", "mimeType": "image/png", "data": "A" * (ATTACHMENT_LIMIT // 3 * 4 + 8)}, "more than 10 MiB"),
        ({"type": "image", "mimeType": "image/png"}, "data: Field required"),
        ({"type": "resource", "resource": {"uri": "file:///a"}}, "Field required"),
        ({"type": "resource", "resource": {"uri": "file:///a", "blob": "!"}}, "is not base64"),
        ({}, "a block of type None"),
    ],
)
def test_a_block_that_cannot_be_taken_is_named(content, why):
    with pytest.raises(SchemaProblem, match=re.escape(why)):
        taken({"type": "text", "text": "a"}, content)


def test_an_image_that_was_not_advertised_is_refused_and_what_is_offered_is_said():
    with pytest.raises(SchemaProblem, match="text, resource_link and resource are"):
        taken(IMAGE, images=False)
    with pytest.raises(SchemaProblem, match="resource and image are"):
        taken({"type": "audio"})


def test_a_secret_in_a_binary_block_that_is_text_is_kept_nowhere():
    resource = {"type": "resource", "resource": {"uri": "file:///a", "blob": base64(b"key=hunter22")}}
    prompt = taken(resource, redact=lambda text: text.replace("hunter22", "[redacted]"))
    assert prompt.attachments == [b"key=[redacted]"]
    assert prompt.blocks[0]["text"] == "key=[redacted]"


def test_what_is_gone_or_too_large_for_a_frame_is_noted():
    assert [from_block(block, {}.get) for block in taken(*EVERY).blocks][1] == {
        "type": "text",
        "text": "[image file:///a.png]",
    }
    gone = {"type": "resource", "uri": "file:///d", "ref": "r"}
    assert from_block(gone, {}.get) == {"type": "text", "text": "[resource file:///d]"}
    large = b"x" * (SHOWN_LIMIT // 4 * 3 + 3)
    assert from_block({"type": "image", "mimeType": "image/png", "ref": "r"}, {"r": large}.get) == {
        "type": "text",
        "text": "[image]",
    }
    text = {"type": "resource", "uri": "file:///c", "ref": "r", "text": "c"}
    assert from_block(text, {"r": large}.get) == {"type": "resource", "resource": {"uri": "file:///c", "text": "c"}}
    assert from_block({"type": "video"}, {}.get) == {"type": "text", "text": "[video]"}


def test_a_long_resource_is_cut_for_its_frame():
    block = taken({"type": "resource", "resource": {"uri": "file:///a", "text": "x" * 1_000_000}}).blocks[0]
    assert len(block["text"]) == 1_000_000
    assert "characters left out" in from_block(block, {}.get)["resource"]["text"]
