"""What a loop is, when it fires, what it says: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.loops.domain import (
    MAX_MS,
    Created,
    Deleted,
    Dispatched,
    LoopFold,
    LoopInputError,
    LoopLogError,
    LoopRecord,
    earliest,
    heartbeat,
    new_record,
    next_occurrence,
    parse_change,
    to_data,
)

A = LoopRecord("loop_a", "look", 60, 61_000)
B = LoopRecord("loop_b", "listen", 60, 61_000)


def created(**changes):
    return {"version": 1, "operation": "create", "loop": {**A.to_json(), **changes}}


def test_a_loop_first_fires_after_one_interval():
    assert new_record("loop_a", "  look\n", 60, now_ms=1_000) == A
    assert new_record("loop_a", "look", 60.0, now_ms=1_000) == A


@pytest.mark.parametrize("seconds", [0, -1, 0.5, 1.5, float("inf"), float("nan"), 2**53, 10**400])
def test_an_interval_is_a_positive_whole_number_that_time_can_hold(seconds):
    with pytest.raises(LoopInputError):
        new_record("loop_a", "look", seconds, now_ms=1_000)


def test_the_last_moment_that_can_be_written_is_a_moment():
    assert new_record("loop_a", "look", 1, now_ms=MAX_MS - 1000).next_at == MAX_MS
    with pytest.raises(LoopInputError):
        new_record("loop_a", "look", 1, now_ms=MAX_MS - 999)


@pytest.mark.parametrize("prompt", ["", " \n\t"])
def test_a_prompt_says_something(prompt):
    with pytest.raises(LoopInputError, match="blank"):
        new_record("loop_a", prompt, 60, now_ms=0)


def test_a_view_tells_how_the_loop_stands():
    assert A.view(60_999) == {
        "id": "loop_a",
        "prompt": "look",
        "time_in_seconds": 60,
        "next_at": 61_000,
        "state": "scheduled",
        "delivery_mode": "session-local",
    }
    assert A.view(61_000)["state"] == "overdue"


@pytest.mark.parametrize("change", [Created(A), Deleted("loop_a"), Dispatched("loop_a", 121_000)])
def test_a_change_is_read_as_it_was_written(change):
    assert parse_change(to_data(change)) == change


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"version": 2, "operation": "delete", "id": "loop_a"},
        {"version": True, "operation": "delete", "id": "loop_a"},
        {"version": 1, "operation": "pause", "id": "loop_a"},
        {"version": 1, "operation": ["delete"], "id": "loop_a"},
        {"version": 1, "operation": "delete"},
        {"version": 1, "operation": "delete", "id": "loop_a", "why": "?"},
        {"version": 1, "operation": "delete", "id": 1},
        {"version": 1, "operation": "delete", "id": " "},
        {"version": 1, "operation": "dispatch", "id": "loop_a", "next_at": "soon"},
        {"version": 1, "operation": "dispatch", "id": "loop_a", "next_at": 1.5},
        {"version": 1, "operation": "create", "loop": "loop_a"},
        created(state="overdue"),
        created(prompt="  "),
        created(prompt=" look"),
        created(prompt=None),
        created(time_in_seconds=0),
        created(time_in_seconds=-1),
        created(time_in_seconds=True),
        created(next_at=2**53),
        created(id=""),
    ],
)
def test_what_is_not_a_change_is_refused(data):
    fold = LoopFold()
    with pytest.raises(LoopLogError):
        fold.feed(data)
    assert fold.active == ()


def test_the_fold_knows_the_active_loops_in_the_order_of_their_creation():
    fold = LoopFold()
    for change in (Created(B), Created(A), Dispatched("loop_b", 121_000)):
        fold.feed(to_data(change))
    assert [loop.id for loop in fold.active] == ["loop_b", "loop_a"]
    assert fold.get("loop_b") == LoopRecord("loop_b", "listen", 60, 121_000)
    fold.feed(to_data(Deleted("loop_b")))
    assert fold.active == (A,)
    assert fold.get("loop_b") is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Created(A), "created before"),
        (Created(LoopRecord("loop_gone", "look", 1, 1)), "created before"),
        (Deleted("loop_gone"), "not active"),
        (Dispatched("loop_gone", 121_000), "not active"),
        (Dispatched("loop_a", 61_000), "does not advance"),
        (Dispatched("loop_a", 60_000), "does not advance"),
    ],
)
def test_what_cannot_follow_is_refused_and_changes_nothing(change, why):
    fold = LoopFold()
    for before in (Created(A), Created(LoopRecord("loop_gone", "look", 1, 1)), Deleted("loop_gone")):
        fold.feed(to_data(before))
    with pytest.raises(LoopLogError, match=why):
        fold.feed(to_data(change))
    assert fold.active == (A,)


def test_of_two_at_the_same_time_the_one_that_was_created_first_is_next():
    assert earliest((A, B)) is A
    assert earliest((B, A)) is B
    assert earliest((A, LoopRecord("loop_c", "c", 1, 60_999))).id == "loop_c"
    assert earliest(()) is None


@pytest.mark.parametrize(
    ("now", "following"),
    [(61_000, 121_000), (61_001, 121_000), (120_999, 121_000), (121_000, 181_000), (86_461_000, 86_521_000)],
)
def test_the_next_occurrence_keeps_step_however_many_were_missed(now, following):
    assert next_occurrence(A, now) == following


def test_there_is_no_next_occurrence_at_the_end_of_time():
    with pytest.raises(LoopInputError):
        next_occurrence(LoopRecord("loop_a", "look", 60, MAX_MS - 1), MAX_MS)


@given(seconds=st.integers(1, 10**9), start=st.integers(0, 10**13), late=st.integers(0, 10**13))
def test_the_next_occurrence_is_the_first_multiple_after_now(seconds, start, late):
    loop = new_record("loop_a", "look", seconds, now_ms=start)
    now = loop.next_at + late
    following = next_occurrence(loop, now)
    assert now < following <= now + seconds * 1000
    assert (following - start) % (seconds * 1000) == 0


def test_a_heartbeat_is_four_lines_and_escaped():
    assert heartbeat(LoopRecord("loop_a", "is 1 < 2 & 3 > 2? </prompt>", 60, 1)).split("\n") == [
        "<heartbeat>",
        "  <loop_id>loop_a</loop_id>",
        "  <prompt>is 1 &lt; 2 &amp; 3 &gt; 2? &lt;/prompt&gt;</prompt>",
        "</heartbeat>",
    ]
