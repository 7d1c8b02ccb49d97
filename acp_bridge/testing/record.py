"""Makes the recording of a scenario: run, scrub, replay as a proof, write (contract snapshots.md §6, mode record).

May not know: the agent under test beyond its command and its profile. Invariant: a folder is written only when its
recording has replayed to the same logs and transcript, and holds no secret; what is written has been normalised.

A recorded scenario talks to the model that its `model.json` scripts (a local server in the provider's place), or, when
it has none, to the provider with the key of the environment. An authored one is replayed from its override. A foreign
agent has its provider behind a proxy that writes `model.json`; what stands there already is replaced.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from acp_bridge.testing.compare import difference
from acp_bridge.testing.harness import Run, run_scenario
from acp_bridge.testing.json_values import JsonObject, lines_of, write_lines
from acp_bridge.testing.model_paths import CWD, moved
from acp_bridge.testing.model_thread import served
from acp_bridge.testing.recording_proxy import recording_proxy
from acp_bridge.testing.scenario import Scenario, load_model, load_script
from acp_bridge.testing.secrets_scan import secrets_in

_PROVIDERS = (("OPENAI_API_KEY", "OPENAI_BASE_URL"), ("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL"))
_HEADER: JsonObject = {
    "type": "session",
    "version": 1,
    "id": "{{sessionId}}",
    "createdAt": 0,
    "cwd": "{{cwd}}",
}


class RecordingError(Exception):
    """The run failed, did not replay, or holds a secret; nothing was written."""


def record(
    scenario: Scenario,
    *,
    command: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
    seconds: float = 30.0,
) -> None:
    """Record `scenario` anew. `env` is added to the agent's; `environment` holds the provider's key.

    Raises `RecordingError`, `ScenarioError`.
    """
    with _copied(scenario) as copy:
        if scenario.profile.replay_env is None:
            run = _record_foreign(scenario, copy, command, env or {}, environment, seconds)
        elif scenario.source == "authored":
            write_unsigned(copy, [])
            run = run_scenario(copy, command=command, env=env, seconds=seconds)
        elif scenario.model.exists():
            with served(load_model(scenario.model)) as server:
                run = run_scenario(
                    copy, mode="record", command=command, env=env, model_url=server.base_url, seconds=seconds
                )
        else:
            known = {name: environment[name] for pair in _PROVIDERS for name in pair if name in environment}
            run = run_scenario(copy, mode="record", command=command, env={**known, **(env or {})}, seconds=seconds)
        prove_and_write(scenario, copy, run, command=command, env=env, environment=environment, seconds=seconds)


def prove_and_write(
    scenario: Scenario,
    copy: Scenario,
    run: Run,
    *,
    command: Sequence[str] | None,
    env: Mapping[str, str] | None,
    environment: Mapping[str, str],
    seconds: float,
) -> None:
    """Replay what `run` left in `copy`, and write it into `scenario` when it comes to the same. Raises as `record`."""
    _raise_for(scenario, run, run.failures)
    _write_logs(copy, run.logs)
    proof = run_scenario(copy, command=command, env=env, seconds=seconds)
    _raise_for(scenario, proof, [*proof.failures, *_differences(run, proof)])
    texts = {path.name: path.read_text(encoding="utf-8") for path in (copy.model,) if path.exists()}
    if scenario.profile.replay_env is not None:
        texts = dict(_log_texts(scenario, proof.logs))
        for path in scenario.logs():
            texts.setdefault(path.name, "")
    texts[scenario.golden.name] = lines_of(proof.transcript)
    _write(scenario, texts, environment)


def accept(scenario: Scenario, run: Run, *, environment: Mapping[str, str] = os.environ) -> None:
    """Take the transcript of `run` as the golden. Raises `RecordingError` when a secret is in it."""
    _write(scenario, {scenario.golden.name: lines_of(run.transcript)}, environment)


@contextlib.contextmanager
def _copied(scenario: Scenario) -> Generator[Scenario]:
    """The folder without its logs, to be recorded into."""
    with tempfile.TemporaryDirectory(prefix="acp-record-") as folder:
        copy = replace(scenario, directory=Path(folder, scenario.name))
        shutil.copytree(scenario.directory, copy.directory, ignore=shutil.ignore_patterns("session*.jsonl"))
        yield copy


def write_unsigned(copy: Scenario, logs: Sequence[Sequence[JsonObject]]) -> None:
    """`logs` without the headers of their requests: such a recording is replayed by position, unchecked.

    Sessions that have no log yet, one for each that the script opens, get an empty one.
    """
    steps = load_script(copy.directory / "input.json").steps
    opened = max(1, sum(step.op == "newSession" for step in steps))
    for number in range(1, max(opened, len(logs)) + 1):
        records = logs[number - 1] if number <= len(logs) else [_HEADER]
        write_lines(copy.log_path(number), [row for row in records if row["type"] != "request/header"])


def _record_foreign(
    scenario: Scenario,
    copy: Scenario,
    command: Sequence[str] | None,
    env: Mapping[str, str],
    environment: Mapping[str, str],
    seconds: float,
) -> Run:
    if scenario.source == "authored" or not scenario.has_model_turn:
        return run_scenario(copy, command=command, env=env, seconds=seconds)
    for key_name, url_name in _PROVIDERS:
        if (key := environment.get(key_name)) and (url := environment.get(url_name)):
            with recording_proxy(url, key=key) as proxy:
                run = run_scenario(copy, command=command, env=env, model_url=proxy.url, seconds=seconds)
            _raise_for(scenario, run, run.failures)
            script = _script_text(moved(proxy.answers(cancels=_cancels(run)), old=run.cwd, new=CWD))
            copy.model.write_text(script, encoding="utf-8", newline="\n")
            # what counts is the script: a path that was said in two pieces is said in one from now on
            return run_scenario(copy, command=command, env=env, seconds=seconds)
    wanted = " or ".join(f"{key_name} with {url_name}" for key_name, url_name in _PROVIDERS)
    raise RecordingError(f"{scenario.name}: a recording needs a provider: set {wanted}")


def _cancels(run: Run) -> list[float]:
    methods = [(entry.at, entry.frame.get("method")) for entry in run.entries if entry.sender == "client"]
    return [run.began + at for at, method in methods if method == "session/cancel"]


def _script_text(answers: Sequence[JsonObject]) -> str:
    """One answer a line, so that a change of one is one line of a diff."""
    return "[\n" + ",\n".join(lines_of([answer]).rstrip("\n") for answer in answers) + "\n]\n"


def _log_texts(scenario: Scenario, logs: Sequence[list[JsonObject] | None]) -> Iterator[tuple[str, str]]:
    for number, records in enumerate(logs or [None], start=1):
        yield scenario.log_path(number).name, lines_of(records or [_HEADER])


def _write_logs(copy: Scenario, logs: Sequence[list[JsonObject] | None]) -> None:
    if copy.profile.replay_env is not None:
        for path in copy.logs():
            path.unlink()
        for name, text in _log_texts(copy, logs):
            (copy.directory / name).write_text(text, encoding="utf-8", newline="\n")


def _write(scenario: Scenario, texts: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Write the files by name; an empty one is removed. Nothing is written when any holds a secret."""
    found = [f"{name}: {line}" for name, text in texts.items() for line in secrets_in(text, environment=environment)]
    if found:
        raise RecordingError("\n".join([f"{scenario.name} was not written, it holds secrets:", *found]))
    for name, text in texts.items():
        path = scenario.directory / name
        if text:
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            path.unlink(missing_ok=True)


def _raise_for(scenario: Scenario, run: Run, failures: Sequence[str]) -> None:
    if failures:
        raise RecordingError("\n".join([f"{scenario.name} was not recorded:", *failures, run.stderr]))


def _differences(run: Run, proof: Run) -> Iterator[str]:
    """Where the replay left the recording. What `initialize` offers may differ: a replay needs no key."""
    accept_with = "make the scenario deterministic"
    both = [
        [frame for frame in side.transcript if "protocolVersion" not in (frame.get("result") or {})]
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
