"""Alters recorded requests, one at a time: a strict replay must notice each (contract snapshots.md §5).

May not know: pytest, the agent under test. Invariant: the scenario's own folder is not touched.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.json_values import JsonObject, encode, read_lines, write_lines
from acp_bridge.testing.judge import judge
from acp_bridge.testing.scenario import Scenario
from acp_bridge.testing.validate import Referee

# what is asked is whether the agent refuses, not which of its lines run: measuring would double the time
_UNMEASURED = {"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""}


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One fingerprinted model call: the session's number, turn and step, all from 1."""

    session: int
    turn: int
    step: int

    def __str__(self) -> str:
        return f"session {self.session} turn {self.turn} step {self.step}"


def recorded_requests(scenario: Scenario) -> Iterator[RecordedRequest]:
    """Every request of the scenario's logs that has a fingerprint."""
    for number, path in enumerate(scenario.logs(), start=1):
        for record in read_lines(path):
            if _fingerprint(record):
                yield RecordedRequest(number, record["data"]["turn"], record["data"]["step"])


def mutation_survives(
    scenario: Scenario,
    request: RecordedRequest,
    *,
    command: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = 30.0,
) -> str | None:
    """Replay with this request's fingerprint altered. None when the run goes red and names the call, else what came."""
    with tempfile.TemporaryDirectory(prefix="acp-mutate-") as folder:
        copy = replace(scenario, directory=Path(folder, scenario.name))
        shutil.copytree(scenario.directory, copy.directory)
        path = copy.log_path(request.session)
        write_lines(path, [_altered(record, request) for record in read_lines(path)])
        run = run_scenario(copy, command=command, env={**_UNMEASURED, **(env or {})}, seconds=seconds)
        findings = [*run.failures, *judge(copy, run, Referee(environment={}, load_module=_nothing))]
    # the log differs in the altered line itself: what must be noticed is the request, when it is made
    if not run.failures:
        return f"the recorded request of {request} was altered, and the replay went on as if nothing were"
    if not any(str(request) in text for text in (*findings, run.stderr, encode(run.transcript))):
        return f"the recorded request of {request} was altered, and the failure does not name it: {run.failures}"
    return None


def _nothing(name: str) -> object:
    raise ImportError(name)


def _fingerprint(record: JsonObject) -> str | None:
    return record["data"].get("fingerprint") if record["type"] == "request/header" else None


def _altered(record: JsonObject, request: RecordedRequest) -> JsonObject:
    data: JsonObject = record.get("data", {})
    value = _fingerprint(record)
    if not value or (data["turn"], data["step"]) != (request.turn, request.step):
        return record
    return {**record, "data": {**data, "fingerprint": ("1" if value[0] == "0" else "0") + value[1:]}}
