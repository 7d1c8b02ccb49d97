"""Renews a recording without its model (contract snapshots.md §6, mode refresh): what the model said stays, the rest is
what the agent does with it now.

May not know: the agent under test beyond its command and its profile. Invariant: keyless; what is written replays to
itself, as in `record`; a script that no longer fits — a call too many or too few — is reported and nothing is written.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from acp_bridge.testing.compare import difference
from acp_bridge.testing.harness import Run, run_scenario
from acp_bridge.testing.json_values import JsonObject, read_lines
from acp_bridge.testing.judge import leftovers
from acp_bridge.testing.normalise import normalise_log
from acp_bridge.testing.record import RecordingError, prove_and_write, write_unsigned
from acp_bridge.testing.scenario import Scenario


def refresh(
    scenario: Scenario,
    *,
    command: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
    seconds: float = 30.0,
) -> list[str]:
    """Renew headers, golden and log of `scenario`; returns what changed, a readable paragraph each.

    The first are the requests whose fingerprints are others now. Raises `RecordingError`, `ScenarioError`.
    """
    before = [normalise_log(read_lines(path)) for path in scenario.logs()]
    golden = read_lines(scenario.golden) if scenario.golden.exists() else []
    with tempfile.TemporaryDirectory(prefix="acp-refresh-") as folder:
        copy = replace(scenario, directory=Path(folder, scenario.name))
        shutil.copytree(scenario.directory, copy.directory)
        if scenario.profile.replay_env is not None:
            write_unsigned(copy, [] if scenario.override else before)
        run = run_scenario(copy, command=command, env=env, seconds=seconds)
        if left := [] if scenario.profile.log_glob is None else list(leftovers(copy, run)):
            raise RecordingError("\n".join([f"{scenario.name} cannot be refreshed, record it anew:", *left]))
        prove_and_write(scenario, copy, run, command=command, env=env, environment=environment, seconds=seconds)
    return [*_misses(before, run), *_changes(before, golden, scenario, run)]


def _misses(before: Sequence[Sequence[JsonObject]], run: Run) -> Iterator[str]:
    for number, (old, new) in enumerate(zip(before, run.logs, strict=False), start=1):
        recorded, now = _fingerprints(old), _fingerprints(new or [])
        for (turn, step), value in now.items():
            if (other := recorded.get((turn, step))) != value:
                yield f"session {number} turn {turn} step {step}: fingerprint {other or 'nothing'}, now {value}"


def _fingerprints(records: Sequence[JsonObject]) -> dict[tuple[int, int], str]:
    headers = [record["data"] for record in records if record["type"] == "request/header"]
    return {(data["turn"], data["step"]): data["fingerprint"] for data in headers}


def _changes(
    before: Sequence[Sequence[JsonObject]], golden: Sequence[JsonObject], scenario: Scenario, run: Run
) -> Iterator[str]:
    surfaces = [(scenario.golden, golden, run.transcript)]
    surfaces += [
        (scenario.log_path(number), old, new or old)
        for number, (old, new) in enumerate(zip(before, run.logs, strict=False), start=1)
    ]
    for path, old, new in surfaces:
        if changed := difference(old, new, what=str(path), accept="it was written; the diff is for review"):
            yield changed
