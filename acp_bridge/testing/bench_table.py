"""Results as text for a person and as JSON for a program.

May not know: how anything is measured. Invariant: neither holds a path or the name of the machine.
"""

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from acp_bridge.testing.bench_metrics import Plan
from acp_bridge.testing.bench_results import Results
from acp_bridge.testing.bench_targets import Verdict
from acp_bridge.testing.json_values import JsonObject


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns, the first flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in enumerate(cells)).rstrip()
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    )


def number(value: float | None) -> str:
    """Three significant digits; a dash for what was not measured."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(results: Results) -> str:
    """A row per figure: the medians, and the ratio of the first agent to each other one; then what went wrong."""
    first, *others = results.agents
    head = ["figure", first]
    for other in others:
        head += [other, "ratio"]
    rows = [head]
    for figure in results.figures():
        row = [figure, number(results.median(first, figure))]
        for other in others:
            ratios = results.ratios(first, other, figure)
            ratio = number(statistics.median(ratios)) if ratios else "–"
            row += [number(results.median(other, figure)), ratio]
        rows.append(row)
    return "\n".join([aligned(rows), *_problems(results)])


def _problems(results: Results) -> Iterator[str]:
    seen: set[str] = set()
    for sample in results.samples:
        if sample.problem is None:
            continue
        word = "FAILED" if sample.is_failure else "no"
        line = f"{word} {sample.metric} of {sample.agent}: {sample.problem}"
        if line not in seen:
            seen.add(line)
            yield line
            if sample.detail:
                yield "    " + sample.detail.strip().replace("\n", "\n    ")


def targets(found: Sequence[Verdict]) -> str:
    """A row per target: what came, what must be, what should be, and the word for it."""
    rows = [["target", "measured", "must", "aim", ""]]
    for verdict in found:
        target = verdict.target
        sign = "≥" if target.at_least else "≤"
        said = f"{target.sentence}{' (ratio to the peer)' if target.is_ratio else ''}"
        word = "MISSED" if verdict.word == "missed" else verdict.word
        rows.append([said, number(verdict.value), f"{sign} {target.must:g}", f"{sign} {target.aim:g}", word])
    return aligned(rows)


def machine() -> JsonObject:
    """What decides a figure, without what tells one machine from another."""
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


def to_json(results: Results, plan: Plan, found: Sequence[Verdict], facts: JsonObject) -> JsonObject:
    """Everything, with every round."""
    planned = {name: value for name, value in asdict(plan).items() if isinstance(value, int)}
    samples: list[JsonObject] = [
        {
            "metric": sample.metric,
            "agent": sample.agent,
            "round": sample.round,
            **({"figures": sample.figures} if sample.problem is None else {"problem": sample.problem}),
        }
        for sample in results.samples
    ]
    medians = {
        agent: {figure: results.median(agent, figure) for figure in results.figures()} for agent in results.agents
    }
    judged: list[JsonObject] = [
        {"figure": verdict.target.figure, "value": verdict.value, "verdict": verdict.word} for verdict in found
    ]
    return {"machine": facts, "plan": planned, "samples": samples, "medians": medians, "targets": judged}
