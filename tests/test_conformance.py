"""The conformance suite sees what it shall see: green with our agent, red with the broken one, rule by rule."""

import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acp_bridge.testing.broken_agent_faults import FAULTS
from acp_bridge.testing.conformance.manifest import RULES
from acp_bridge.testing.conformance.suite import all_checks, run_rule, run_suite, table
from acp_bridge.testing.conformance.verdicts import Result
from acp_bridge.testing.conformance.wire_judges import not_judged
from tests.support.agent_process import script
from tests.support.official import agent_command
from tests.support.rich_rules import NEEDS_A_RICH_AGENT

CHECKS = all_checks()
BY_ID = {rule.id: rule for rule in RULES}
RED = {"broken", "warning"}

# what our agent does not have: these rules find nothing to look at, or say so
NOT_IN_OURS = set(NEEDS_A_RICH_AGENT)
# what tests of the bridge show as well, in a fraction of the time
IN_PROCESS_TOO = {"WIRE-10", "LIST-01", "LIST-02", "LIST-04", "LIST-05", "CLOSE-01", "CLOSE-03", "DEL-01"}
IN_PROCESS_TOO |= {"LOAD-05", "MCP-04", "UPD-05", "TERM-03", "ELIC-01", "ELIC-03"}
# what has to be switched on: the setting under which a rule finds what it is about
SETTINGS_IN_OURS = {"TERM-02": 'terminal = "client"', "TERM-03": 'terminal = "client"'}

KNOWN_IN_SDK = {
    "WIRE-07": "the SDK answers an unknown method of an extension with null",
    "WIRE-08": "the SDK's connection ends at a line that is not UTF-8, or no object",
    "WIRE-13": "the SDK answers an unknown method of an extension with null",
    "X-WIRE-GARBAGE": "the SDK's connection ends at a line that is not UTF-8, or no object",
    "AUTH-02": "the SDK's stub of authenticate, which this agent does not replace, succeeds",
    "NEW-03": "the SDK's model refuses mcpServers of null",
    "CANCEL-06": "the SDK does not withdraw its requests",
    "X-SLOW-END": "the SDK writes out all it has before it ends, however long the client does not read",
    "MCP-01": "this agent has no MCP client",
    "END-02": "this agent ends at SIGTERM without a word to its commands, which are in groups of their own",
}
# what is quick and tells the most about it; the others are run in the long tests
SDK_SAMPLE = frozenset(
    (
        "WIRE-07",
        "WIRE-08",
        "WIRE-14",
        "WIRE-16",
        "INIT-06",
        "MCP-02",
        "PERM-08",
        "PROMPT-05",
        "PERM-04",
        "MCP-01",
        "X-CANCEL-TOOL",
    )
)

BROKEN = (sys.executable, "-m", "acp_bridge.testing.broken_agent")
# a rule that is run with each fault and stays green, unless the fault is about it: it has a turn, a tool, a question
WITNESSES = ("TOOL-02", "INIT-04")
SOURCES = Path(__file__).parents[1] / "acp_bridge" / "testing"


def long_unless(condition, *values):
    return pytest.param(*values, marks=() if condition else pytest.mark.long)


# other tests measure our agent: here it is started as a user starts it, which is faster
UNMEASURED = {name: "" for name in os.environ if name.startswith("COVERAGE_")}


def check(rule_id: str, command, *, seconds: float = 10.0, known=(), env=None) -> Result:
    return run_rule(BY_ID[rule_id], CHECKS[rule_id], command, seconds=seconds, known=known, env=env)


def red_ids(results) -> set[str]:
    return {row.id for row in results if row.verdict in RED}


@pytest.mark.parametrize(
    "rule_id",
    [long_unless(rule.id not in IN_PROCESS_TOO, rule.id) for rule in RULES],
)
def test_our_agent_keeps_the_rule(rule_id, tmp_path):
    env = UNMEASURED
    if rule_id in SETTINGS_IN_OURS:
        config = tmp_path / "config.toml"
        config.write_text(SETTINGS_IN_OURS[rule_id])
        env = env | {"DSH_CONFIG": str(config)}
    result = check(rule_id, agent_command(), env=env)
    expected = {"skipped", "not-provoked"} if rule_id in NOT_IN_OURS else {"ok"}
    assert result.verdict in expected, result.text
    assert not result.findings


@pytest.mark.parametrize("rule_id", [long_unless(rule.id in SDK_SAMPLE, rule.id) for rule in RULES])
def test_an_agent_on_the_official_sdk_keeps_the_rule_or_is_known_to_break_it(rule_id):
    result = check(rule_id, script("sdk_kit_agent.py"), known=KNOWN_IN_SDK, env=UNMEASURED)
    expected = {"known"} if rule_id in KNOWN_IN_SDK else {"ok", "skipped", "not-provoked"}
    # WIRE-13 is broken by the frames of other checks
    assert result.verdict in expected or rule_id == "WIRE-13", result.text
    assert result.findings.keys() <= KNOWN_IN_SDK.keys()


def expected_red(fault) -> set[str]:
    """What the fault breaks, as far as this machine can see it."""
    return set(FAULTS[fault].rules) - set(FAULTS[fault].schema_only if not_judged() else ())


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_turns_its_first_rule_red_and_no_other(fault):
    first = FAULTS[fault].rules[0]
    result = check(first, (*BROKEN, "--fault", fault), seconds=2.0)
    assert set(result.findings) <= expected_red(fault)
    if first not in expected_red(fault):
        pytest.skip("only the official schema tells: ACP_SCHEMA is not set")
    assert first in red_ids([result])


# all others, and with all rules: in the long tests
@pytest.mark.parametrize("fault", list(FAULTS)[::30])
def test_a_fault_leaves_the_other_rules_green(fault):
    witness = next(rule_id for rule_id in WITNESSES if rule_id not in FAULTS[fault].rules)
    result = check(witness, (*BROKEN, "--fault", fault), env=UNMEASURED)
    assert (result.verdict, result.findings.keys() - set(FAULTS[fault].rules)) == ("ok", set()), result.text


@functools.cache
def asked() -> Mapping[str, frozenset[str]]:
    """Rule → the faults that the broken agent looks for in its check, when it has none of them."""
    with tempfile.TemporaryDirectory() as notes:

        def run(rule) -> frozenset[str]:
            path = Path(notes, rule.id)
            path.touch()
            check(rule.id, script("asking_broken_agent.py"), env=UNMEASURED | {"ASKED": str(path)})
            return frozenset(path.read_text().split())

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(BY_ID, pool.map(run, RULES), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_turns_exactly_its_rules_red(fault):
    # the others cannot see it: what is not looked for changes nothing
    chosen = [rule_id for rule_id, faults in asked().items() if fault in faults or rule_id in FAULTS[fault].rules]
    # that of INIT-07 has no $ASKED in its empty environment
    chosen.append("INIT-07")
    command = (*BROKEN, "--fault", fault)
    results = run_suite(command, only=chosen, seconds=8.0, workers=1, env=UNMEASURED)
    red = red_ids(results)
    assert red == expected_red(fault), table([row for row in results if row.id in red ^ expected_red(fault)])


# for those that few agents provoke, the tests of the rules show it by default; this one ends it in its own way
@pytest.mark.parametrize("rule_id", [long_unless(rule.id == "END-02", rule.id) for rule in RULES])
def test_the_broken_agent_without_a_fault_keeps_the_rule(rule_id):
    result = check(rule_id, (*BROKEN, "--fault", "none"))
    assert (result.verdict, dict(result.findings)) == ("ok", {}), result.text


@pytest.mark.long
def test_all_faults_that_act_together_turn_all_their_rules_red():
    wanted = {rule_id for fault in FAULTS if not FAULTS[fault].alone for rule_id in expected_red(fault)}
    assert wanted - red_ids(run_suite(BROKEN, seconds=5.0, env=UNMEASURED)) == set()


def test_every_must_rule_has_a_fault_that_breaks_it():
    broken = {rule_id for fault in FAULTS.values() for rule_id in fault.rules}
    assert {rule.id for rule in RULES if not rule.id.startswith("X-")} - broken == set()


def test_every_fault_is_looked_for_in_the_agent_and_every_fault_looked_for_is_listed():
    text = "".join(path.read_text() for path in SOURCES.glob("broken_agent*.py") if path.stem != "broken_agent_faults")
    looked_for = re.findall(r'"([a-z0-9-]+)" (?:not )?in (?:self\.|card\.)?(?:_?session\.)?_?faults', text)
    assert set(looked_for) == set(FAULTS)


def test_the_list_names_every_fault_with_its_rules():
    lines = subprocess.run([*BROKEN, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(FAULTS)
    assert "WIRE-05" in next(line for line in lines if line.startswith("answers-twice"))


def test_the_list_ends_quietly_when_its_reader_has_gone():
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*BROKEN, "--list"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")
