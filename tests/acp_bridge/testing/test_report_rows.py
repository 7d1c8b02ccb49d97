import pytest

from acp_bridge.testing.report_rows import Row, align, asked_methods, kind, line, stretches
from tests.support.report_runs import agent, client, said


def marks(rows):
    return [row.mark for row in rows]


def update(**fields):
    return {"method": "session/update", "params": {"sessionId": "s", "update": fields}}


def test_equal_transcripts_are_equal_rows():
    assert align([said("a"), said("b")], [said("a"), said("b")], {}) == [
        Row("same", said("a"), said("a")),
        Row("same", said("b"), said("b")),
    ]


def test_a_frame_too_many_and_one_too_few_do_not_shift_the_others():
    rows = align([said("a"), said("b"), said("c")], [said("a"), said("c"), said("d")], {})
    assert rows[1:] == [
        Row("missing", said("b"), None),
        Row("same", said("c"), said("c")),
        Row("extra", None, said("d")),
    ]


def test_frames_of_one_kind_are_paired_even_when_others_stand_between():
    old = [said("a"), update(sessionUpdate="tool_call", title="ls")]
    new = [said("b"), update(sessionUpdate="plan", entries=[]), update(sessionUpdate="tool_call", title="rm")]
    assert marks(align(old, new, {})) == ["changed", "extra", "changed"]


def test_results_of_different_requests_are_not_paired():
    old, new = [{"id": 1, "result": {}}], [{"id": 2, "result": {"a": 1}}]
    assert marks(align(old, new, {"1": "initialize", "2": "session/new"})) == ["missing", "extra"]
    assert marks(align(old, new, {})) == ["changed"]


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (said("x"), "agent_message_chunk"),
        ({"method": "session/update", "params": None}, "session/update"),
        ({"id": 3, "method": "session/request_permission"}, "session/request_permission"),
        ({"id": 1, "result": {}}, "result of initialize"),
        ({"id": 1, "error": {}}, "error of initialize"),
        ({"id": "1", "result": {}}, "result"),
        ({"error": {}}, "error"),
    ],
)
def test_the_kind_of_a_frame(frame, name):
    assert kind(frame, {"1": "initialize"}) == name


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (said("two\nlines"), '"two\\nlines"'),
        (said(5), "5"),
        (update(sessionUpdate="tool_call", title="ls", status="pending"), "ls · pending"),
        (update(sessionUpdate="tool_call_update", status="failed", content=[]), "failed"),
        (update(sessionUpdate="plan", entries=[]), '{"entries":[]}'),
        ({"id": 1, "method": "session/request_permission", "params": {"toolCall": {"title": "rm"}}}, "rm"),
        ({"id": 1, "result": {"stopReason": "end_turn"}}, '{"stopReason":"end_turn"}'),
        ({"id": 1, "result": None}, "{}"),
        ({"id": 1, "error": {"code": 1}}, '{"code":1}'),
        ({"method": "x", "params": [1]}, "[1]"),
        (said("y" * 500), '"' + "y" * 159 + "…"),
    ],
)
def test_the_line_of_a_frame(frame, shown):
    assert line(frame) == shown


def test_requests_are_told_apart_by_who_asked_and_by_the_type_of_the_id():
    wire = [client(0, id=1, method="initialize"), agent(0, id="1", method="x"), client(0, method="n"), agent(0, id=1)]
    assert asked_methods(wire, "client") == {"1": "initialize"}
    assert asked_methods(wire, "agent") == {'"1"': "x"}


def test_what_stands_near_a_difference_is_told_from_the_rest():
    rows = [Row("extra" if index == 4 else "same", None, {"n": index}) for index in range(9)]
    found = [(near, [row.found["n"] for row in part]) for near, part in stretches(rows, distance=2)]
    assert found == [(False, [0, 1]), (True, [2, 3, 4, 5, 6]), (False, [7, 8])]
    assert stretches([], distance=2) == []
    assert [near for near, _ in stretches(rows[:1], distance=2)] == [False]
