"""Whatever comes in on stdin: each line gets exactly the answer that the contract names, and the loop lives on."""

import pytest

from tests.support.wire_client import wire

PARSE, INVALID = -32700, -32600


@pytest.mark.parametrize(
    ("line", "code", "answered"),
    [
        (b"[]", INVALID, None),
        (b'[{"id":1,"method":"echo"}]', INVALID, None),
        (b"42", INVALID, None),
        (b"null", INVALID, None),
        (b'{"jsonrpc":"2.0"', PARSE, None),
        (b"\x1b[?25h", PARSE, None),
        (b"Welcome to my shell!", PARSE, None),
        (b"[" * 100_000, PARSE, None),
        (b'{"id":1,"method":"echo","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", PARSE, None),
        (b"x" * 70_000, PARSE, None),
        (b'{"a":"\xff"}', PARSE, None),
        (b"\0" * 300, PARSE, None),
        (b'{"id":7}', INVALID, 7),
        (b'{"id":true,"method":"echo"}', INVALID, None),
        (b'{"id":1.5,"method":"echo"}', INVALID, None),
        (b'{"id":{},"method":"echo"}', INVALID, None),
        (b'{"id":[],"method":"echo"}', INVALID, None),
        (b'{"id":' + b"1" * 5000 + b',"method":"echo"}', PARSE, None),
    ],
)
async def test_a_bad_line_gets_one_error_and_the_next_request_its_answer(line, code, answered):
    async with wire() as client:
        await client.send(line)
        answer = await client.frame()
        assert (answer["id"], answer["error"]["code"]) == (answered, code)
        assert "data" not in answer["error"]
        await client.assert_quiet()


@pytest.mark.parametrize("line", [b"", b"\r", b"   ", b"\t\r", b"\xef\xbb\xbf", b'{"id":5,"result":{}}'])
async def test_blank_lines_and_unasked_responses_get_none(line):
    async with wire() as client:
        await client.send(line, line)
        await client.assert_quiet()


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        ("\u2028\u2029\u0085\x0b\x0c\x1c", "\u2028\u2029\u0085\x0b\x0c\x1c"),
        ("\x00\x7f\U0001f600", "\x00\x7f\U0001f600"),
        ("a\ud800b\udfff", "a\ufffdb\ufffd"),
    ],
)
async def test_awkward_characters_pass_escaped_and_raw(sent, received):
    async with wire() as client:
        await client.send({"id": 1, "method": "echo", "params": {"text": sent}})
        assert await client.frame() == {"id": 1, "result": {"text": received}}
        await client.send('{"id":2,"method":"echo","params":{"text":"\u2028\u0085é"}}\r'.encode())
        line = await client.line()
        assert len(line.decode().splitlines()) == 1
        assert "é".encode() in line


async def test_a_bom_before_the_first_request_is_dropped():
    async with wire() as client:
        await client.send(b'\xef\xbb\xbf{"id":1,"method":"echo"}')
        assert await client.frame() == {"id": 1, "result": {}}


async def test_a_line_of_65_mebibytes_and_one_is_one_error_and_the_next_line_is_intact():
    async with wire() as client:
        await client.send(b"x" * ((65 << 20) + 1), b'{"id":1,"method":"echo"}')
        answer = await client.frame()
        assert (answer["id"], answer["error"]["code"]) == (None, INVALID)
        assert await client.frame() == {"id": 1, "result": {}}
        await client.assert_quiet()


async def test_the_frame_limit_is_configurable():
    async with wire(max_frame=100) as client:
        await client.send(b"x" * 101)
        assert "100 bytes" in (await client.frame())["error"]["message"]


async def test_a_flood_is_answered_in_full_and_logged_in_part():
    async with wire() as client:
        await client.send(*([b"noise"] * 500))
        assert {frame["error"]["code"] for frame in await client.frames(500)} == {PARSE}
        assert len(client.log.named("invalid_frame")) == 5
