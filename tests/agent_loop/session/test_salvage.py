"""What is kept of a damaged log (contract session-log.md §9), line by line."""

import pytest

from agent_loop.session.codec import decode_event, encode_event
from agent_loop.session.events import make_event
from agent_loop.session.salvage import LogSalvage
from tests.support.crash_facts import assert_well_formed, unanswered
from tests.support.session_turns import (
    answer,
    call,
    call_block,
    events_of,
    step_start,
    text,
    text_turn,
    tool_turn,
    turn_start,
    user,
)

PAIRS = [*text_turn(1), *tool_turn(2, "c"), *text_turn(3)]
LINES = [encode_event(event) for event in events_of(PAIRS)]
BAD = b"\0\0\0\n"
(START_2, USER_2, STEP_2, _, MESSAGE_2, CALL, RESULT, STEP_END_2, STEP_2_2, *_) = range(7, 19)
END_2, START_3 = 18, 19


class Salvaged:
    """The new log of damaged `lines` (the first is line 2 of the file), and what was taken out of it."""

    def __init__(self, lines, **options):
        self.lines = []
        self.rejected = []
        self.salvage = LogSalvage(
            self.lines.append, lambda entry, content: self.rejected.append((*entry, content)), **options
        )
        offset = 100
        for number, line in enumerate(lines, 2):
            self.salvage.feed(line, number, offset)
            offset += len(line)
        self.salvage.finish()
        self.events = [make_event(*decode_event(line)) for line in self.lines]
        assert assert_well_formed(self.events).open_turn is None
        assert unanswered(self.events) == []

    @property
    def what(self):
        return [what for _line, _offset, what, _content in self.rejected]

    def types(self, first=0, last=None):
        return [event.type for event in self.events[first:last]]


def without(*gone, bad=BAD):
    """The lines, with those of these numbers damaged."""
    return [bad if number in gone else line for number, line in enumerate(LINES)]


def test_whole_lines_stay_as_they_are_to_the_byte():
    strange = b'{"seq": 0, "type":"from/later","time":7,"data":[1e5],"more":true}\n'
    kept = Salvaged([strange, *[encode_event(event) for event in events_of([("x/y", None), *text_turn(1)])[1:]]])
    assert kept.lines[0] == strange
    assert Salvaged(LINES).lines == LINES
    assert Salvaged(LINES).rejected == []


def test_a_bad_line_goes_with_its_place_and_the_others_are_numbered_anew():
    kept = Salvaged(without(3))
    assert kept.rejected == [(5, 100 + len(b"".join(LINES[:3])), "it is no JSON", BAD)]
    assert [event.seq for event in kept.events] == list(range(len(LINES) - 1))
    assert [event.data for event in kept.events[3:]] == [decode_event(line).data for line in LINES[4:]]
    assert kept.lines[:3] == LINES[:3]
    assert kept.salvage.kept == len(LINES) - 1


@pytest.mark.parametrize("gone", [START_2, STEP_2, STEP_END_2, STEP_2_2, END_2, START_3])
def test_a_lost_beginning_or_end_is_put_back(gone):
    kept = Salvaged(without(gone))
    assert kept.what == ["it is no JSON"]
    assert kept.types() == [event_type for event_type, _data in PAIRS]
    assert [event.data.get("turn") for event in kept.events] == [data.get("turn") for _type, data in PAIRS]
    assert kept.events[gone].time == 1000 + max(gone - 1, 0)


def test_a_turn_whose_end_was_lost_was_interrupted():
    assert Salvaged(without(END_2)).events[END_2].data == {"turn": 2, "reason": {"kind": "interrupted"}}


def test_what_began_a_turn_is_told_by_its_first_message():
    pairs = [*text_turn(1)[1:]]
    pairs[0] = ("context/message", {"content": text("tick"), "source": {"kind": "plugin", "plugin": "loop"}})
    kept = Salvaged([BAD, *[encode_event(event) for event in events_of([turn_start(1), *pairs])[1:]]])
    assert kept.events[0].data["trigger"] == {"kind": "message", "source": {"kind": "plugin", "plugin": "loop"}}
    nobody = Salvaged(without(START_2, USER_2))
    assert nobody.events[START_2].data == {"turn": 2, "trigger": {"kind": "unknown"}}


def test_turns_behind_a_lost_one_are_numbered_anew_in_all_their_events():
    kept = Salvaged([*LINES[:7], BAD, *LINES[START_3:]])
    assert [event.data["turn"] for event in kept.events if "turn" in event.data] == [1] * 6 + [2] * 6
    assert kept.types() == [event_type for event_type, _data in [*text_turn(1), *text_turn(2)]]


def test_two_steps_of_which_the_border_was_lost_stay_two():
    assert Salvaged(without(STEP_END_2, STEP_2_2)).types(14, 16) == ["step/end", "step/start"]


def test_an_end_without_its_beginning_cannot_stay():
    kept = Salvaged([*LINES[:7], BAD, LINES[STEP_END_2], LINES[END_2], *LINES[START_3:]])
    assert kept.what == ["it is no JSON", "step 1 of turn 2 is not open", "turn 2 is not open"]


def test_a_result_whose_call_was_lost_gets_it_back_from_the_message():
    kept = Salvaged(without(CALL))
    assert kept.types() == [event_type for event_type, _data in PAIRS]
    assert kept.events[CALL].data == decode_event(LINES[CALL]).data
    assert kept.events[RESULT].data["content"] == text("done")


def test_a_result_whose_call_is_nowhere_cannot_stay():
    kept = Salvaged(without(MESSAGE_2, CALL))
    assert kept.what[-1] == "event 'tool/result' may not stand here: call 'c' was not logged in this step"
    assert "tool/result" not in kept.types()
    late = Salvaged([*LINES[:START_2], BAD, LINES[RESULT], *LINES[START_3:]])
    assert late.what[-1] == "its call 'c' was lost"


def test_a_call_whose_message_was_lost_is_answered_too():
    head = events_of([turn_start(1), step_start(1, 1), answer(1, 1, call_block("c")), call(1, 1, "c")])
    kept = Salvaged([encode_event(head[0]), encode_event(head[1]), BAD, encode_event(head[3])])
    assert kept.types(2) == ["tool/call", "tool/result", "step/end", "turn/end"]


def codes(kept):
    return [
        event.data["error"]["code"] for event in kept.events if event.type == "tool/result" and event.data["isError"]
    ]


def test_of_a_call_whose_records_may_be_lost_nobody_says_that_it_did_not_run():
    both = Salvaged(without(CALL, RESULT))
    assert codes(both) == ["tool-outcome-unknown"]
    assert "damaged" in both.events[RESULT].data["content"][0]["text"]
    assert codes(Salvaged(without(CALL, RESULT, STEP_END_2, STEP_2_2, 16, 17, 18))) == ["tool-outcome-unknown"]
    assert codes(Salvaged([*LINES[:CALL], *LINES[STEP_END_2:]])) == ["tool-outcome-unknown"], "lines vanished"
    # a step that nothing happened to is closed as after any crash
    crashed = [*without(3)[:CALL]]
    assert codes(Salvaged(crashed)) == ["tool-not-started"]
    assert codes(Salvaged([*crashed[:STEP_2], BAD, *crashed[STEP_2 + 1 :]])) == ["tool-outcome-unknown"]


def test_a_line_that_stands_twice_stays_once():
    kept = Salvaged([*LINES[:4], *LINES[2:4], *LINES[4:]])
    assert kept.lines == LINES
    assert kept.what == ["it repeats an earlier line"] * 2


def test_a_second_beginning_of_what_is_open_cannot_stay():
    again = [encode_event(make_event("turn/start", 90, 0, turn_start(1)[1]))]
    assert Salvaged([*LINES[:2], *again, *LINES[2:]]).what == ["turn 1 is open already"]
    again = [encode_event(make_event("step/start", 90, 0, step_start(1, 1)[1]))]
    assert Salvaged([*LINES[:4], *again, *LINES[4:]]).what == ["step 1 is open already"]


def test_a_wrong_number_is_told_once_and_its_event_stays():
    wrong = [*LINES]
    wrong[4] = LINES[4].replace(b'"seq":4', b'"seq":94')
    kept = Salvaged(wrong)
    assert kept.lines == LINES
    assert kept.rejected == [(6, 100 + len(b"".join(LINES[:4])), "its seq is 94, 4 was expected; it stays", b"")]


def test_lines_that_vanished_are_told():
    kept = Salvaged([*LINES[:3], *LINES[5:]])
    assert kept.what == ["its seq is 5, 3 was expected; it stays"]
    assert kept.salvage.kept == len(LINES) - 2


def test_records_that_share_a_line_are_told_and_all_stay():
    kept = Salvaged([*LINES[:3], LINES[3].rstrip() + LINES[4], *LINES[5:]])
    assert kept.lines == LINES
    assert kept.rejected == [
        (5, 100 + len(b"".join(LINES[:3])), "several records share this line; all of them stay", b"")
    ]


def test_the_record_behind_half_a_record_stays():
    kept = Salvaged([*LINES[:3], LINES[3][:30] + LINES[4], *LINES[5:]])
    assert kept.rejected == [(5, 100 + len(b"".join(LINES[:3])), "it is no JSON", LINES[3][:30])]
    assert kept.salvage.kept == len(LINES) - 1


def test_a_last_line_without_its_end_stays_when_it_is_whole():
    assert Salvaged([*LINES[:-1], LINES[-1].rstrip()]).lines == LINES
    torn = Salvaged([*LINES[:-1], LINES[-1][:20]])
    assert torn.rejected[-1][-1] == LINES[-1][:20]
    assert torn.events[-1].data["reason"] == {"kind": "interrupted"}


def test_events_that_are_no_part_of_a_turn_stay_wherever_they_stand():
    pairs = [("mode/change", {"modeId": "ask"}), *text_turn(1), ("from/later", [1]), *text_turn(2)]
    lines = [encode_event(event) for event in events_of(pairs)]
    kept = Salvaged([lines[0], BAD, *lines[2:]])
    assert kept.types() == [event_type for event_type, _data in pairs]


def test_a_steering_message_tells_of_its_turn():
    steering = "steering/message", {"turn": 1, "content": text("x"), "source": {"kind": "user"}}
    lines = [encode_event(event) for event in events_of([turn_start(1), steering, user("y")])]
    assert Salvaged([BAD, *lines[1:]]).types() == ["turn/start", "steering/message", "user/message", "turn/end"]


@pytest.mark.parametrize(
    ("gone", "range_before", "range_after"),
    [
        ((), (0, 6), (0, 6)),
        ((3,), (0, 6), (0, 5)),
        ((3, 4), (3, 4), (3, 2)),
        ((0,), (0, 6), (0, 6)),
        ((9,), (7, 18), (7, 18)),
    ],
)
def test_a_compaction_names_the_same_events_by_their_new_numbers(gone, range_before, range_after):
    first, last = range_before
    compacted = "history/compacted", {"fromSeq": first, "toSeq": last, "summary": "s"}
    lines = [*without(*gone), encode_event(make_event(compacted[0], len(LINES), 5000, compacted[1]))]
    event = Salvaged(lines).events[-1]
    assert (event.data["fromSeq"], event.data["toSeq"]) == range_after


def test_the_inherited_part_of_a_fork_is_counted_anew():
    assert Salvaged(without(3), seed_length=7).salvage.seed_kept == 6
    assert Salvaged(without(3), seed_length=7).salvage.first_time == 1000
    assert Salvaged(without(20)).salvage.seed_kept == 0


def test_nothing_is_made_of_nothing():
    empty = Salvaged([BAD, b"[]\n"])
    assert empty.events == []
    assert (empty.salvage.kept, empty.salvage.first_time) == (0, None)
