"""Makes the recording of a scenario: run, scrub, replay as a proof, write (contract snapshots.md §6, mode record).

May not know: the agent under test beyond its command and the environment that it understands. Invariant: a folder is
written only when its recording has replayed to the same logs and transcript; what is written has been normalised.

A recorded scenario talks to the model that its `model.json` scripts (a local server in the provider's place), or, when
it has none, to the real provider with the key of the environment. An authored one is replayed from its override.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from acp_bridge.testing.compare import difference
from acp_bridge.testing.harness import Run, run_scenario
from acp_bridge.testing.json_values import JsonObject, write_lines
from acp_bridge.testing.scenario import Scenario, load_script

_PROVIDER = ("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL")
_HEADER: JsonObject = {
    "type": "session",
    "version": 1,
    "id": "{{sessionId}}",
    "createdAt": 0,
    "cwd": "{{cwd}}",
}


class RecordingError(Exception):
    """The run failed, or did not replay; nothing was written."""


def record(scenario: Scenario, *, command: Sequence[str] | None = None, seconds: float = 30.0) -> None:
    """Record `scenario` anew. Raises `RecordingError`, `ScenarioError`."""
    with tempfile.TemporaryDirectory(prefix="acp-record-") as folder:
        copy = replace(scenario, directory=Path(folder, scenario.name))
        shutil.copytree(scenario.directory, copy.directory, ignore=shutil.ignore_patterns("session*.jsonl"))
        if scenario.source == "authored":
            # beside empty logs: without recorded requests a replay goes by position alone
            steps = load_script(scenario.directory / "input.json").steps
            _write_logs(copy, [None] * sum(step.op == "newSession" for step in steps))
            run = run_scenario(copy, command=command, seconds=seconds)
        else:
            with _model(scenario.directory / "model.json") as provider:
                run = run_scenario(copy, mode="record", command=command, env=provider, seconds=seconds)
        _raise_for(scenario, run, run.failures)
        _write_logs(copy, run.logs)
        proof = run_scenario(copy, command=command, seconds=seconds)
        _raise_for(scenario, proof, [*proof.failures, *_differences(run, proof)])
    _write_logs(scenario, proof.logs)
    accept(scenario, proof)


def accept(scenario: Scenario, run: Run) -> None:
    """Take the transcript of `run` as the golden."""
    write_lines(scenario.golden, run.transcript)


def _write_logs(scenario: Scenario, logs: Sequence[list[JsonObject] | None]) -> None:
    for path in scenario.logs():
        path.unlink()
    for number, records in enumerate(logs or [None], start=1):
        write_lines(scenario.log_path(number), records or [_HEADER])


def _raise_for(scenario: Scenario, run: Run, failures: Sequence[str]) -> None:
    if failures:
        raise RecordingError("\n".join([f"{scenario.name} was not recorded:", *failures, run.stderr]))


def _differences(run: Run, proof: Run) -> Iterator[str]:
    """Where the replay left the recording. What `initialize` offers may differ: a replay needs no key."""
    accept_with = "make the scenario deterministic"
    both = [
        [frame for frame in side.transcript if "protocolVersion" not in frame.get("result", {})]
        for side in (run, proof)
    ]
    surfaces = [("the transcript", *both)]
    surfaces += [
        (f"log {number}", old or [], new or [])
        for number, (old, new) in enumerate(zip(run.logs, proof.logs, strict=True), 1)
    ]
    for what, old, new in surfaces:
        if changed := difference(old, new, what=f"{what} of the replay", accept=accept_with):
            yield changed


@contextlib.contextmanager
def _model(script: Path) -> Generator[Mapping[str, str]]:
    """The environment that leads the agent to its model."""
    if not script.exists():
        yield {name: os.environ[name] for name in _PROVIDER if name in os.environ}
        return
    command = [sys.executable, "-m", "acp_bridge.testing.model_server", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            base_url: str = json.loads(cast("IO[bytes]", server.stdout).readline())["base_url"]
            yield {"DEEPSEEK_BASE_URL": base_url, "DEEPSEEK_API_KEY": "local-model"}
        finally:
            server.terminate()
