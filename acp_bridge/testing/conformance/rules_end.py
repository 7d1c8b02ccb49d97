"""The rules of the end: of the input, by a signal, by force; what is left then, and what is found again.

May not know: what a client does in a turn beyond the one prompt. Invariant: each check speaks about one rule, by its
id in the manifest.
"""

import contextlib
import signal
from collections.abc import Callable, Generator, Mapping

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.rules_cancel import SILENT
from acp_bridge.testing.conformance.stimulus import said, shell
from acp_bridge.testing.conformance.turns import (
    FOREVER,
    Check,
    begin,
    cards,
    gone,
    joined,
    load,
    needs_shell,
    opening,
    provoked,
    ran,
    require,
)
from acp_bridge.testing.conformance.verdicts import NotProvoked

END_SECONDS = 5.0
_SHOWN = ("agent_message_chunk", "agent_thought_chunk")


@contextlib.contextmanager
def idle(lab: Lab) -> Generator[LabAgent]:
    """An agent with a session and nothing to do."""
    with lab.agent() as agent:
        agent.new_session()
        yield agent


@contextlib.contextmanager
def in_a_stream(lab: Lab) -> Generator[LabAgent]:
    """An agent whose model has begun to speak."""
    with lab.agent() as agent:
        begin(lab, agent, agent.new_session(), SILENT).text()
        yield agent


@contextlib.contextmanager
def in_a_tool(lab: Lab) -> Generator[LabAgent]:
    """An agent whose command runs, with a child of its own."""
    started = lab.cwd / "started"
    started.unlink(missing_ok=True)
    needs_shell(lab)
    with lab.agent() as agent:
        command = f"sleep 300 & touch started; {FOREVER}"
        begin(lab, agent, agent.new_session(), shell(command)).file(started)
        yield agent


@contextlib.contextmanager
def in_a_question(lab: Lab) -> Generator[LabAgent]:
    """An agent that waits for a permission."""
    needs_shell(lab)
    with lab.agent(answers="never") as agent:
        begin(lab, agent, agent.new_session(), shell("echo never")).asked()
        yield agent


@contextlib.contextmanager
def in_a_load(lab: Lab) -> Generator[LabAgent]:
    """An agent that was just told to load a session."""
    with lab.agent() as agent:
        provoked(agent.advertises("loadSession"), "the agent does not load sessions")
        session = agent.new_session()
        ran(lab, agent, session, said(*["a long answer "] * 500))
        agent.request("session/load", opening(lab, session))
        yield agent


STAGES: Mapping[str, Callable[[Lab], contextlib.AbstractContextManager[LabAgent]]] = {
    "idle": idle,
    "in a stream": in_a_stream,
    "in a tool": in_a_tool,
    "while a permission is asked for": in_a_question,
    "in session/load": in_a_load,
}


def the_end_of_input_ends_it(lab: Lab) -> None:
    """END-01."""
    for name, stage in STAGES.items():
        # what cannot be made with this agent leaves the other stages to be tried
        with contextlib.suppress(NotProvoked), stage(lab) as agent:
            agent.close_stdin()
            code = agent.exit(END_SECONDS)
            require(code == 0, f"the input ended {name}: exit code {code}")


def nothing_survives_it(lab: Lab) -> None:
    """END-02."""
    ends: Mapping[str, Callable[[LabAgent], None]] = {
        "the end of input": LabAgent.close_stdin,
        "SIGTERM": lambda agent: agent.signal(signal.SIGTERM),
    }
    for name, end in ends.items():
        with in_a_tool(lab) as agent:
            children = agent.children()
            end(agent)
            agent.exit(END_SECONDS)
            left = gone(children, agent, seconds=2.0)
            require(not left, f"after {name} in a tool {len(left)} of {len(children)} child processes are alive")
    with lab.agent() as agent:
        session = agent.new_session()
        begin(lab, agent, session, {"stream": [{"text": ["a"]}, {"gate": "on"}, *[{"text": ["b"]}] * 50]}).text()
        agent.close_stdout()
        lab.model.release("on")
        agent.exit(min(END_SECONDS * 2, lab.seconds))
        require("Traceback" not in agent.stderr, "the client closed its end of stdout: a traceback on stderr")


def what_was_shown_is_kept(lab: Lab) -> None:
    """END-03."""
    with lab.agent() as agent:
        provoked(agent.advertises("loadSession"), "the agent does not load sessions")
        session = agent.new_session()
        ran(lab, agent, session, {"reasoning": ["thinking"], "text": ["first ", "answer"]})
        stream = {"stream": [{"text": ["second "]}, {"text": ["answer"]}, {"silence": True}]}
        turn = begin(lab, agent, session, shell("echo 1"), stream)
        turn.until(lambda _: "second answer" in turn.shown_text(), "second answer")
        agent.end_now()
        agent.exit(END_SECONDS)
        live = {kind: joined(agent.updates(session, kind)) for kind in _SHOWN}
        ids = cards(agent.updates(session)).keys()
    with lab.agent() as agent:
        replay = load(lab, agent, session)[1]
        for kind, text in live.items():
            kept = joined(update for update in replay if update["sessionUpdate"] == kind)
            require(text in kept, f"after SIGKILL session/load shows {kept!r} as {kind}; shown was {text!r}")
        require(ids <= cards(replay).keys(), "after SIGKILL session/load does not show every tool call")


CHECKS: dict[str, Check] = {
    "END-01": the_end_of_input_ends_it,
    "END-02": nothing_survives_it,
    "END-03": what_was_shown_is_kept,
}
