"""The verdict on a run: both surfaces, the protocol, the rest of the script (contract snapshots.md §4, §5).

May not know: how a run is made. Invariant: nothing is compared after the first difference of a surface; a verdict
without findings means that everything was checked that `Referee.skipped` does not name.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from acp_bridge.testing.compare import difference
from acp_bridge.testing.conversation import Conversation
from acp_bridge.testing.harness import Run
from acp_bridge.testing.json_values import JsonObject, as_object, read_lines
from acp_bridge.testing.normalise import normalise_log
from acp_bridge.testing.scenario import Scenario
from acp_bridge.testing.validate import Referee


def judge(
    scenario: Scenario, run: Run, referee: Referee, *, accept: str | None = None, record: str | None = None
) -> list[str]:
    """Findings, each a readable paragraph; the last one shows stderr when there is any finding.

    `accept` and `record` are the commands that take a new transcript, or a new log, as right.
    """
    findings = list(run.failures)
    findings += referee.violations(run.entries)
    findings += Conversation().violations(run.entries)
    findings += [f"{name} is not advertised" for name in scenario.capabilities if not _advertised(run, name)]
    accept = accept or f"python -m acp_bridge.testing accept --root {scenario.directory.parent} {scenario.name}"
    golden = difference(read_lines(scenario.golden), run.transcript, what=str(scenario.golden), accept=accept)
    findings += [golden] if golden else []
    if scenario.profile.log_glob is not None:
        findings += _logs(scenario, run, record or f"bin/record {scenario.name}")
        findings += leftovers(scenario, run)
    if findings and run.stderr:
        findings.append(f"stderr of the agent:\n{run.stderr}")
    return findings


def _advertised(run: Run, name: str) -> bool:
    results = [entry.frame["result"] for entry in run.entries if "protocolVersion" in (entry.frame.get("result") or {})]
    value: object = results[0].get("agentCapabilities") if results else None
    for key in name.split("."):
        value = (as_object(value) or {}).get(key)
    # an empty object advertises, too
    return value is not None and value is not False


def _logs(scenario: Scenario, run: Run, record: str) -> Iterator[str]:
    paths = scenario.logs()
    if len(paths) != len(run.logs):
        yield f"{scenario.directory}: {len(paths)} session logs are recorded, the run opened {len(run.logs)} sessions"
    if scenario.has_model_turn and not any(run.logs):
        yield f"{scenario.directory}: the agent wrote no log of a run with a model turn"
    for path, found in zip(paths, run.logs, strict=False):
        expected = normalise_log(read_lines(path))
        if len(expected) == 1 and found is None:
            continue
        changed = difference(expected, found or [], what=str(path), accept=record)
        if changed:
            yield changed


def leftovers(scenario: Scenario, run: Run) -> Iterator[str]:
    """Recorded model calls that the run did not make."""
    for number, path in enumerate(scenario.logs(), start=1):
        used = [(row["turn"], row["step"]) for row in run.report if row["session"] == number]
        override = _override(scenario, number)
        if override is not None:
            count = len(json.loads(override.read_text(encoding="utf-8")))
            if len(used) < count:
                yield f"{override}: {count - len(used)} of {count} entries were not used"
        elif left := sorted(_calls(read_lines(path)) - set(used)):
            yield f"{path}: recorded model calls (turn, step) that were not made: {left}"


def _override(scenario: Scenario, number: int) -> Path | None:
    if scenario.override is None or number == 1:
        return scenario.override
    path = scenario.directory / f"replay.override.{number}.json"
    return path if path.exists() else None


def _calls(records: list[JsonObject]) -> set[tuple[int, int]]:
    chunks = [record["data"] for record in records if record["type"] == "assistant/chunk"]
    return {(data["turn"], data["step"]) for data in chunks}
