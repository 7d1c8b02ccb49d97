"""What is no message never ends the loop, and gets exactly the answer that the wire's contract names (acp.md §1)."""

import json

import pytest

from tests.support.agent_process import agent, agent_home

PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
SILENCE = None
OVERSIZE = b" " * (65 * 1024 * 1024) + b"x"


def line(**members):
    return json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False).encode()


def request(request_id, method="nobody/knows", **members):
    return line(id=request_id, method=method, **members)


# (name, line, None or the (id, code) of its one answer)
GARBAGE = [
    ("blank", b"", SILENCE),
    ("spaces", b" \t ", SILENCE),
    ("CRLF alone", b"\r", SILENCE),
    ("BOM alone", b"\xef\xbb\xbf", SILENCE),
    ("batch", b"[]", (None, INVALID)),
    ("batch of requests", b"[" + request(1) + b"]", (None, INVALID)),
    ("number", b"42", (None, INVALID)),
    ("string", b'"hello"', (None, INVALID)),
    ("null", b"null", (None, INVALID)),
    ("empty object", b"{}", (None, INVALID)),
    ("an id and nothing else", line(id=7), (7, INVALID)),
    ("a method that is no string", line(id=8, method=3), (8, INVALID)),
    ("half an object", b'{"jsonrpc":"2.0","id":1,"meth', (None, PARSE)),
    ("words", b"hello agent", (None, PARSE)),
    ("two objects on one line", b"{}{}", (None, PARSE)),
    ("not a number", b'{"id":1,"method":"x","params":{"a":NaN}}', (None, PARSE)),
    ("5,000 digits", b'{"id":' + b"9" * 5000 + b',"method":"x"}', (None, PARSE)),
    ("100,000 deep", b"[" * 100_000 + b"]" * 100_000, (None, PARSE)),
    ("201 deep", b'{"id":1,"method":"x","params":' + b"[" * 200 + b"]" * 200 + b"}", (None, PARSE)),
    ("70 KB of garbage", b"x" * 70_000, (None, PARSE)),
    ("65 MiB + 1", OVERSIZE, (None, INVALID)),
    ("invalid UTF-8", b'{"id":1,"method":"\xff\xfe"}', (None, PARSE)),
    ("UTF-16", '{"id":1,"method":"x"}'.encode("utf-16"), (None, PARSE)),
    ("a NUL byte", b'{"id":1,"method":"\x00"}', (None, PARSE)),
    ("an answer that nobody asked for", line(id=99, result={}), SILENCE),
    ("an error that nobody asked for", line(id="99", error={"code": 1, "message": "m"}), SILENCE),
    ("an answer to null", line(id=None, result=None), SILENCE),
    ("an answer with an impossible id", line(id=[], result={}), SILENCE),
    ("an unknown notification", line(method="nobody/knows"), SILENCE),
    ("a notification with positional params", line(method="session/cancel", params=[1]), SILENCE),
    ("a cancel of nothing", line(method="$/cancel_request", params={"requestId": 5}), SILENCE),
    ("a cancel without params", line(method="session/cancel"), SILENCE),
    ("a boolean id", request(True), (None, INVALID)),
    ("a fractional id", request(1.5), (None, INVALID)),
    ("an object as id", request({}), (None, INVALID)),
    ("a list as id", request([]), (None, INVALID)),
    ("positional params", request(9, params=[1]), (9, PARAMS)),
    ("params that are a text", request(10, params="text"), (10, INVALID)),
]
# requests: answered as any unknown method is, before initialize as any other request is
REQUESTS = [
    ("a number as id", request(1), 1),
    ("a negative id", request(-1), -1),
    ("a big id", request(2**63), 2**63),
    ("a text as id", request("1"), "1"),
    ("an empty id", request(""), ""),
    ("null as id", request(None), None),
    ("an id in another script", request("ключ"), "ключ"),
    ("line separators in an id", request("a\u2028b\u2029c\u0085d"), "a\u2028b\u2029c\u0085d"),
    ("a lone surrogate", b'{"id":"\\ud800!","method":"nobody/knows"}', "\ufffd!"),
    ("without jsonrpc", b'{"id":2,"method":"nobody/knows"}', 2),
    ("null params", b'{"id":3,"method":"nobody/knows","params":null}', 3),
    ("CRLF behind it", request(4) + b"\r", 4),
    ("a BOM before it", b"\xef\xbb\xbf" + request(5), 5),
    ("70 KB", request(6, params={"text": "x" * 70_000}), 6),
    ("an extension method", request(7, method="_nobody/knows"), 7),
]


async def answers_to(editor, row, number):
    """The (id, code) of what is answered to a line before the answer to a request behind it."""
    since = len(editor.entries)
    await editor.send_line(row)
    await editor.send_line(request(f"behind {number}"))
    await editor.answer(f"behind {number}", since=since)
    if row[-2:-1] == b"}" or row.endswith(b"}"):
        # requests are handled in tasks: the answer may come just behind, and is behind nothing any more after this
        await editor.send_line(request(f"far behind {number}"))
        await editor.answer(f"far behind {number}", since=since)
    frames = [entry.frame for entry in editor.entries[since:] if entry.sender == "agent"]
    return [
        (frame["id"], frame["error"]["code"])
        for frame in frames
        if not str(frame["id"]).startswith(("behind", "far behind"))
    ]


@pytest.mark.parametrize("initialized", [False, True])
async def test_every_line_gets_its_one_answer_and_the_loop_lives_on(tmp_path, initialized):
    async with agent(agent_home(tmp_path), conversation=False) as editor:
        if initialized:
            await editor.initialize()
        unknown = UNKNOWN if initialized else INVALID
        rows = GARBAGE + [(name, row, (request_id, unknown)) for name, row, request_id in REQUESTS]
        for number, (name, row, expected) in enumerate(rows):
            got = await answers_to(editor, row, number)
            assert [(type(each[0]), *each) for each in got] == (
                [] if expected is None else [(type(expected[0]), *expected)]
            ), name
        await editor.initialize()
        await editor.new_session()
    assert b"\xe2\x80\xa8" not in editor.raw_out
    assert b"\\u2028" in editor.raw_out
    assert "ключ".encode() in editor.raw_out


FIRST = [
    "blank",
    "BOM alone",
    "batch",
    "half an object",
    "100,000 deep",
    "70 KB of garbage",
    "65 MiB + 1",
    "invalid UTF-8",
]


@pytest.mark.parametrize("name", FIRST)
async def test_the_first_line_may_be_garbage_and_initialize_follows_in_one_piece(tmp_path, name):
    row, expected = next((row, expected) for each, row, expected in GARBAGE if each == name)
    async with agent(agent_home(tmp_path), conversation=False) as editor:
        hello = request(1, "initialize", params={"protocolVersion": 1})
        await editor.send_raw(row + b"\n" + hello + b"\n")
        answer = await editor.answer(1)
        assert answer["result"]["protocolVersion"] == 1
        before = editor.frames[: editor.frames.index(answer)]
    assert [(frame["id"], frame["error"]["code"]) for frame in before] == ([] if expected is None else [expected])


async def test_initialize_may_come_byte_by_byte_and_glued_to_what_follows(tmp_path):
    home = agent_home(tmp_path)
    hello = request(1, "initialize", params={"protocolVersion": 1}) + b"\n"
    new = request(2, "session/new", params={"cwd": home.cwd, "mcpServers": []}) + b"\n"
    async with agent(home, conversation=False) as editor:
        for byte in hello:
            await editor.send_raw(bytes([byte]))
        assert "result" in await editor.answer(1)
        await editor.send_raw(new)
        assert "sessionId" in (await editor.answer(2))["result"]
    async with agent(home, conversation=False) as editor:
        await editor.send_raw(hello + new + b'{"jsonrpc":"2.0","id":3,"meth')
        assert "sessionId" in (await editor.answer(2))["result"]
        await editor.send_raw(b'od":"nobody/knows"}\n')
        assert (await editor.answer(3))["error"]["code"] == UNKNOWN


SPELT = [
    (request(None, "initialize", params={"protocolVersion": 1}), None),
    (request("ключ", "initialize", params={"protocolVersion": 1}), "ключ"),
    (request(1, "initialize", params={"protocolVersion": "0.9"}), 1),
    (request(2, "initialize", params={"protocolVersion": 2.0, "clientCapabilities": None}), 2),
    (request(3, "initialize", params={"protocolVersion": 70, "_meta": {"x": "y" * 70_000}}), 3),
    (b"\xef\xbb\xbf" + request(4, "initialize", params={"protocolVersion": 1}) + b"\r", 4),
]


@pytest.mark.parametrize("first", [0, 2, 4])
async def test_initialize_is_answered_however_it_is_spelt_and_however_often(tmp_path, first):
    async with agent(agent_home(tmp_path), conversation=False) as editor:
        for hello, request_id in SPELT[first:] + SPELT[:first]:
            await editor.send_line(hello)
            assert (await editor.answer(request_id))["result"]["protocolVersion"] == 1
        assert len(editor.frames) == len(SPELT)
        await editor.new_session()


REFUSED = [
    (b"{}", PARAMS),
    (b"null", PARAMS),
    (b'{"protocolVersion":null}', PARAMS),
    (b'{"protocolVersion":true}', PARAMS),
    (b'{"protocolVersion":1.5}', PARAMS),
    (b'{"protocolVersion":[1]}', PARAMS),
    (b'{"protocolVersion":{}}', PARAMS),
    (b"[1]", PARAMS),
    (b'{"protocolVersion":1,"_meta":NaN}', PARSE),
    (b'{"protocolVersion":1,"_meta":' + b"[" * 200 + b"]" * 200 + b"}", PARSE),
]


@pytest.mark.parametrize("first", [0, 8, 9])
async def test_an_initialize_that_cannot_be_answered_is_refused_and_may_be_sent_again(tmp_path, first):
    async with agent(agent_home(tmp_path), conversation=False) as editor:
        for params, code in REFUSED[first:] + REFUSED[:first]:
            since = len(editor.entries)
            await editor.send_raw(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + params + b"}\n")
            answer = await editor.until(lambda _: True, since=since)
            assert (answer["id"], answer["error"]["code"]) == (1 if code == PARAMS else None, code), params
        await editor.send_line(request(2, "session/new", params={"cwd": "/"}))
        assert (await editor.answer(2))["error"]["code"] == INVALID
        await editor.initialize()
        await editor.new_session()


async def test_a_known_notification_with_an_id_is_answered_with_an_empty_object(tmp_path):
    async with agent(agent_home(tmp_path), conversation=False) as editor:
        await editor.initialize()
        session = await editor.new_session()
        await editor.send_line(request("n", "session/cancel", params={"sessionId": session}))
        assert (await editor.answer("n"))["result"] == {}


async def test_a_flood_of_garbage_is_answered_in_full_and_logged_in_part(tmp_path):
    home = agent_home(tmp_path)
    async with agent(home, conversation=False) as editor:
        await editor.initialize()
        await editor.send_raw(b"garbage\n" * 20_000)
        await editor.send_line(request("behind"))
        await editor.answer("behind")
    assert len(editor.frames) == 20_002
    assert 0 < editor.stderr.count("invalid_frame") < 20
