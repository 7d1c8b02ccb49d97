import pytest

from acp_bridge.testing.conformance.lab import Wire
from acp_bridge.testing.conformance.verdicts import SOFT
from acp_bridge.testing.conformance.wire_judges import judged, not_judged
from acp_bridge.testing.editor import Entry


def wire(*rows, noise=()):
    """Rows are (`>` client or `<` agent, frame)."""
    senders = {">": "client", "<": "agent"}
    entries = [Entry(senders[side], {"jsonrpc": "2.0", **frame}) for side, frame in rows]
    return Wire(tuple(entries), tuple(noise))


def findings(*rows, noise=()):
    return judged([wire(*rows, noise=noise)])


def ask(request_id, method, **params):
    return (">", {"id": request_id, "method": method, "params": params})


def answer(request_id, result):
    return ("<", {"id": request_id, "result": result})


def update(kind, session="s", **fields):
    body = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return ("<", {"method": "session/update", "params": body})


def card(kind, card_id="c", **fields):
    return update(kind, toolCallId=card_id, **({"title": "t"} if kind == "tool_call" else {}), **fields)


def permission(*options):
    rows = [{"optionId": option_id, "name": "n", "kind": kind} for option_id, kind in options]
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": rows}
    return ("<", {"id": 1, "method": "session/request_permission", "params": params})


END = {"stopReason": "end_turn"}
PROMPT = ask(1, "session/prompt", sessionId="s", prompt=[])


def test_a_sound_conversation_breaks_nothing():
    assert (
        findings(
            ask("new", "session/new"),
            answer("new", {"sessionId": "s"}),
            (">", {"method": "session/cancel", "params": {"sessionId": "s"}}),
            PROMPT,
            card("tool_call", rawInput={}),
            permission(("a", "allow_once"), ("b", "reject_once"), ("c", "reject_always")),
            card("tool_call_update", status="in_progress", rawOutput=None),
            card("tool_call_update", status="completed", locations=[{"path": "/x", "line": 1}]),
            update("agent_message_chunk", content={"type": "text", "text": "done"}),
            update("usage_update", used=1, size=2),
            answer(1, END),
            # an id may come again once it was answered
            ask(1, "nobody/knows"),
            ("<", {"id": 1, "error": {"code": -32601, "message": "no"}}),
            ("<", {"id": None, "error": {"code": -32700, "message": "no", "data": {}}}),
        )
        == {}
    )


def test_lines_that_are_no_frames_are_found():
    assert "b'print'" in findings(noise=[b"print"])["WIRE-01"][0]


@pytest.mark.parametrize(
    "frame",
    [
        {"id": 1},
        {"result": {}},
        {"id": 1, "result": {}, "error": {}},
        {"id": 1, "method": "m", "result": {}},
        {"method": 5},
    ],
)
def test_frames_of_no_kind_are_found_and_judged_no_further(frame):
    assert findings(PROMPT, ("<", frame)).keys() == {"WIRE-03"}


def test_another_version_is_found():
    assert "without jsonrpc" in findings(("<", {"jsonrpc": "1.0", "method": "_x"}))["WIRE-03"][0]


def test_second_answers_are_found():
    assert "no open request" in findings(PROMPT, answer(1, END), answer(1, END))["WIRE-05"][0]


@pytest.mark.parametrize("error", [{"code": "1", "message": "no"}, {"code": 1}, {"code": True, "message": "x"}, 5])
def test_errors_without_code_or_message_are_found(error):
    found = findings(PROMPT, ("<", {"id": 1, "error": error}))
    assert "integer code" in found["WIRE-13"][0]


def test_null_data_and_a_null_result_are_soft_findings():
    data = findings(PROMPT, ("<", {"id": 1, "error": {"code": 1, "message": "no", "data": None}}))
    result = findings(ask(1, "x"), answer(1, None))
    assert data.keys() == result.keys() == {"WIRE-13"}
    assert data["WIRE-13"][0].startswith(f"{SOFT}the data of an error is null")
    assert result["WIRE-13"][0].startswith(f"{SOFT}a result is null")


def test_a_null_result_fits_no_definition():
    assert findings(ask(1, "session/load", sessionId="s"), answer(1, None)).keys() == {"WIRE-13", "WIRE-14"}


def test_frames_that_no_definition_fits_are_found_each_time_and_good_ones_are_looked_at_once():
    bad = [update("plan", entries=5), update("plan", entries=5, n=1)]
    found = findings(*bad)["WIRE-14"]
    assert any("SessionNotification" in line for line in found)
    assert findings(*bad)["WIRE-14"] == found
    chunks = [update("agent_message_chunk", content={"type": "text", "text": text}) for text in ("One", "Two")]
    assert findings(*chunks) == {}


def test_results_are_held_against_the_request_that_they_answer():
    assert "WIRE-14" in findings(ask(1, "session/new"), answer(1, {"sessionId": 5}))
    assert findings(ask(1, "_vendor/x"), answer(1, {"any": [1.5, True]})) == {}


def test_relative_paths_are_found_and_what_tools_were_given_is_not_looked_at():
    found = findings(
        card("tool_call", locations=[{"path": "here"}], rawInput={"path": "free"}),
        card("tool_call_update", content=[{"type": "diff", "path": "there", "newText": "x"}]),
        ask(1, "session/list"),
        answer(1, {"sessions": [{"sessionId": "s", "cwd": ".", "additionalDirectories": ["x", "/y"]}]}),
    )
    assert [line.split(" is ")[0] for line in found["WIRE-15"]] == [
        "path 'here'",
        "path 'there'",
        "cwd '.'",
        "additionalDirectories 'x'",
    ]


def test_empty_chunks_are_found():
    assert "UPD-03" in findings(update("agent_thought_chunk", content={"type": "text", "text": ""}))


def test_a_context_without_size_is_found():
    assert "UPD-06" in findings(update("usage_update", used=1, size=0))


def test_cards_are_announced_once_and_before_their_updates():
    assert "before it was announced" in findings(card("tool_call_update"))["TOOL-02"][0]
    assert "twice" in findings(card("tool_call"), card("tool_call"))["TOOL-02"][0]


def test_a_load_may_announce_a_card_again_once():
    load = ask("l", "session/load", sessionId="s")
    assert findings(card("tool_call"), load, card("tool_call"), card("tool_call_update")) == {}
    assert "TOOL-02" in findings(card("tool_call"), load, card("tool_call"), card("tool_call"))
    other = ask("l", "session/load", sessionId="other")
    assert "TOOL-02" in findings(card("tool_call"), other, card("tool_call"))


def test_a_status_that_goes_back_is_found_unless_a_load_came_between():
    rows = [card("tool_call", status="completed"), card("tool_call_update", status="pending")]
    assert "from completed back to pending" in findings(*rows)["TOOL-03"][0]
    assert findings(rows[0], ask("l", "session/load", sessionId="s"), card("tool_call", status="pending")) == {}


def test_a_card_that_is_open_when_its_prompt_is_answered_is_found():
    assert "still pending" in findings(PROMPT, card("tool_call"), answer(1, END))["TOOL-03"][0]


def test_open_cards_of_a_prompt_that_waits_are_no_finding():
    second = ask(2, "session/prompt", sessionId="s", prompt=[])
    assert findings(PROMPT, second, card("tool_call"), answer(1, END)) == {}


def test_odd_raw_values_and_quoted_commands_are_found():
    found = findings(card("tool_call", rawInput="ls"), card("tool_call_update", rawOutput=[1]))
    assert ["rawInput" in found["TOOL-05"][0], "rawOutput" in found["TOOL-05"][1]] == [True, True]
    body = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "`ls`", "kind": "execute"}
    quoted = {"method": "session/update", "params": {"sessionId": "s", "update": body}}
    assert "quoted" in findings(("<", quoted))["TOOL-05"][0]


def test_odd_permission_options_are_found():
    assert "PERM-01" in findings(permission())
    assert "PERM-01" in findings(permission(("a", "allow_once"), ("a", "reject_once")))
    assert "two options of one kind" in findings(permission(("a", "allow_once"), ("b", "allow_once")))["PERM-07"][0]
    assert "stands before" in findings(permission(("a", "reject_always"), ("b", "reject_once")))["PERM-07"][0]


def test_unknown_stop_reasons_are_found():
    assert "'done' is no stop reason" in findings(PROMPT, answer(1, {"stopReason": "done"}))["PROMPT-01"][0]


def test_a_rule_that_is_broken_a_thousand_times_is_told_a_few_times():
    found = judged([wire(noise=[b"%d" % number for number in range(1000)])] * 2)
    assert len(found["WIRE-01"]) == 5


def test_what_could_not_be_judged_is_named():
    assert all(isinstance(reason, str) for reason in not_judged())
