"""How the checks drive and read a turn."""

import sys

import pytest

from acp_bridge.testing.conformance.lab import laboratory
from acp_bridge.testing.conformance.turns import (
    Turn,
    begin,
    cards,
    commands,
    contents,
    gone,
    is_final,
    is_settled,
    load,
    needs_shell,
    permit,
    provoked,
    ran,
    replays,
    require,
    should,
    statuses,
    stop_reason,
)
from acp_bridge.testing.conformance.verdicts import Broken, NotProvoked
from tests.support import puppet_agent

PUPPET = (sys.executable, "-S", puppet_agent.__file__)
CALLS_THE_MODEL = """
import os, urllib.request
def prompt(frame):
    body = json.dumps({"messages": [], "stream": True, "tools": []}).encode()
    urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body).read()
    reply(frame, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
"""
ASKS = """
def prompt(frame):
    session = frame["params"]["sessionId"]
    write({"id": 1, "method": "session/request_permission", "params": {"sessionId": session, "options": []}})
    update(session, "tool_call", toolCallId="c", title="x")
    update(session, "agent_message_chunk", content={"type": "text", "text": "hi"})
    reply(frame, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
"""
HOLDS = """
def prompt(frame):
    on["session/cancel"] = lambda _: reply(frame, {"stopReason": "cancelled"})
on["session/prompt"] = prompt
"""
FAILS = 'on["session/prompt"] = lambda frame: fail(frame, -32603)'


def test_what_is_required_is_broken_and_what_is_needed_is_not_provoked():
    require(1, "fine")
    provoked([0], "fine")
    with pytest.raises(Broken, match="wrong"):
        require([], "wrong")
    with pytest.raises(NotProvoked, match="absent"):
        provoked(None, "absent")


def test_a_shortcoming_is_noted():
    with laboratory(PUPPET) as lab:
        should(lab, True, "fine")
        should(lab, False, "slow")
        assert lab.warnings == ["slow"]


def test_a_turn_shows_its_frames():
    with laboratory([*PUPPET, ASKS]) as lab, lab.agent() as agent:
        turn = ran(lab, agent, agent.new_session())
        turn.completed()
        assert turn.is_answered()
        assert turn.shown_text() == "hi"
        assert turn.cards() == {"c": [{"sessionUpdate": "tool_call", "toolCallId": "c", "title": "x"}]}
        assert turn.text()["params"]["update"]["content"]["text"] == "hi"
        assert turn.permissions() == [turn.asked()]
        assert len(turn.updates()) == 2


def test_a_wait_ends_with_the_response_as_not_provoked():
    with laboratory(PUPPET) as lab, lab.agent() as agent:
        turn = ran(lab, agent, agent.new_session())
        with pytest.raises(NotProvoked, match=r"answered with .*end_turn.* before any text"):
            turn.text()
        with pytest.raises(NotProvoked, match="before any permission request"):
            turn.asked()
        with pytest.raises(NotProvoked, match="the prompt was answered before its command made started"):
            turn.file(lab.cwd / "started")
        with pytest.raises(NotProvoked, match="no tool call was shown"):
            turn.cards()
        with pytest.raises(NotProvoked, match="the agent asked for no permission"):
            turn.permissions()


def test_a_cancelled_turn_ends_as_cancelled_and_no_other():
    with laboratory([*PUPPET, HOLDS]) as lab, lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session())
        with pytest.raises(NotProvoked, match="no command made started"):
            turn.file(lab.cwd / "started", seconds=0.05)
        assert not turn.is_answered()
        turn.cancel()
        turn.cancelled("at once")
        with pytest.raises(Broken, match=r"ended with .*cancelled.*, not end_turn"):
            turn.completed()


def test_an_error_is_no_end_of_a_turn():
    with laboratory([*PUPPET, FAILS]) as lab, lab.agent() as agent:
        with pytest.raises(Broken, match="the prompt was answered with"):
            ran(lab, agent, agent.new_session())
        turn = begin(lab, agent, agent.new_session())
        with pytest.raises(Broken, match="session/cancel in a tool: the prompt got"):
            turn.cancelled("in a tool")


def test_a_file_that_is_there_is_found():
    with laboratory(PUPPET) as lab, lab.agent() as agent:
        (lab.cwd / "started").touch()
        Turn(agent, "s", 99, 0).file(lab.cwd / "started")


def test_a_model_that_was_offered_no_shell_says_so_early():
    with laboratory([*PUPPET, CALLS_THE_MODEL]) as lab, lab.agent() as agent:
        needs_shell(lab)
        ran(lab, agent, agent.new_session())
        with pytest.raises(NotProvoked, match="no tool that runs commands is offered"):
            needs_shell(lab)


def test_an_agent_that_does_not_load_replays_nothing():
    with laboratory(PUPPET) as lab, lab.agent() as agent:
        assert replays(lab, agent, "s") == []
        with pytest.raises(NotProvoked, match="the agent does not load sessions"):
            load(lab, agent, "s")


def test_an_agent_that_has_ended_lists_no_commands():
    with laboratory(("true",)) as lab, lab.agent(initialize=False) as agent:
        assert commands(agent, "s") is None


def test_children_that_stay_are_told():
    code = "import subprocess; on['spawn'] = lambda _: (subprocess.Popen(['sleep', '60']), update('s', 'spawned'))"
    with laboratory([*PUPPET, code]) as lab, lab.agent() as agent:
        agent.notify("spawn", {})
        agent.wait_update("s", "spawned")
        children = agent.children()
        assert len(children) == 1
        assert gone(children, agent, seconds=0.03) == children
        assert gone({999_999_999}, agent, seconds=10.0) == set()


def test_the_last_status_of_a_card_counts():
    card = [
        {"sessionUpdate": "tool_call", "toolCallId": "c"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "t"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"},
    ]
    assert statuses(card) == ["pending", "completed"]
    assert is_final(card)
    assert not is_final(card[:2])
    assert not is_final([])
    assert cards([*card, {"sessionUpdate": "plan"}]) == {"c": card}


def test_content_blocks_are_found_by_type():
    diff = {"type": "diff", "path": "/f"}
    assert contents([{"content": [diff, {"type": "content"}]}, {"content": None}], "diff") == [diff]


def test_a_kind_that_was_not_offered_is_answered_with_cancelled():
    params = {"options": [{"kind": "allow_once", "optionId": "yes"}]}
    request = {"method": "session/request_permission", "params": params}
    assert permit(request, "allow_once") == {"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}
    assert permit(request, "reject_once") == {"result": {"outcome": {"outcome": "cancelled"}}}
    assert permit({"method": "fs/read_text_file"}, "allow_once")["error"]["code"] == -32601


def test_a_prompt_is_settled_by_an_error_or_a_stop_reason():
    assert is_settled({"error": {}})
    assert is_settled({"result": {"stopReason": "refusal"}})
    assert not is_settled({"result": {"stopReason": "done"}})
    assert not is_settled({"result": None})
    assert stop_reason({"error": {}}) is None
