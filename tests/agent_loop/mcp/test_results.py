"""What a tool of a server answered, as blocks for the model."""

from agent_loop.mcp.results import IMAGE_LIMIT, NOTHING, TEXT_LIMIT, outcome_of
from agent_loop.vocabulary import text_block
from tests.support.mcp_server import PIXEL


def texts(*blocks, **more):
    return [block.get("text") for block in outcome_of({"content": list(blocks), **more}).content]


def test_an_answer_without_content_is_its_structured_content_or_a_word_about_it():
    assert texts(structuredContent={"a": 1}) == ['{\n  "a": 1\n}']
    assert texts() == [NOTHING]
    assert texts({"type": "text", "text": "x"}, structuredContent={"a": 1}) == ["x"]


def test_resources_and_sound_are_text():
    assert texts(
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "Yw==", "mimeType": "application/x-c"}},
        {"type": "resource", "resource": {"uri": "file:///d", "blob": "Yw=="}},
        {"type": "audio", "data": "Yw==", "mimeType": "audio/wav"},
    ) == [
        "[resource a: file:///a]",
        "[resource file:///b]\nb",
        "[resource file:///c (application/x-c): not text, left out]",
        "[resource file:///d (bytes): not text, left out]",
        "[sound (audio/wav) left out]",
    ]


def test_an_image_is_an_image_wherever_it_stands():
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    resource = {"type": "resource", "resource": {"uri": "u:", "blob": PIXEL, "mimeType": "image/png"}}
    assert outcome_of({"content": [image, resource]}).content == [image, image]


def test_an_image_that_cannot_be_read_is_said():
    assert texts({"type": "image", "data": "!!", "mimeType": "image/png"}) == ["[an image that cannot be read]"]
    assert texts({"type": "image", "data": "", "mimeType": "image/png"}) == ["[an image that cannot be read]"]


def test_long_text_is_cut_in_its_middle_and_what_follows_is_left_out():
    content = [{"type": "text", "text": "x" * TEXT_LIMIT + "end"}, {"type": "text", "text": "more"}]
    long, note = outcome_of({"content": content}).content
    assert long["text"].endswith("xend")
    assert "\n[… 3 characters left out …]\n" in long["text"]
    assert note == text_block("[the rest of the answer was left out: ask the tool for less]")


def test_text_that_just_fits_stays():
    content = [{"type": "text", "text": "x" * TEXT_LIMIT}]
    assert outcome_of({"content": content}).content == content


def test_what_follows_a_text_that_just_fits_is_left_out_by_a_note():
    content = [{"type": "text", "text": "x" * TEXT_LIMIT}, {"type": "text", "text": "more"}]
    note = text_block("[the rest of the answer was left out: ask the tool for less]")
    assert outcome_of({"content": content}).content == [content[0], note]


def test_images_beyond_the_limit_are_left_out_by_a_note():
    data = "AAAA" * (IMAGE_LIMIT // 4)
    big, small = ({"type": "image", "data": data, "mimeType": "image/png"} for data in (data, PIXEL))
    first, second = outcome_of({"content": [big, small]}).content
    assert first == big
    assert second == text_block("[an image left out: the answer has too many or large ones]")
