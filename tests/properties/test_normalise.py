"""The normaliser of the snapshot tier is idempotent and never changes the type of a value."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_bridge.testing.json_values import JsonObject
from acp_bridge.testing.normalise import Masks, normalise_log, normalise_transcript

CWD, SPILL = "/tmp/acp-snapshot-x/cwd", "/tmp/acp-snapshot-x/home/spill"
IDS = ["0b1e6f0a-6d0f-4a53-9d61-3a8b6a3c0d11", "b9f3a0c2-12aa-4bbb-8ccc-0123456789ab"]
PIECES = [
    CWD,
    SPILL,
    *IDS,
    "7cf3a0c2-12aa-4bbb-8ccc-0123456789ab",
    "[still running in background: 12, 7 (sleep 3)]",
    "[3 processes survived: 1, 2, 3]",
    "{{cwd}}",
    "{{uuid1}}",
    "{{",
    "}}",
    "/",
    "-",
    " ",
    "a",
    "0",
    "sessionId",
]
texts = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
keys = st.sampled_from(["pid", "digest", "time", "createdAt", "seq", "id", "cwd", CWD, "text"])
scalars = st.none() | st.booleans() | st.integers(0, 10**6) | texts | st.sampled_from(["ab" * 32, "0" * 64])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


def masks() -> Masks:
    return Masks(cwd=CWD, session_ids=IDS, spill_root=SPILL)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value)


@given(values)
def test_masking_is_idempotent_and_keeps_types(value):
    masked = masks().value(value)
    assert masks().value(masked) == masked
    assert shape(masked) == shape(value)


@given(st.lists(st.dictionaries(keys, values, max_size=3), max_size=4), st.sampled_from([CWD, "/", None]))
def test_normalising_a_log_is_idempotent_and_leaves_seq_alone(rows, cwd):
    header: JsonObject = {
        "type": "session",
        "version": 1,
        "id": IDS[0],
        "createdAt": 17,
        **({"cwd": cwd} if cwd else {}),
    }
    log = [header, *({"type": "x", "seq": seq, "time": 3, "data": row} for seq, row in enumerate(rows))]
    once = normalise_log(log, spill_root=SPILL)
    assert normalise_log(once, spill_root=SPILL) == once
    assert [row["seq"] for row in once[1:]] == list(range(len(rows)))
    assert [row.get("time", 0) for row in once] == [0] * len(once)


def output(call: str, data: str, more: JsonObject) -> JsonObject:
    meta: JsonObject = {"terminal_output": {"terminal_id": call, "data": data}, **more}
    return update({"sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": meta})


def update(fields: JsonObject) -> JsonObject:
    return {"method": "session/update", "params": {"sessionId": IDS[0], "update": fields}}


ids = st.integers(0, 3) | st.sampled_from(["1", "x"])
calls = st.sampled_from(["t", "u"])
ends = calls.map(
    lambda call: update(
        {"sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": {"terminal_exit": {"terminal_id": call}}}
    )
)
frames = st.one_of(
    st.builds(lambda request, value: {"id": request, "result": {"v": value}}, st.integers(1, 9), values),
    st.builds(lambda request, value: {"id": request, "method": "ask", "params": {"v": value}}, ids, values),
    st.builds(lambda request: {"method": "$/cancel_request", "params": {"requestId": request}}, ids),
    st.builds(output, calls, texts, st.sampled_from([{}, {"tool_name": "bash"}])),
    ends,
)


@given(st.lists(frames, max_size=8))
def test_normalising_a_transcript_is_idempotent(transcript):
    once = normalise_transcript(transcript, masks())
    assert normalise_transcript(once, masks()) == once


@given(st.lists(st.tuples(calls, texts), max_size=6), st.data())
def test_where_terminal_output_was_cut_does_not_matter(pieces, data):
    cut: list[JsonObject] = []
    for call, text in pieces:
        at = data.draw(st.integers(0, len(text)))
        cut += [output(call, text[:at], {}), output(call, text[at:], {})]
    closing = [
        update(
            {"sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": {"terminal_exit": {"terminal_id": call}}}
        )
        for call in ("t", "u")
    ]
    whole = [output(call, text, {}) for call, text in pieces]
    assert normalise_transcript([*cut, *closing], masks()) == normalise_transcript([*whole, *closing], masks())
