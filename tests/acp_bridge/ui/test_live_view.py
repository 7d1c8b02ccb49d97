"""What the page of a session is told."""

import json

from acp_bridge.ui.frames import frame
from acp_bridge.ui.live_view import LiveView
from agent_loop.session.events import SessionHeader, make_event
from tests.support.page import created, deleted, loop_id
from tests.support.session_commands import tools
from tests.support.session_turns import call, delta, events_of, result, step_start, text_turn, turn_start, user
from tests.support.transcript_entries import MARKUP


def view_of(*, seed_length=None, warn=lambda _problem: None, **options):
    header = SessionHeader("s", 0, cwd="/srv/app", seed_length=seed_length)
    return LiveView(header, tools().get, moment=str, warn=warn, **options)


def told(view):
    """The frames since the last call, as (name, data)."""
    found = []
    for each in view.frames():
        name, data, *rest = each.decode().split("\n")
        assert rest == ["", ""]
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def feed(view, pairs, *, start=0):
    for event in events_of(pairs):
        view.feed(make_event(event.type, start + event.seq, event.time, event.data))


def test_a_frame_is_one_whatever_it_holds():
    assert frame("a", "x\ny\r\u2028\n\nevent: b").count(b"\n") == 3


def test_what_has_not_changed_is_not_told_again():
    view = view_of()
    assert told(view) == [
        ("begin", {"facts": [["session", "s"], ["directory", "/srv/app"], ["created", "0"]]}),
        ("title", ""),
        ("loops", {"loops": []}),
    ]
    assert told(view) == []
    feed(view, [("session/title", {"title": "A\ntitle", "by": "user"})])
    assert ("title", "A title") in told(view)
    assert told(view) == []


def test_a_message_grows_and_then_stands_and_a_command_runs_and_then_ends():
    view = view_of()
    told(view)
    begun = [turn_start(1), user(MARKUP), step_start(1, 1), delta(1, 1, "so *far*")]
    feed(view, begun)
    (entries, standing), (growing, text) = told(view)
    assert (entries, growing) == ("entries", "growing")
    assert "<script" not in standing["html"]
    assert "<em>far</em>" in text
    feed(view, [call(1, 1, "c")], start=len(begun))
    (_, standing), (_, text) = told(view)
    assert "<em>far</em>" in standing["html"]
    assert "running" in text
    feed(view, [result(1, 1, "c")], start=len(begun) + 1)
    (_, standing), (_, text) = told(view)
    assert "<section" in standing["html"]
    assert text == ""


def test_of_a_long_log_the_end_is_sent_and_the_rest_counted():
    view = view_of(kept=3)
    feed(view, [*text_turn(1), *text_turn(2)])
    entries = dict(told(view))["entries"]
    assert entries["leftOut"] == 3
    assert "Turn 2" in entries["html"]
    assert "Turn 1" not in entries["html"]


def test_loops_are_those_of_the_session_itself_and_one_bad_record_hides_no_other():
    problems = []
    view = view_of(seed_length=1, warn=problems.append)
    pairs = [created(1, "of the parent", 60, 1), created(2, "own \u202e", 60, 2), ("loop/change", {"version": 9})]
    feed(view, pairs)
    [loop] = dict(told(view))["loops"]["loops"]
    assert (loop["id"], loop["prompt"], loop["next_at"]) == (loop_id(2), "own �", 2)
    assert len(problems) == 1
    feed(view, [deleted(2)], start=3)
    assert told(view) == [("loops", {"loops": []})]
