"""The checks of sections F to L and of the hostile client: green against a rich agent, red against wrong ones.

What our own agent provokes, and the rules that the broken agent's faults turn red, stand where the whole suite runs.
"""

import sys

import pytest

from acp_bridge.testing.conformance.manifest import RULES
from acp_bridge.testing.conformance.suite import all_checks, run_rule
from tests.support import puppet_agent
from tests.support.measuring import UNMEASURED
from tests.support.rich_rules import NEEDS_A_RICH_AGENT

BROKEN_AGENT = (sys.executable, "-m", "acp_bridge.testing.broken_agent", "--fault")
PUPPET = (sys.executable, "-S", puppet_agent.__file__)
BY_ID = {rule.id: rule for rule in RULES}
RED = {"broken", "warning"}

MODEL = """
import os, urllib.request
def ask_model():
    tool = {"function": {"name": "sh", "parameters": {"properties": {"command": {"type": "string"}}}}}
    body = json.dumps({"messages": [], "stream": True, "tools": [tool]}).encode()
    return urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
"""
# it has modes and commands, and no session after its end
FORGETFUL = f"""
{MODEL}
modes = {{"currentModeId": "a", "availableModes": [{{"id": "a", "name": "A"}}, {{"id": "b", "name": "B"}}]}}
def new(frame):
    reply(frame, {{"sessionId": "s", "modes": modes}})
    update("s", "available_commands_update", availableCommands=[{{"name": "help", "description": "helps"}}])
on["session/new"] = new
def set_mode(frame):
    update("s", "current_mode_update", currentModeId=frame["params"]["modeId"])
    reply(frame, {{}})
on["session/set_mode"] = set_mode
def prompt(frame):
    ask_model().read()
    reply(frame, {{"stopReason": "end_turn"}})
on["session/prompt"] = prompt
"""
# it takes no notice of a cancel
DEAF = """
def prompt(frame):
    session = frame["params"]["sessionId"]
    open("started", "w").close()
    update(session, "agent_message_chunk", content={"type": "text", "text": "x"})
    write({"id": 1, "method": "session/request_permission", "params": {"sessionId": session, "options": []}})
    on["session/cancel"] = lambda _: reply(frame, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
"""
PUPPETS = {
    "X-CANCEL-STREAM": DEAF,
    "X-CANCEL-TOOL": DEAF,
    "X-CANCEL-PERMISSION": DEAF,
    "X-CANCEL-BETWEEN": f"""
{MODEL}
import threading
def prompt(frame):
    ask_model().read()
    threading.Thread(target=ask_model, daemon=True).start()
    on["session/cancel"] = lambda _: reply(frame, {{"stopReason": "end_turn"}})
on["session/prompt"] = prompt
""",
    "X-EOF-PROMPT": 'on["session/prompt"] = lambda frame: sys.exit(3)',
    "X-PERM-OTHER-SESSION": """
def prompt(frame):
    if on.pop("asked", None):
        return
    on["asked"] = True
    params = {"sessionId": frame["params"]["sessionId"], "options": []}
    write({"id": 1, "method": "session/request_permission", "params": params})
on["session/prompt"] = prompt
""",
    "X-WIRE-SPLIT": 'on["session/prompt"] = lambda frame: fail(frame, -32603)',
    "X-WIRE-GLUED": 'on["session/new"] = lambda frame: reply(frame, {"sessionId": "the only one"})',
    "X-WIRE-OVERSIZE": """
def read():
    line = sys.stdin.buffer.readline(1_000_000)
    if len(line) in (0, 1_000_000):
        raise SystemExit(0)
    return json.loads(line)
""",
    "X-CAPS-ODD": """
start = on["initialize"]
on["initialize"] = lambda f: start(f) if f["params"].get("clientCapabilities") else fail(f, -32602)
""",
    "X-SLOW-READER": f"""
{MODEL}
def prompt(frame):
    ask_model().read()
    reply(frame, {{"stopReason": "end_turn"}})
on["session/prompt"] = prompt
""",
    "X-SLOW-END": f"""
{MODEL}
import signal
def prompt(frame):
    ask_model()
    while True:
        signal.pause()
on["session/prompt"] = prompt
""",
    # agents that are wrong in ways that the broken agent is not
    "UPD-06": f"""
{MODEL}
def prompt(frame):
    ask_model().read()
    update(frame["params"]["sessionId"], "usage_update", used=9999, size=10000)
    reply(frame, {{"stopReason": "end_turn"}})
on["session/prompt"] = prompt
""",
}


def result(rule_id, command, *, seconds=10.0):
    return run_rule(BY_ID[rule_id], all_checks()[rule_id], command, seconds=seconds, env=UNMEASURED)


# three of which ours has a part
@pytest.mark.parametrize(
    "rule_id",
    [*NEEDS_A_RICH_AGENT, "UPD-05", "TERM-03", "ELIC-01", "ELIC-03", "PERM-08", "MODE-02", "MCP-01", "MCP-04"],
)
def test_a_rich_agent_keeps(rule_id):
    found = result(rule_id, (*BROKEN_AGENT, "none"))
    assert (found.verdict, found.text) == ("ok", "")


@pytest.mark.parametrize("rule_id", ["MODE-01", "UPD-07"])
def test_an_agent_that_opens_no_session_again_is_held_to_what_it_shows_once(rule_id):
    found = result(rule_id, (*PUPPET, FORGETFUL))
    assert (found.verdict, found.text) == ("ok", "")


@pytest.mark.parametrize("rule_id", PUPPETS)
def test_a_rule_sees_an_agent_that_is_wrong_in_its_own_way(rule_id):
    assert result(rule_id, (*PUPPET, PUPPETS[rule_id]), seconds=1.0).verdict in RED


@pytest.mark.parametrize("rule_id", ["END-01", "CANCEL-01", "PERM-01", "X-CANCEL-TOOL", "FS-03", "MCP-01"])
def test_an_agent_that_never_calls_the_model_provokes_nothing(rule_id):
    assert result(rule_id, PUPPET).verdict in {"not-provoked", "ok"}
