"""The wire under arbitrary bytes in arbitrary pieces."""

import json
import os
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_bridge.rpc.framing import FrameSplitter
from acp_bridge.rpc.json_text import decode, encode
from acp_bridge.rpc.messages import parse
from acp_bridge.rpc.peer import Peer
from acp_bridge.rpc.stdio import Stdio
from tests.support.recording_log import RecordingLog
from tests.support.wire_client import ScriptedDispatcher

IDS = ["0", "1", "-1", '"1"', '""', "null", "true", "1.0", "1.5", "{}", "[]", "1" * 5000]
METHODS = ['"echo"', '"nope"', '"$/cancel_request"', '"note"', "5", "null"]
PARAMS = ["null", "{}", '{"requestId":1}', '{"requestId":null}', "5", "[]", '{"a":"\\ud800"}', '{"a":NaN}', "[" * 300]
NOISE = [
    b"",
    b"\r",
    b"  ",
    b"[]",
    b"42",
    b'{"id":1',
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
    b"[" * 1000,
    b"\x1b[?25h",
    b"x" * 300,
]


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    members = [
        f'"{name}":{draw(st.sampled_from(values))}'
        for name, values in (
            ("id", IDS),
            ("method", METHODS),
            ("params", PARAMS),
            ("result", PARAMS),
            ("error", PARAMS),
        )
        if draw(st.booleans())
    ]
    return ("{" + ",".join(members) + "}").encode()


lines = st.one_of(messages(), st.sampled_from(NOISE), st.binary(max_size=20))
streams = st.builds(b"\n".join, st.lists(lines, max_size=12))


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


@given(stream=streams, cuts=st.lists(st.integers(0, 400), max_size=8), limit=st.integers(1, 50))
def test_a_stream_in_pieces_splits_like_the_same_stream_at_once(stream, cuts, limit):
    whole, cut = FrameSplitter(limit=limit), FrameSplitter(limit=limit)
    at_once = whole.feed(stream) + whole.finish()
    in_pieces = [event for piece in pieces_of(stream, cuts) for event in cut.feed(piece)] + cut.finish()
    assert in_pieces == at_once
    assert len(at_once) <= sum(1 for line in stream.split(b"\n") if len(line) > limit or not (line + b"\n").isspace())


@given(frame=st.one_of(lines, st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_bytes_parse_to_a_message(frame):
    parse(frame)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=10,
)


@given(value=json_values)
def test_what_is_written_is_one_line_of_strict_json_that_reads_back_to_itself(value):
    written = encode(value)
    assert len(written.decode("utf-8").splitlines()) == 1
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert encode(decode(written)) == written


async def conversation(pieces: list[bytes]) -> list[dict[str, object]]:
    """What the agent answers to the stream, until its own end."""
    agent_in, to_agent = os.pipe()
    from_agent, agent_out = os.pipe()
    dispatcher = ScriptedDispatcher()
    dispatcher.listeners["note"] = lambda _params: None
    peer = Peer(Stdio(agent_in, agent_out), before_write=lambda: None, log=RecordingLog(), max_frame=4000)

    async def write() -> None:
        for piece in pieces:
            os.write(to_agent, piece)
            await anyio.lowlevel.checkpoint()
        os.close(to_agent)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            await peer.serve(dispatcher)
    os.close(agent_out)
    with os.fdopen(from_agent, "rb") as output:
        answers = [json.loads(line) for line in output.read().split(b"\n")[:-1]]
    os.close(agent_in)
    return answers


@settings(max_examples=60, deadline=None)
@given(stream=streams, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_every_line_gets_at_most_one_answer_and_the_connection_outlives_them_all(stream, cuts):
    ping = b'\n{"id":"ping","method":"echo","params":{"ping":1}}\n'
    answers = anyio.run(conversation, [*pieces_of(stream, cuts), ping])
    assert {"jsonrpc": "2.0", "id": "ping", "result": {"ping": 1}} in answers
    lines_sent = [line for line in stream.split(b"\n") if line and not line.isspace()]
    assert len(answers) - 1 <= len(lines_sent)
    for answer in answers:
        assert ("result" in answer) != ("error" in answer)
