"""Makes the recording of a scenario: run, scrub, write logs and golden (contract snapshots.md §6, mode record).

May not know: the agent under test beyond its command and the environment that it understands. Invariant: a folder is
written only after a run without failures, all files of it in one pass; what is written has been normalised.

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
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

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
    """The run failed; nothing was written."""


def record(scenario: Scenario, *, command: Sequence[str] | None = None, seconds: float = 30.0) -> None:
    """Record `scenario` anew. Raises `RecordingError`, `ScenarioError`."""
    if scenario.source == "authored":
        run = _replay_override(scenario, command, seconds)
    else:
        with _model(scenario.directory / "model.json") as provider:
            run = run_scenario(scenario, mode="record", command=command, env=provider, seconds=seconds)
    if run.failures:
        raise RecordingError("\n".join([f"{scenario.name} was not recorded:", *run.failures, run.stderr]))
    for path in scenario.logs():
        path.unlink()
    for number, records in enumerate(run.logs or [None], start=1):
        write_lines(scenario.log_path(number), records or [_HEADER])
    accept(scenario, run)


def accept(scenario: Scenario, run: Run) -> None:
    """Take the transcript of `run` as the golden."""
    write_lines(scenario.golden, run.transcript)


def _replay_override(scenario: Scenario, command: Sequence[str] | None, seconds: float) -> Run:
    """Run it beside empty logs: without recorded requests a replay only goes by position."""
    with tempfile.TemporaryDirectory(prefix="acp-record-") as folder:
        copy = replace(scenario, directory=Path(folder, scenario.name))
        shutil.copytree(scenario.directory, copy.directory, ignore=shutil.ignore_patterns("session*.jsonl"))
        steps = load_script(scenario.directory / "input.json").steps
        for number in range(1, 1 + max(1, sum(step.op == "newSession" for step in steps))):
            write_lines(copy.log_path(number), [_HEADER])
        return run_scenario(copy, command=command, seconds=seconds)


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
