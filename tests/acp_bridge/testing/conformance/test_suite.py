import json
import runpy
import sys

import pytest

from acp_bridge.testing.conformance import __main__
from acp_bridge.testing.conformance.__main__ import main
from acp_bridge.testing.conformance.rule import Rule
from acp_bridge.testing.conformance.stimulus import NO_TOOL
from acp_bridge.testing.conformance.suite import run_rule, run_suite, settle, table, to_json
from acp_bridge.testing.conformance.verdicts import SOFT, Broken, NotProvoked, Result
from acp_bridge.testing.conformance.wire_judges import not_judged
from tests.support import puppet_agent

PUPPET = (sys.executable, "-S", puppet_agent.__file__)
MUST = Rule("A-01", "MUST", "somewhere", "It does.")
SHOULD = Rule("A-02", "SHOULD", "somewhere", "It should.")
LINES = Rule("WIRE-01", "MUST", "transports", "Lines are frames.")


def passes(lab):
    with lab.agent():
        pass


def breaks(_lab):
    raise Broken("it does not")


def test_a_check_that_ends_is_ok():
    result = run_rule(MUST, passes, PUPPET)
    assert (result.id, result.strength, result.verdict, result.text, result.findings) == ("A-01", "MUST", "ok", "", {})
    assert result.seconds > 0


def test_what_breaks_a_must_is_broken_and_what_breaks_less_is_a_warning():
    assert (run_rule(MUST, breaks, PUPPET).verdict, run_rule(SHOULD, breaks, PUPPET).verdict) == ("broken", "warning")


def test_a_known_rule_is_known_only_while_it_is_broken():
    assert run_rule(MUST, breaks, PUPPET, known=["A-01"]).verdict == "known"
    assert run_rule(MUST, passes, PUPPET, known=["A-01"]).verdict == "ok"


def test_what_was_not_provoked_says_so():
    def never(_lab):
        raise NotProvoked("no tool")

    result = run_rule(MUST, never, PUPPET)
    assert (result.verdict, result.text) == ("not-provoked", "no tool")


def test_a_break_that_a_missing_tool_explains_is_not_provoked():
    def breaks_without_tool(lab):
        lab.model.unprovoked.append(NO_TOOL)
        raise Broken("nothing ran")

    assert run_rule(MUST, breaks_without_tool, PUPPET).verdict == "not-provoked"


def test_a_shortcoming_is_a_warning():
    def warns(lab):
        lab.warn("not quite")
        lab.warn("nor this")

    result = run_rule(MUST, warns, PUPPET)
    assert (result.verdict, result.text) == ("warning", "not quite\nnor this")


def test_an_agent_that_ends_breaks_the_rule_and_its_last_words_are_shown():
    result = run_rule(MUST, passes, [*PUPPET, 'sys.exit("no licence")'])
    assert result.verdict == "broken"
    assert "ended before its response to initialize" in result.text
    assert "no licence" in result.text


def test_an_answer_of_another_shape_breaks_the_rule_not_the_run():
    def reads(lab):
        with lab.agent() as agent:
            _ = agent.initialized["agentInfo"]["name"]

    result = run_rule(MUST, reads, PUPPET)
    assert result.verdict == "broken"
    assert "another shape: KeyError('agentInfo') at reads:" in result.text


def test_a_gate_that_is_not_advertised_skips_the_rule():
    gated = Rule("A-03", "MUST", "somewhere", "It loads.", "loadSession")
    result = run_rule(gated, breaks, PUPPET)
    assert (result.verdict, result.text) == ("skipped", "loadSession is not advertised")
    assert run_rule(gated, passes, [*PUPPET, "advertise(loadSession=True)"]).verdict == "ok"
    assert run_rule(gated, passes, ["false"]).verdict == "skipped"


NOISY = [*PUPPET, 'print("hello")\non["_x"] = lambda frame: fail(frame, 1, data=None)']


def test_the_frames_of_a_check_are_judged_with_it():
    result = run_rule(LINES, passes, NOISY)
    assert result.verdict == "broken"
    assert result.findings["WIRE-01"] == (result.text,)
    assert run_rule(MUST, passes, NOISY).verdict == "ok"


def test_a_soft_finding_is_a_warning_whatever_the_strength():
    def asks(lab):
        with lab.agent() as agent:
            agent.error("_x")

    result = run_rule(Rule("WIRE-13", "MUST", "jsonrpc", "Errors are whole."), asks, NOISY)
    assert result.verdict == "warning"
    assert result.text.startswith(SOFT)


def test_definitions_that_could_not_be_asked_are_named():
    result = run_rule(Rule("WIRE-14", "MUST", "schema", "Frames fit."), passes, PUPPET)
    assert result.verdict == "ok"
    assert result.text.splitlines() == [f"not checked: {reason}" for reason in not_judged()]


def test_settling_reports_under_a_rule_what_the_frames_of_others_broke():
    rows = [
        Result("WIRE-01", "MUST", "ok"),
        Result("NEW-01", "MUST", "ok", findings={"WIRE-01": ("a line",), "TOOL-02": ("a card",)}),
        Result("TOOL-02", "MUST", "broken", "seen before"),
        Result("TOOL-03", "SHOULD", "not-provoked", "no tool"),
        Result("NEW-02", "MUST", "ok", findings={"TOOL-03": ("a status",), "WIRE-13": ("an error",)}),
        Result("WIRE-13", "MUST", "warning", "a null", findings={"WIRE-13": (f"{SOFT}a null",)}),
        Result("WIRE-14", "MUST", "ok", "not checked: official schema"),
        Result("NEW-03", "MUST", "ok", findings={"WIRE-14": ("a shape",), "PERM-07": ("an order",)}),
        Result("PERM-07", "CLIENT", "warning", "seen before"),
    ]
    settled = settle(rows, known=["TOOL-03"])
    assert [(row.verdict, row.text) for row in settled] == [
        ("broken", "a line (in NEW-01)"),
        ("ok", ""),
        ("broken", "seen before"),
        ("known", "a status (in NEW-02)"),
        ("ok", ""),
        ("broken", f"an error (in NEW-02)\n{SOFT}a null (in WIRE-13)"),
        ("broken", "a shape (in NEW-03)\nnot checked: official schema"),
        ("ok", ""),
        ("warning", "seen before"),
    ]


def test_a_suite_runs_what_is_wanted_in_the_order_of_the_manifest():
    rules, checks = [MUST, SHOULD, LINES], {"A-01": breaks, "A-02": passes, "WIRE-01": passes}
    results = run_suite(PUPPET, rules=rules, checks=checks, known=["A-01"], workers=2)
    assert [(row.id, row.verdict) for row in results] == [("A-01", "known"), ("A-02", "ok"), ("WIRE-01", "ok")]
    assert [row.id for row in run_suite(PUPPET, rules=rules, checks=checks, only=["A-02"])] == ["A-02"]


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="no such rule: B-01, B-02"):
        run_suite(PUPPET, only=["B-01"], known=["B-02"])


def test_the_table_shows_each_rule_its_text_and_the_sums():
    results = [Result("A-01", "MUST", "ok", "", 0.5), Result("A-02", "SHOULD", "warning", "one\ntwo", 1.0)]
    assert table(results).splitlines() == [
        "ok           MUST    A-01                    0.50 s",
        "warning      SHOULD  A-02                    1.00 s",
        "    one",
        "    two",
        "2 rules: 1 ok, 1 warning",
    ]
    assert [row["id"] for row in to_json(results)] == ["A-01", "A-02"]


def command(*words):
    return " ".join(f"'{word}'" for word in (*PUPPET, *words))


def test_the_command_line_prints_the_table_and_writes_the_results(tmp_path, capsys):
    path = tmp_path / "results.json"
    assert main(["--agent", command(), "WIRE-07", "--json", str(path), "INIT-01", "--env", "A=b=c"]) == 0
    assert "2 rules: 2 ok" in capsys.readouterr().out
    assert [row["id"] for row in json.loads(path.read_text())] == ["WIRE-07", "INIT-01"]


def test_the_exit_code_tells_whether_anything_failed(capsys):
    assert main(["--agent", command(), "INIT-04"]) == 0
    assert main(["--agent", command(), "INIT-04", "--strict"]) == 1
    assert main(["--agent", command(), "INIT-04", "--strict", "--known", "INIT-04"]) == 0
    assert main(["--agent", "false", "INIT-01"]) == 1
    assert "1 known" in capsys.readouterr().out


def test_the_suite_is_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conformance", "--agent", command(), "INIT-01"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(__main__.__file__, run_name="__main__")
    assert (ended.value.code, "1 rules: 1 ok" in capsys.readouterr().out) == (0, True)


def test_an_unknown_rule_is_an_error_of_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--agent", "false", "NONE-01"])
    assert caught.value.code == 2
    assert "no such rule: NONE-01" in capsys.readouterr().err
