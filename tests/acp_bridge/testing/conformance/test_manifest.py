from acp_bridge.testing.conformance.manifest import RULES
from acp_bridge.testing.conformance.suite import all_checks
from acp_bridge.testing.conformance.wire_judges import JUDGES


def test_every_rule_has_a_check_and_every_check_a_rule():
    assert [rule.id for rule in RULES if rule.id not in all_checks()] == []
    assert sorted(all_checks().keys() - {rule.id for rule in RULES}) == []


def test_ids_are_unique_and_every_judge_has_a_rule():
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert set(ids) >= JUDGES.keys()


def test_every_rule_is_a_whole_sentence_with_a_source():
    for rule in RULES:
        assert rule.source
        assert rule.sentence.endswith("."), rule.id
        assert rule.strength in {"MUST", "SHOULD", "CLIENT"}
    assert len({rule.sentence for rule in RULES}) == len(RULES)


def test_the_hundred_and_twenty_two_requirements_stand_first_by_section():
    sections = list(dict.fromkeys(rule.id.split("-")[0] for rule in RULES))
    expected = "WIRE INIT AUTH NEW LOAD RES LIST CLOSE DEL PROMPT UPD TOOL PERM CANCEL MODE CFG FS TERM ELIC MCP END X"
    assert sections == expected.split()
    assert sum(not rule.id.startswith("X-") for rule in RULES) == 122
