"""The hostile client, first part: cancels at every point, odd permission answers, two sessions.

May not know: frames that are no ACP. Invariant: `HOSTILE_RULES` and `CHECKS` have the same ids; both hold the second
part (`hostile_wire`), too.
"""

import time

from acp_bridge.testing.conformance import hostile_wire
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.rule import Rule
from acp_bridge.testing.conformance.rules_cancel import SILENT, head_held
from acp_bridge.testing.conformance.stimulus import gated, said, shell
from acp_bridge.testing.conformance.turns import (
    FOREVER,
    PERMISSION,
    Check,
    Turn,
    begin,
    body_of,
    is_settled,
    permit,
    require,
    shown,
    stop_reason,
)
from acp_bridge.testing.json_values import JsonObject

_ROUNDS = 20
_ROUND_SECONDS = 0.0005
_QUIET_SECONDS = 0.2
_HELD = f"touch started; {FOREVER}"


def cancel_before_the_first_token(lab: Lab) -> None:
    """X-CANCEL-HEAD."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), head_held("head"), said("fine"))
        lab.model.reached("head")
        _cancel(turn, "before the first token")
        _goes_on(lab, turn)


def cancel_in_a_stream(lab: Lab) -> None:
    """X-CANCEL-STREAM."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), SILENT, said("fine"))
        turn.text()
        _cancel(turn, "in a stream")
        _goes_on(lab, turn)


def cancel_in_a_tool(lab: Lab) -> None:
    """X-CANCEL-TOOL."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), shell(_HELD), said("fine"))
        turn.file(lab.cwd / "started")
        _cancel(turn, "in a tool")
        _goes_on(lab, turn)


def cancel_behind_a_tool(lab: Lab) -> None:
    """X-CANCEL-BETWEEN."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), shell("echo 1"), head_held("next"), said("fine"))
        lab.model.reached("next")
        _cancel(turn, "behind a tool, before the model's next answer")
        _goes_on(lab, turn)


def cancel_with_an_open_question(lab: Lab) -> None:
    """X-CANCEL-PERMISSION."""
    with lab.agent(answers="never") as agent:
        turn = begin(lab, agent, agent.new_session(), shell("touch ran"), said("fine"))
        request = turn.asked()
        turn.cancel()
        # what the protocol asks of a client that cancels
        agent.send({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        turn.cancelled("with an open question, which the client then cancelled")
        require(not (lab.cwd / "ran").exists(), "the tool ran although its question was cancelled")
        _goes_on(lab, turn)


def cancel_twice(lab: Lab) -> None:
    """X-CANCEL-TWICE."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), SILENT, said("fine"))
        turn.text()
        turn.cancel()
        _cancel(turn, "twice")
        turn.cancel()
        _goes_on(lab, turn)


def cancel_races_with_completion(lab: Lab) -> None:
    """X-CANCEL-RACE."""
    with lab.agent() as agent:
        session = agent.new_session()
        turns: list[Turn] = []
        for number in range(_ROUNDS):
            turn = begin(lab, agent, session, said(*"words"))
            time.sleep(number * _ROUND_SECONDS)  # another moment of the race each time
            turn.cancel()
            frame = turn.end()
            got = stop_reason(frame)
            require(got in {"end_turn", "cancelled"}, f"a cancel raced with the end of a turn: {shown(body_of(frame))}")
            turns.append(turn)
        # one that has certainly lost the race
        turns[-1].cancel()
        _goes_on(lab, turns[-1])
        answers = [frame.get("id") for frame in agent.frames if "method" not in frame]
        counts = {turn.id: answers.count(turn.id) for turn in turns}
        require(set(counts.values()) == {1}, f"responses by prompt: {counts}")


def cancel_with_a_prompt_in_the_queue(lab: Lab) -> None:
    """X-CANCEL-QUEUE."""
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), SILENT)
        turn.text()
        second = begin(lab, agent, turn.session, said("fine"), said("fine"), said("fine"))
        turn.cancel()
        turn.cancelled("with a second prompt behind it")
        frame = second.end()
        require(is_settled(frame), f"a prompt behind a cancelled one: {shown(body_of(frame))}")
        _goes_on(lab, turn)


def _cancel(turn: Turn, when: str) -> None:
    turn.cancel()
    turn.cancelled(when)


def _goes_on(lab: Lab, turn: Turn) -> Turn:
    """The session is as good as before: one more turn, which is over."""
    another = begin(lab, turn.agent, turn.session, said("fine"))
    another.completed()
    return another


def a_question_answered_twice(lab: Lab) -> None:
    """X-PERM-TWICE."""
    with lab.agent(answers="never") as agent:
        turn = begin(lab, agent, agent.new_session(), shell("touch ran"), said("fine"))
        request = turn.asked()
        for kind in ("reject_once", "allow_once", "allow_once"):
            agent.send({"jsonrpc": "2.0", "id": request["id"], **permit(request, kind)})
        frame = turn.end()
        require(is_settled(frame), f"a question was answered no and then yes: {shown(body_of(frame))}")
        _goes_on(lab, turn)
        require(not (lab.cwd / "ran").exists(), "a question was answered no and then yes, and the tool ran")


def a_late_answer_is_dropped(lab: Lab) -> None:
    """X-PERM-LATE."""
    with lab.agent(answers="never") as agent:
        turn = begin(lab, agent, agent.new_session(), shell("touch ran"), said("fine"))
        request = turn.asked()
        _cancel(turn, "with an open question")
        since = len(agent.entries)
        agent.send({"jsonrpc": "2.0", "id": request["id"], **permit(request, "allow_once")})
        agent.send({"jsonrpc": "2.0", "id": "an id nobody used", **permit(request, "allow_once")})
        agent.quiet(_QUIET_SECONDS)
        # what comes of them has come when the next prompt is over
        after = _goes_on(lab, turn)
        answers = [
            frame for frame in agent.frames_since(since) if "method" not in frame and frame.get("id") != after.id
        ]
        require(not answers, f"a late answer was itself answered: {shown(answers)}")
        require(not (lab.cwd / "ran").exists(), "a late yes let the tool run")


def an_open_question_holds_one_session(lab: Lab) -> None:
    """X-PERM-OTHER-SESSION."""
    with lab.agent(answers="never") as agent:
        turn = begin(lab, agent, agent.new_session(), shell("touch ran"))
        turn.asked()
        frame = begin(lab, agent, agent.new_session(), said("fine")).end()
        got = stop_reason(frame)
        require(got == "end_turn", f"a prompt beside another session's open question: {shown(body_of(frame))}")
        _cancel(turn, "with an open question")


def a_cancel_holds_for_its_session(lab: Lab) -> None:
    """X-SESSIONS-CANCEL."""
    with lab.agent() as agent:
        first = begin(lab, agent, agent.new_session(), gated("one", "on", "two"))
        first.text()
        second = begin(lab, agent, agent.new_session(), SILENT)
        second.text()
        _cancel(second, "in one of two sessions")
        lab.model.release("on")
        first.completed()
        require(first.shown_text() == "onetwo", f"the other session was shown {first.shown_text()!r}")


def two_sessions_run_tools_at_once(lab: Lab) -> None:
    """X-SESSIONS-TOOLS."""
    with lab.agent() as agent:
        turns: dict[str, Turn] = {}
        for name in ("left", "right"):
            command = f"touch {name}; until [ -e both ]; do sleep 0.02; done; echo output-{name}"
            turns[name] = begin(lab, agent, agent.new_session(), shell(command))
            turns[name].file(lab.cwd / name)
        (lab.cwd / "both").touch()
        for name, turn in turns.items():
            turn.completed()
            other = "right" if name == "left" else "left"
            text = shown_fully(turn.updates())
            require(f"output-{other}" not in text, f"the updates of one session hold the output of the other: {name}")
        asked = [frame for frame in agent.frames if frame.get("method") == PERMISSION]
        strangers = {frame["params"].get("sessionId") for frame in asked} - {turn.session for turn in turns.values()}
        require(not strangers, f"questions of unknown sessions: {strangers}")


def shown_fully(updates: list[JsonObject]) -> str:
    """Updates as text."""
    return "".join(map(str, updates))


_RULES: tuple[tuple[Rule, Check], ...] = (
    (
        Rule("X-CANCEL-HEAD", "MUST", "prompt-turn", "A cancel before the model's first token ends as cancelled."),
        cancel_before_the_first_token,
    ),
    (
        Rule("X-CANCEL-STREAM", "MUST", "prompt-turn", "A cancel in the model's stream ends as cancelled."),
        cancel_in_a_stream,
    ),
    (Rule("X-CANCEL-TOOL", "MUST", "prompt-turn", "A cancel in a running tool ends as cancelled."), cancel_in_a_tool),
    (
        Rule(
            "X-CANCEL-BETWEEN", "MUST", "prompt-turn", "A cancel between a tool and the next answer is a cancel, too."
        ),
        cancel_behind_a_tool,
    ),
    (
        Rule("X-CANCEL-PERMISSION", "MUST", "prompt-turn", "A cancel with an open question: cancelled, and no effect."),
        cancel_with_an_open_question,
    ),
    (Rule("X-CANCEL-TWICE", "MUST", "prompt-turn", "Two cancels are one, and none is left for later."), cancel_twice),
    (
        Rule(
            "X-CANCEL-RACE", "MUST", "jsonrpc", "A cancel that races with the end of the turn: one answer, each time."
        ),
        cancel_races_with_completion,
    ),
    (
        Rule("X-CANCEL-QUEUE", "CLIENT", "v1 is silent", "A prompt behind a cancelled one comes to an end, too."),
        cancel_with_a_prompt_in_the_queue,
    ),
    (
        Rule("X-PERM-TWICE", "MUST", "jsonrpc", "The first answer to a question counts; a yes behind a no is nothing."),
        a_question_answered_twice,
    ),
    (
        Rule("X-PERM-LATE", "MUST", "jsonrpc", "An answer to a question that is over has no effect and no answer."),
        a_late_answer_is_dropped,
    ),
    (
        Rule("X-PERM-OTHER-SESSION", "CLIENT", "multi-window clients", "An open question holds its own session only."),
        an_open_question_holds_one_session,
    ),
    (
        Rule("X-SESSIONS-CANCEL", "MUST", "prompt-turn", "A cancel ends the turn of its own session only."),
        a_cancel_holds_for_its_session,
    ),
    (
        Rule("X-SESSIONS-TOOLS", "MUST", "schema:SessionNotification", "Tools of two sessions at once do not mix."),
        two_sessions_run_tools_at_once,
    ),
)

HOSTILE_RULES: tuple[Rule, ...] = (*(rule for rule, _ in _RULES), *hostile_wire.HOSTILE_RULES)
CHECKS: dict[str, Check] = {rule.id: check for rule, check in _RULES} | hostile_wire.CHECKS
