"""Runs rules against an agent: one, or all of them, and says what came of it.

May not know: what a single rule is about. Invariant: a check can neither hang nor kill the run; a rule is reported
once; what any check's frames broke of a rule over all frames is reported under that rule.
"""

import functools
import os
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from acp_bridge.testing.conformance import (
    hostile,
    rules_cancel,
    rules_client,
    rules_end,
    rules_mcp,
    rules_modes,
    rules_permission,
    rules_prompt,
    rules_sessions,
    rules_start,
    rules_store,
    rules_tools,
    rules_updates,
    rules_wire,
)
from acp_bridge.testing.conformance.agent import advertised
from acp_bridge.testing.conformance.lab import Lab, laboratory
from acp_bridge.testing.conformance.manifest import RULES
from acp_bridge.testing.conformance.rule import Rule
from acp_bridge.testing.conformance.turns import Check
from acp_bridge.testing.conformance.verdicts import SOFT, Broken, NotProvoked, Result, Verdict
from acp_bridge.testing.conformance.wire_judges import JUDGES, judged, not_judged
from acp_bridge.testing.editor import EditorError
from acp_bridge.testing.json_values import JsonObject

_MODULES = (
    rules_wire,
    rules_start,
    rules_sessions,
    rules_store,
    rules_prompt,
    rules_updates,
    rules_tools,
    rules_permission,
    rules_cancel,
    rules_modes,
    rules_client,
    rules_mcp,
    rules_end,
    hostile,
)
_UNCHECKED = "not checked: "


def run_rule(
    rule: Rule,
    check: Check,
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    known: Iterable[str] = (),
    seconds: float = 10.0,
) -> Result:
    """Check one rule. `env` is added to the agent's environment (`{model_url}` is the model's address).

    `seconds` bounds each wait. A rule over all frames is judged by the frames of its own check here; see `settle`.
    """
    began = time.monotonic()
    outcome: Verdict
    findings: Mapping[str, tuple[str, ...]] = {}
    if rule.gate and not advertised(_initialized(tuple(command), tuple(sorted((env or {}).items()))), rule.gate):
        outcome, text = "skipped", f"{rule.gate} is not advertised"
    else:
        with laboratory(command, env=env, seconds=seconds) as lab:
            outcome, text = _outcome(rule, check, lab)
            findings = judged(lab.wires)
        if (own := findings.get(rule.id)) and outcome != "broken":
            outcome, text = _found(rule, own)
    unchecked = not_judged() if rule.id == "WIRE-14" else []
    text = "\n".join(filter(None, [text, *(f"{_UNCHECKED}{reason}" for reason in unchecked)]))
    result = Result(rule.id, rule.strength, outcome, text, time.monotonic() - began, findings)
    return _known(result, known)


def _outcome(rule: Rule, check: Check, lab: Lab) -> tuple[Verdict, str]:
    try:
        check(lab)
    except NotProvoked as reason:
        return "not-provoked", str(reason)
    except (Broken, EditorError) as reason:
        if lab.model.unprovoked:
            return "not-provoked", lab.model.unprovoked[0]
        # who ended, or is late, may have said why
        why = lab.stderr() if isinstance(reason, EditorError) else ""
        return _breach(rule), "\n".join(filter(None, [str(reason), why]))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        # a check reads what the agent wrote as it has to be written
        place = traceback.extract_tb(error.__traceback__)[-1]
        return _breach(rule), f"an answer of another shape: {error!r} at {place.name}:{place.lineno}"
    return ("warning", "\n".join(lab.warnings)) if lab.warnings else ("ok", "")


def _found(rule: Rule, findings: Iterable[str]) -> tuple[Verdict, str]:
    lines = list(dict.fromkeys(findings))
    is_soft = all(line.startswith(SOFT) for line in lines)
    return ("warning" if is_soft else _breach(rule)), "\n".join(lines)


def _breach(rule: Rule) -> Verdict:
    return "broken" if rule.strength == "MUST" else "warning"


def _known(result: Result, known: Iterable[str]) -> Result:
    is_known = result.id in known and result.verdict in {"broken", "warning"}
    return replace(result, verdict="known") if is_known else result


@functools.lru_cache(maxsize=64)
def _initialized(command: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> JsonObject:
    """What the agent says to initialize, `{}` when it says nothing of use: then the ungated rules tell."""
    with laboratory(command, env=dict(env)) as lab:
        try:
            with lab.agent() as agent:
                return agent.initialized
        except (Broken, EditorError):
            return {}


def settle(results: Iterable[Result], *, known: Iterable[str] = ()) -> list[Result]:
    """Report what the frames of all checks broke of the rules over all frames. For results of any run, in any order."""
    rows = list(results)
    found: dict[str, list[str]] = {}
    for row in rows:
        for rule_id, lines in row.findings.items():
            found.setdefault(rule_id, []).extend(f"{line} (in {row.id})" for line in lines)
    rules = {rule.id: rule for rule in RULES}
    settled: list[Result] = []
    for row in rows:
        settled.append(row)
        if row.id in JUDGES and row.id in found and row.verdict not in {"broken", "known"}:
            verdict, text = _found(rules[row.id], found[row.id])
            # a warning is told already, unless others make more of it
            if row.verdict != "warning" or verdict == "broken":
                unchecked = [line for line in row.text.splitlines() if line.startswith(_UNCHECKED)]
                changed = replace(row, verdict=verdict, text="\n".join([text, *unchecked]))
                settled[-1] = _known(changed, known)
    return settled


def run_suite(
    command: Sequence[str],
    *,
    known: Iterable[str] = (),
    only: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    seconds: float = 10.0,
    workers: int | None = None,
    checks: Mapping[str, Check] | None = None,
    rules: Sequence[Rule] = RULES,
) -> list[Result]:
    """Check every rule, or those that `only` names, in the manifest's order.

    Raises `ValueError` for an unknown id. `workers` rules run at a time: one per processor by default.
    """
    wanted, excused = set(only), set(known)
    if unknown := sorted((wanted | excused) - {rule.id for rule in rules}):
        raise ValueError(f"no such rule: {', '.join(unknown)}")
    given = all_checks() if checks is None else checks
    chosen = [rule for rule in rules if rule.id in wanted or not wanted]
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        running = [
            pool.submit(run_rule, rule, given[rule.id], command, env=env, known=excused, seconds=seconds)
            for rule in chosen
        ]
        return settle((each.result() for each in running), known=excused)


def all_checks() -> dict[str, Check]:
    """Rule id → its check, of every module of rules."""
    return {rule_id: check for module in _MODULES for rule_id, check in module.CHECKS.items()}


def table(results: Sequence[Result]) -> str:
    """The report for people: a row per rule, what was found below it, and the sums."""
    lines: list[str] = []
    for row in results:
        lines.append(f"{row.verdict:<13}{row.strength:<8}{row.id:<22}{row.seconds:6.2f} s")
        lines += [f"    {line}" for line in row.text.splitlines()]
    counts: dict[str, int] = {}
    for row in results:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    sums = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return "\n".join([*lines, f"{len(results)} rules: {sums}"])


def to_json(results: Iterable[Result]) -> list[JsonObject]:
    """The report for programs: one record per rule."""
    return [result.record() for result in results]
