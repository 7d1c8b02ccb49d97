"""The hostile client, second part: its bytes, its capabilities, its beginnings and ends, its slow reading.

May not know: tools beyond the one command. Invariant: `HOSTILE_RULES` and `CHECKS` have the same ids; whatever is
written here, a client that behaves is served behind it.
"""

from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab, initialize_params
from acp_bridge.testing.conformance.rule import Rule
from acp_bridge.testing.conformance.stimulus import Answer, said
from acp_bridge.testing.conformance.turns import (
    Check,
    begin,
    body_of,
    line,
    prompt_frame,
    require,
    shown,
    stop_reason,
)
from acp_bridge.testing.json_values import JsonObject, as_object

_OVERSIZE_BYTES = 70 << 20
_GLUED = 50
_END_SECONDS = 5.0
_QUIET_SECONDS = 0.2
_METHODS = (
    "session/new",
    "session/load",
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
    "authenticate",
)
_GARBAGE = (
    b"this is no JSON\n",
    b'{"jsonrpc":"2.0","id":1,"meth\n',
    b"\xff\xfe\x00\x80\n",
    b"\x1b[?25h\n",
    b"[]\n",
    b"42\n",
    b'"text"\n',
    b"\n\r\n",
    b'{"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","id":1.5,"method":"session/new","params":{}}\n',
    b'{"jsonrpc":"2.0","method":5}\n',
)


def frames_in_single_bytes(lab: Lab) -> None:
    """X-WIRE-SPLIT."""
    with lab.agent() as agent:
        session = agent.new_session()
        for byte in line(prompt_frame("split", session, "gruß an “alle” 🙂")):
            agent.write(bytes([byte]))
        frame = agent.response("split")
        require(stop_reason(frame), f"a frame in writes of one byte: {shown(body_of(frame))}")


def frames_in_one_write(lab: Lab) -> None:
    """X-WIRE-GLUED."""
    with lab.agent() as agent:
        params: JsonObject = {"cwd": str(lab.cwd), "mcpServers": []}
        ids = [f"glued-{number}" for number in range(_GLUED)]
        requests = [line({"id": each, "method": "session/new", "params": params}) for each in ids]
        agent.write(b"".join(requests))
        sessions = [(as_object(agent.response(each).get("result")) or {}).get("sessionId") for each in ids]
        require(None not in sessions, "not every one of 50 requests in one write was answered with a session")
        require(len(set(sessions)) == _GLUED, f"50 requests in one write made {len(set(sessions))} sessions")


def an_oversize_frame(lab: Lab) -> None:
    """X-WIRE-OVERSIZE."""
    with lab.agent() as agent:
        agent.write(b"x" * _OVERSIZE_BYTES + b"\n")
        _serves(lab, agent, f"a line of {_OVERSIZE_BYTES >> 20} MiB")


def garbage_between_frames(lab: Lab) -> None:
    """X-WIRE-GARBAGE."""
    with lab.agent() as agent:
        for garbage in _GARBAGE:
            agent.write(garbage)
        _serves(lab, agent, "lines that are no frames")


def a_deeply_nested_frame(lab: Lab) -> None:
    """X-WIRE-DEEP."""
    with lab.agent() as agent:
        agent.write(b'{"jsonrpc":"2.0","id":"deep","method":"session/new","params":' + b"[" * 100_000 + b"\n")
        nested = b"[" * 100_000 + b"]" * 100_000
        agent.write(b'{"jsonrpc":"2.0","id":"deep","method":"session/new","params":' + nested + b"}\n")
        _serves(lab, agent, "a frame of 100,000 levels")


def params_of_the_wrong_type(lab: Lab) -> None:
    """X-WIRE-PARAMS."""
    with lab.agent() as agent:
        for method in _METHODS:
            wrong: tuple[Any, ...] = (5, "x", [1], {"sessionId": 5, "cwd": 5, "prompt": 5})
            for number, params in enumerate(wrong):
                request_id = f"{method} {number}"
                agent.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
                frame = agent.response(request_id)
                require("error" in frame, f"{method} with params {shown(params)}: {shown(body_of(frame))}")
        _serves(lab, agent, "params of wrong types")


def odd_capabilities(lab: Lab) -> None:
    """X-CAPS-ODD."""
    odd: tuple[tuple[str, JsonObject], ...] = (
        ("no clientCapabilities", {}),
        ("clientCapabilities null", {"clientCapabilities": None}),
        (
            "members that are null or unknown",
            {
                "clientCapabilities": {
                    "fs": None,
                    "terminal": None,
                    "session": None,
                    "elicitation": None,
                    "_meta": None,
                    "future": {"x": [1]},
                }
            },
        ),
    )
    for name, part in odd:
        with lab.agent(initialize=False) as agent:
            agent.call("initialize", {"protocolVersion": 1, **part})
            _serves(lab, agent, name)


def the_input_ends_early(lab: Lab) -> None:
    """X-EOF-EARLY."""
    with lab.agent(initialize=False) as agent:
        _exits(agent, "before initialize")
    with lab.agent(initialize=False) as agent:
        agent.write(b'{"jsonrpc":"2.0","id":1,"method":"initi')
        _exits(agent, "in the middle of a frame")
    with lab.agent(initialize=False) as agent:
        agent.write(line({"id": "only", "method": "initialize", "params": initialize_params()}))
        _exits(agent, "right behind initialize")
        require("result" in agent.response("only"), "initialize with the end of the input behind it was not answered")


def the_input_ends_behind_a_prompt(lab: Lab) -> None:
    """X-EOF-PROMPT."""
    with lab.agent() as agent:
        agent.write(line(prompt_frame("last", agent.new_session(), "go")))
        _exits(agent, "right behind a prompt")


def _exits(agent: LabAgent, when: str) -> None:
    agent.close_stdin()
    code = agent.exit(_END_SECONDS)
    require(code == 0, f"the input ended {when}: exit code {code}")


def a_slow_reader_gets_everything(lab: Lab) -> None:
    """X-SLOW-READER."""
    pieces = [f"{number:0500} " for number in range(600)]
    with lab.agent() as agent:
        session = agent.new_session()
        agent.pause_reading()
        turn = begin(lab, agent, session, said(*pieces))
        lab.model.called(1)
        agent.quiet(_QUIET_SECONDS)
        agent.resume_reading()
        turn.completed()
        require(turn.shown_text() == "".join(pieces), "a client that reads slowly lost text, or got it out of order")


def a_client_that_reads_no_more(lab: Lab) -> None:
    """X-SLOW-END."""
    flood: Answer = {"stream": [*[{"text": ["x" * 1000]}] * 500, {"silence": True}]}
    with lab.agent() as agent:
        session = agent.new_session()
        agent.pause_reading()
        begin(lab, agent, session, flood)
        lab.model.called(1)
        agent.quiet(_QUIET_SECONDS)
        agent.close_stdin()
        agent.exit(min(_END_SECONDS * 2, lab.seconds))
        agent.kill()
        # an agent that leaves while nobody reads may have to cut its last line
        agent.noise.clear()


def requests_before_initialize(lab: Lab) -> None:
    """X-INIT-EARLY."""
    with lab.agent(initialize=False) as agent:
        for method in (*_METHODS, "nope/nope"):
            agent.send({"jsonrpc": "2.0", "id": method, "method": method, "params": {}})
            agent.response(method)
        since = len(agent.frames)
        agent.notify("session/cancel", {"sessionId": "none"})
        agent.notify("nope/nope", {})
        request_id = agent.request("initialize", initialize_params())
        agent.response(request_id)
        answers = [frame for frame in agent.frames[since:] if "method" not in frame and frame.get("id") != request_id]
        require(not answers, f"a notification before initialize was answered: {shown(answers)}")
        _serves(lab, agent, "requests before initialize")


def _serves(lab: Lab, agent: LabAgent, what: str) -> None:
    """A session and a prompt, as if nothing had been."""
    frame = begin(lab, agent, agent.new_session(), said("fine")).end()
    require(stop_reason(frame) == "end_turn", f"the prompt behind {what}: {shown(body_of(frame))}")


_RULES: tuple[tuple[Rule, Check], ...] = (
    (
        Rule("X-WIRE-SPLIT", "MUST", "transports stdio", "A frame may come in writes of one byte each."),
        frames_in_single_bytes,
    ),
    (Rule("X-WIRE-GLUED", "MUST", "transports stdio", "Many frames may come in one write."), frames_in_one_write),
    (
        Rule("X-WIRE-OVERSIZE", "CLIENT", "images, pasted logs", "A line of 70 MiB does not end the connection."),
        an_oversize_frame,
    ),
    (
        Rule("X-WIRE-GARBAGE", "CLIENT", "login shells", "Lines that are no frames do not end the connection."),
        garbage_between_frames,
    ),
    (
        Rule("X-WIRE-DEEP", "CLIENT", "jsonrpc", "A frame nested without end does not end the connection."),
        a_deeply_nested_frame,
    ),
    (
        Rule("X-WIRE-PARAMS", "MUST", "jsonrpc, schema", "Params of a wrong type are an error, and nothing worse."),
        params_of_the_wrong_type,
    ),
    (
        Rule("X-CAPS-ODD", "MUST", "initialization", "Capabilities that are absent, null or unknown do no harm."),
        odd_capabilities,
    ),
    (
        Rule("X-EOF-EARLY", "SHOULD", "transports", "The end of the input ends the process at once, however early."),
        the_input_ends_early,
    ),
    (
        Rule("X-EOF-PROMPT", "SHOULD", "transports", "The end of the input right behind a prompt ends the process."),
        the_input_ends_behind_a_prompt,
    ),
    (
        Rule("X-SLOW-READER", "CLIENT", "slow clients", "A client that reads slowly gets everything, in order."),
        a_slow_reader_gets_everything,
    ),
    (
        Rule("X-SLOW-END", "CLIENT", "slow clients", "A client that reads no more cannot keep the process alive."),
        a_client_that_reads_no_more,
    ),
    (
        Rule("X-INIT-EARLY", "CLIENT", "pipelining clients", "Before initialize requests are answered and do no harm."),
        requests_before_initialize,
    ),
)

HOSTILE_RULES: tuple[Rule, ...] = tuple(rule for rule, _ in _RULES)
CHECKS: dict[str, Check] = {rule.id: check for rule, check in _RULES}
