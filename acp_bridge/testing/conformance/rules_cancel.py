"""The rules of cancellation: session/cancel and `$/cancel_request`, whenever they come.

May not know: what a cancelled tool leaves behind in the workspace. Invariant: each check speaks about one rule, by its
id in the manifest.
"""

import contextlib
import time
from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import Answer, gated, said, shell
from acp_bridge.testing.conformance.turns import (
    FOREVER,
    TURN_UPDATES,
    Check,
    begin,
    body_of,
    cancel_frame,
    gone,
    is_settled,
    kind_of,
    line,
    needs_shell,
    opening,
    prompt_frame,
    provoked,
    require,
    should,
    shown,
    stop_reason,
)
from acp_bridge.testing.conformance.verdicts import Broken, NotProvoked
from acp_bridge.testing.editor import EditorError
from acp_bridge.testing.json_values import JsonObject, as_object

CANCEL_REQUEST = "$/cancel_request"
SILENT: Answer = {"stream": [{"text": ["partial"]}, {"silence": True}]}
_REQUEST_CANCELLED = -32800
_BUSY: Answer = {
    "status": 503,
    "headers": {"retry-after": "8"},
    "body": {"error": {"message": "overloaded", "type": "server_error"}},
}
_STUBBORN = "trap '' TERM; touch stubborn; while :; do sleep 0.05; done"
_QUIET_SECONDS = 0.25
_WITHDRAWN_SECONDS = 1.0


def head_held(gate: str) -> Answer:
    """An answer of which nothing comes before `gate` is opened."""
    return {"gate": gate, "text": ["late"]}


def cancel_gives_cancelled(lab: Lab) -> None:
    """CANCEL-01."""
    with lab.agent(answers="never") as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, head_held("head"))
        lab.model.reached("head")
        turn.cancel()
        turn.cancelled("before the first token")
        turn = begin(lab, agent, session, SILENT)
        turn.text()
        turn.cancel()
        turn.cancelled("in the model's stream")
        cancel_in_a_retry_wait(lab, agent, session)
    needs_shell(lab)
    with lab.agent(answers="never") as agent:
        turn = begin(lab, agent, agent.new_session(), shell("echo never"))
        with contextlib.suppress(NotProvoked):
            # many an agent runs this without asking
            turn.asked()
            turn.cancel()
            turn.cancelled("while a permission is asked for")
    with lab.agent() as agent:
        turn = begin(lab, agent, agent.new_session(), shell(f"touch started; {FOREVER}"))
        turn.file(lab.cwd / "started")
        turn.cancel()
        turn.cancelled("in a tool")


def cancel_in_a_retry_wait(lab: Lab, agent: LabAgent, session: str) -> None:
    """The model is overloaded; an agent that waits to try again is cancelled in that wait."""
    number = len(lab.model.requests)
    turn = begin(lab, agent, session, _BUSY)
    lab.model.called(number + 1)
    agent.quiet(0.05)
    turn.cancel()
    frame = turn.end()
    # one that does not try again has failed by then
    reason = stop_reason(frame)
    require("error" in frame or reason == "cancelled", f"session/cancel in a retry wait: {shown(body_of(frame))}")


def nothing_follows_a_cancelled_turn(lab: Lab) -> None:
    """CANCEL-02."""
    with lab.agent() as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, SILENT)
        turn.text()
        request = lab.model.requests[-1]
        turn.cancel()
        turn.cancelled("in the model's stream")
        has_left = lab.model.left(request, seconds=2.0)
        should(lab, has_left, "two seconds after the cancel the model's stream is still open")
        needs_shell(lab)
        turn = begin(lab, agent, session, shell(_STUBBORN))
        turn.file(lab.cwd / "stubborn")
        started = agent.children()
        turn.cancel()
        turn.cancelled("in a tool that ignores SIGTERM", seconds=15.0)
        left = gone(_commands(started), agent, seconds=10.0)
        should(lab, not left, f"ten seconds after the cancel processes of the tool are alive: {sorted(left)}")
        agent.quiet(_QUIET_SECONDS)
        frames = [entry.frame for entry in tuple(agent.entries)[turn.since :]]
        behind = frames[frames.index(turn.end()) :]
        late = [kind_of(frame) for frame in behind if kind_of(frame) in TURN_UPDATES]
        require(not late, f"after the cancelled prompt was answered came {late}")


def _commands(pids: set[int]) -> set[int]:
    """Those that run the tool; an agent may keep helpers of its own."""
    return {pid for pid in pids if b"stubborn" in command_line(pid)}


def command_line(pid: int) -> bytes:
    """The arguments of a process; empty when it has gone, or where there is no /proc."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def a_stray_cancel_does_no_harm(lab: Lab) -> None:
    """CANCEL-03."""
    with lab.agent() as agent:
        session, other = agent.new_session(), agent.new_session()
        agent.cancel(session)
        _runs(lab, agent, session, "a cancel when idle")
        turn = begin(lab, agent, session, SILENT)
        turn.text()
        turn.cancel()
        time.sleep(0.04)  # the second one shall find the first one at work
        turn.cancel()
        turn.cancelled("twice")
        _runs(lab, agent, session, "two cancels")
        turn = begin(lab, agent, session, gated("a", "on", "b"))
        turn.text()
        agent.cancel(other)
        agent.cancel("no-such-session")
        lab.model.release("on")
        turn.completed()
        lab.model.script(head_held("never"))
        agent.write(line(prompt_frame("both", session, "go")) + line(cancel_frame(session)))
        frame = agent.response("both")
        require(stop_reason(frame) == "cancelled", f"prompt and cancel in one write: {shown(body_of(frame))}")
        lab.model.release("never")  # the answer may be unused: the next prompt is to have it whole
    with lab.agent() as agent:
        session = agent.new_session()
        lab.model.script(*[said("fine")] * 2)
        agent.write(line(cancel_frame(session)) + line(prompt_frame("after", session, "go")))
        frame = agent.response("after")
        require(stop_reason(frame) == "end_turn", f"cancel and then prompt in one write: {shown(body_of(frame))}")


def _runs(lab: Lab, agent: LabAgent, session: str, what: str) -> None:
    frame = begin(lab, agent, session, said("fine")).end()
    require(stop_reason(frame) == "end_turn", f"the prompt after {what} got {shown(body_of(frame))}")


def a_request_can_be_cancelled(lab: Lab) -> None:
    """CANCEL-04."""
    with lab.agent() as agent:
        session = agent.new_session()
        strange: tuple[Any, ...] = (999, "x", None, {})
        for odd in strange:
            agent.notify(CANCEL_REQUEST, {"requestId": odd})
        turn = begin(lab, agent, session, SILENT)
        turn.text()
        agent.notify(CANCEL_REQUEST, {"requestId": turn.id})
        # an agent that does not know this notification goes on until it is told by session/cancel
        agent.quiet(0.1)
        turn.cancel()
        frame = turn.end()
        require(is_settled(frame), f"{CANCEL_REQUEST} for a prompt: {shown(body_of(frame))}")
        # whether or not the cancel above came in time, this one finds the session idle
        turn.cancel()
        _runs(lab, agent, session, CANCEL_REQUEST)
        agent.notify(CANCEL_REQUEST, {"requestId": turn.id})
        place: JsonObject = {"cwd": str(lab.cwd), "mcpServers": []}
        nothing: JsonObject = {}
        lists = [("session/list", nothing)] if agent.advertises("sessionCapabilities.list") else []
        loads = [("session/load", opening(lab, session))] if agent.advertises("loadSession") else []
        for method, params in (("session/new", place), *lists, *loads):
            _answered(agent, method, params)


def _answered(agent: LabAgent, method: str, params: JsonObject) -> None:
    request_id = agent.request(method, params)
    agent.notify(CANCEL_REQUEST, {"requestId": request_id})
    frame = agent.response(request_id)
    require("result" in frame or as_object(frame.get("error")), f"{CANCEL_REQUEST} for {method}: {shown(frame)}")


def a_queued_prompt_is_cancelled_alone(lab: Lab) -> None:
    """CANCEL-05."""
    with lab.agent() as agent:
        session = agent.new_session()
        first = begin(lab, agent, session, gated("a", "on", "b"), said("second"))
        first.text()
        second = begin(lab, agent, session, text="another")
        agent.quiet(0.05)
        provoked(not second.is_answered(), "the agent does not queue a second prompt")
        agent.notify(CANCEL_REQUEST, {"requestId": second.id})
        agent.quiet(0.1)
        lab.model.release("on")
        frame = second.end()
        require(is_settled(frame), f"{CANCEL_REQUEST} for a queued prompt: {shown(body_of(frame))}")
        first.completed()


def own_requests_are_withdrawn(lab: Lab) -> None:
    """CANCEL-06."""
    with lab.agent(answers="never") as agent:
        turn = begin(lab, agent, agent.new_session(), shell("echo never"))
        request = turn.asked()
        turn.cancel()
        turn.cancelled("while a permission is asked for")

        def withdraws(frame: JsonObject) -> bool:
            named = (as_object(frame.get("params")) or {}).get("requestId")
            return frame.get("method") == CANCEL_REQUEST and named == request["id"]

        try:
            # it may come behind the response
            agent.wait(withdraws, since=turn.since, what=CANCEL_REQUEST, seconds=_WITHDRAWN_SECONDS)
        except EditorError:
            raise Broken("the open permission request was not cancelled by $/cancel_request") from None


CHECKS: dict[str, Check] = {
    "CANCEL-01": cancel_gives_cancelled,
    "CANCEL-02": nothing_follows_a_cancelled_turn,
    "CANCEL-03": a_stray_cancel_does_no_harm,
    "CANCEL-04": a_request_can_be_cancelled,
    "CANCEL-05": a_queued_prompt_is_cancelled_alone,
    "CANCEL-06": own_requests_are_withdrawn,
}
