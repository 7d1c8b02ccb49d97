import json

from acp_bridge.testing.conformance.verdicts import Result, exit_code, fails


def test_a_result_survives_its_json_form():
    result = Result("WIRE-01", "MUST", "broken", "why", 0.25, {"WIRE-14": ("a", "b")})
    assert Result.from_record(json.loads(json.dumps(result.record()))) == result


def test_the_json_form_names_findings_only_where_there_are_some():
    record = Result("WIRE-01", "MUST", "ok").record()
    assert record == {"id": "WIRE-01", "strength": "MUST", "verdict": "ok", "text": "", "seconds": 0.0}


def test_broken_fails_a_warning_fails_a_strict_run_and_nothing_else_fails():
    broken, warning = Result("A", "MUST", "broken"), Result("B", "SHOULD", "warning")
    others = [Result("C", "MUST", verdict) for verdict in ("ok", "known", "skipped", "not-provoked")]
    assert fails(broken)
    assert not fails(warning)
    assert fails(warning, strict=True)
    assert exit_code([*others, warning]) == 0
    assert exit_code([*others, warning], strict=True) == 1
    assert exit_code([*others, broken]) == 1
    assert exit_code(others, strict=True) == 0
