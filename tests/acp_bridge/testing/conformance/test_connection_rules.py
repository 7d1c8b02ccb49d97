"""The checks of sections A to E against agents that are wrong, or right, in ways that the broken agent is not."""

import sys

import pytest

from acp_bridge.testing.conformance.manifest import RULES
from acp_bridge.testing.conformance.suite import all_checks, run_rule
from tests.support import puppet_agent
from tests.support.measuring import UNMEASURED

PUPPET = (sys.executable, "-S", puppet_agent.__file__)
BY_ID = {rule.id: rule for rule in RULES}

LISTS = """
sessions = []
def new(frame):
    sessions.append({"sessionId": f"s{len(sessions)}", "cwd": frame["params"]["cwd"]})
    reply(frame, {"sessionId": sessions[-1]["sessionId"]})
on["session/new"] = new
def listed(frame):
    cwd = frame["params"].get("cwd")
    reply(frame, {"sessions": [row for row in sessions if cwd in (None, row["cwd"])]})
on["session/list"] = listed
def drop(frame):
    sessions[:] = [row for row in sessions if row["sessionId"] != frame["params"]["sessionId"]]
    reply(frame, {})
on["session/delete"] = drop
"""
CLOSES = """
held = []
def prompt(frame):
    if "first" not in on:
        on["first"] = reply(frame, {"stopReason": "end_turn"})
    elif not on.get("closed"):
        open("started", "w").close()
        update(frame["params"]["sessionId"], "agent_message_chunk", content={"type": "text", "text": "head"})
        held.append(frame)
    else:
        fail(frame, -32002)
def close(frame):
    on["closed"] = True
    while held:
        reply(held.pop(), {"stopReason": "cancelled"})
    reply(frame, {})
on["session/prompt"] = prompt
on["session/close"] = on["session/delete"] = close
"""
TOOL = """
def prompt(frame):
    session = frame["params"]["sessionId"]
    update(session, "tool_call", toolCallId="c", title="ls", status="completed")
    reply(frame, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
"""
REFUSES_RELATIVE = """
new = on["session/new"]
on["session/new"] = lambda f: new(f) if str(f["params"].get("cwd")).startswith("/") else fail(f, -32603)
"""
REFUSES_ROOTS = """
advertise(sessionCapabilities={"additionalDirectories": {}})
new = on["session/new"]
on["session/new"] = lambda f: fail(f, 1) if f["params"].get("additionalDirectories") == ["x"] else new(f)
"""
REFUSES_ODD_VERSIONS = """
start = on["initialize"]
on["initialize"] = lambda f: start(f) if type(f["params"]["protocolVersion"]) is int else fail(f, -32602)
"""
LOGS_OUT = """
advertise(auth={"logout": {}})
on["logout"] = lambda frame: reply(frame, {})
on["session/new"] = lambda frame: fail(frame, -32000)
"""
STATELESS = 'advertise(sessionCapabilities={"delete": {}, "close": {}, "list": {}})\n'


@pytest.mark.parametrize(
    ("rule_id", "code", "verdict", "text"),
    [
        # an agent that can do very little is held to little
        ("WIRE-14", "", "ok", ""),
        ("WIRE-12", TOOL, "ok", ""),
        ("NEW-01", "", "ok", ""),
        ("NEW-05", "", "ok", ""),
        ("NEW-06", "", "ok", ""),
        ("DEL-01", 'advertise(sessionCapabilities={"delete": {}})\n' + LISTS, "ok", ""),
        ("DEL-02", 'advertise(sessionCapabilities={"delete": {}})\n' + CLOSES, "ok", ""),
        ("CLOSE-02", STATELESS + CLOSES, "ok", ""),
        ("AUTH-03", "", "not-provoked", "no method"),
        ("AUTH-04", "", "not-provoked", "no method"),
        ("LOAD-08", "advertise(loadSession=True)", "not-provoked", "no mode or option"),
        # the right kind of answer, with an unusual code
        ("WIRE-07", 'on["nobody/knows"] = lambda frame: fail(frame, -32000)', "warning", "got the error -32000"),
        ("WIRE-08", "", "warning", "were answered 0 times"),
        ("AUTH-02", 'on["authenticate"] = lambda frame: fail(frame, -1)', "warning", "the error is -1"),
        (
            "NEW-03",
            REFUSES_RELATIVE,
            "warning",
            "got the error -32603",
        ),
        (
            "NEW-06",
            'on["session/new"] = lambda frame: fail(frame, -32602)',
            "warning",
            "not passed over",
        ),
        (
            "NEW-06",
            REFUSES_ROOTS,
            "warning",
            "got the error 1",
        ),
        (
            "LOAD-04",
            'advertise(loadSession=True)\non["session/load"] = lambda frame: fail(frame, -32603)',
            "warning",
            "got the error -32603",
        ),
        # what comes before an answer, and does not speak of it
        (
            "NEW-04",
            'new = on["session/new"]\non["session/new"] = lambda f: [write({"method": "_x", "params": {}}), new(f)]',
            "ok",
            "",
        ),
        # errors where a result is hoped for
        (
            "INIT-03",
            REFUSES_ODD_VERSIONS,
            "ok",
            "",
        ),
        ("AUTH-05", "", "not-provoked", "work without a credential"),
        (
            "AUTH-05",
            'on["session/new"] = lambda frame: fail(frame, -32000)',
            "warning",
            'does not say "Authentication required"',
        ),
        (
            "AUTH-06",
            LOGS_OUT,
            "ok",
            "",
        ),
        # no end of pages
        (
            "LIST-03",
            STATELESS + LISTS + 'on["session/list"] = lambda f: reply(f, {"sessions": [], "nextCursor": "more"})',
            "broken",
            "after 100 pages there is still a cursor",
        ),
    ],
)
def test_a_check_tells_little_agents_and_odd_ones_apart(rule_id, code, verdict, text):
    result = run_rule(BY_ID[rule_id], all_checks()[rule_id], [*PUPPET, code], seconds=5.0)
    assert (result.verdict, text in result.text) == (verdict, True), result.text


CORRECT = (sys.executable, "-m", "acp_bridge.testing.broken_agent", "--fault", "none")
OPTIONAL = "WIRE-10 WIRE-16 AUTH-06 NEW-05 NEW-06 LOAD-08 RES-01 LIST-01 LIST-02 LIST-03 LIST-04 LIST-05 "
OPTIONAL += "CLOSE-01 CLOSE-02 CLOSE-03 DEL-01 DEL-02"


@pytest.mark.parametrize("rule_id", OPTIONAL.split())
def test_an_agent_that_can_do_everything_keeps_the_optional_rules(rule_id):
    result = run_rule(BY_ID[rule_id], all_checks()[rule_id], CORRECT, env=UNMEASURED)
    assert (result.verdict, result.text) == ("ok", "")
