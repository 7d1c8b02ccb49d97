"""The rules of the conformance suite as pytest items, named by their ids.

May not know: what a rule is about. Invariant: every rule is one item; one that is skipped, or was not provoked, says
why; which verdict fails is decided where the suite says it.
"""

from __future__ import annotations

from typing import Any

import pytest

from acp_bridge.testing.conformance.manifest import RULES
from acp_bridge.testing.conformance.rule import Rule
from acp_bridge.testing.conformance.suite import Check, all_checks, run_rule
from acp_bridge.testing.conformance.verdicts import Result, fails
from acp_bridge.testing.plugin_items import AcpItem, ScenarioFailed
from acp_bridge.testing.plugin_options import Options


def rule_suite(session: pytest.Session, options: Options) -> pytest.Collector:
    """The collector of all rules. Raises `pytest.UsageError` when the options name an unknown one."""
    if unknown := sorted(set(options.known) - {rule.id for rule in RULES}):
        raise pytest.UsageError(f"--acp-known: no such rule: {', '.join(unknown)}")
    kind: Any = RuleSuite
    return kind.from_parent(session, name="conformance", nodeid="conformance", options=options)


class RuleSuite(pytest.Collector):
    """All rules; it has no file."""

    def __init__(self, *, options: Options, **rest: Any) -> None:
        super().__init__(**rest)
        self._options = options

    def collect(self) -> list[pytest.Item]:
        """An item for each rule, in the manifest's order."""
        checks = all_checks()
        return [
            RuleItem.under(self, rule.id, rule=rule, check=checks[rule.id], options=self._options) for rule in RULES
        ]


class RuleItem(AcpItem):
    """One rule."""

    def __init__(self, *, rule: Rule, check: Check, **rest: Any) -> None:
        super().__init__(**rest)
        self._rule = rule
        self._check = check

    def runtest(self) -> None:
        """Check it. Raises `ScenarioFailed` when its verdict fails the run."""
        options = self.options
        result = run_rule(self._rule, self._check, options.command or (), env=options.env, known=options.known)
        self.acp_left = {"result": result.record()}
        if fails(result, strict=options.strict):
            raise ScenarioFailed(told(self._rule, result))
        if result.verdict in {"skipped", "not-provoked"}:
            pytest.skip(f"{result.verdict}: {result.text}")


def told(rule: Rule, result: Result) -> str:
    """The rule, its source and what was found, for a person."""
    return f"{rule.id} ({rule.strength}, {rule.source}): {rule.sentence}\n{result.text}"
