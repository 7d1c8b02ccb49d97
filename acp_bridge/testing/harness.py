"""Runs one scenario against the real console script, in a world of its own (contract snapshots.md §3).

May not know: what is right or wrong about the outcome. Invariant: whatever happens — a step that fails, an agent that
hangs — the agent is dead and the temporary directories are gone afterwards, and stderr is part of the report.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.editor import Editor, EditorError, Entry
from acp_bridge.testing.json_values import JsonObject, as_object, encode, read_lines
from acp_bridge.testing.model_paths import CWD, moved
from acp_bridge.testing.model_server import Answer, ModelServer
from acp_bridge.testing.model_thread import addresses, served
from acp_bridge.testing.normalise import Masks, normalise_log, normalise_transcript
from acp_bridge.testing.pacing import STEADY, Pacing
from acp_bridge.testing.player import Player
from acp_bridge.testing.scenario import Scenario, Script, load_model, load_script

Mode = Literal["replay", "record"]

# what a program needs to start at all, and what measures it; nothing that tells one machine from another
_PASSED = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_PASSED_PREFIX = "COVERAGE_"
_MODEL_URL = "{model_url}"
_STDERR_SHOWN = 8_000  # characters of it in a failure


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run: the wire, the logs by order of session creation (None: none was written), the rest.

    `cwd` was where it ran, `began` the moment (`time.monotonic`) from which its entries count. `transcript` and `logs`
    are normalised; a foreign agent has no `logs` at all. `report` holds the consumed keys of the replay.
    """

    entries: tuple[Entry, ...]
    raw: bytes
    transcript: list[JsonObject]
    logs: list[list[JsonObject] | None]
    report: list[JsonObject]
    failures: list[str]
    stderr: str
    cwd: str = ""
    began: float = field(default=0.0, compare=False)


def run_scenario(
    scenario: Scenario,
    *,
    mode: Mode = "replay",
    command: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    model_url: str | None = None,
    pacing: Pacing = STEADY,
    seconds: float = 30.0,
) -> Run:
    """Play the scenario's script; its failures are data. Raises `ScenarioError` for a script that cannot be read.

    `env` is added to the agent's environment, with `{model_url}` replaced. `model_url` is where a model answers
    already; without it a foreign agent gets a server that plays the scenario's own model script.
    """
    script = load_script(scenario.directory / "input.json")
    replayed: list[Answer] = load_model(scenario.model) if scenario.model.exists() else []
    is_foreign = scenario.profile.replay_env is None
    # resolved: a program asked for its directory answers with the real path
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="acp-snapshot-")))
    try:
        for name in ("cwd", "home", "sessions", "tmp"):
            (root / name).mkdir(mode=0o700)
        if (workspace := scenario.directory / "workspace").is_dir():
            shutil.copytree(workspace, root / "cwd", dirs_exist_ok=True)
        with contextlib.ExitStack() as stack:
            failures: list[str] = []
            if is_foreign and model_url is None:
                answers = moved(replayed, old=CWD, new=str(root / "cwd"))
                if pacing.splits_model:
                    answers = [{**answer, "one_byte": True} for answer in answers]
                server = stack.enter_context(served(answers))
                model_url = server.base_url
                stack.callback(lambda: failures.extend(_unlike(server, len(replayed), scenario.model)))
            variables = _environment(scenario, mode, root, env or {}, model_url)
            started = command or scenario.profile.command
            return _play(
                scenario, script, root, failures, command=started, env=variables, pacing=pacing, seconds=seconds
            )
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _unlike(server: ModelServer, recorded: int, path: Path) -> Iterator[str]:
    calls = sum(request.path.endswith("/chat/completions") for request in server.requests)
    if calls > recorded:
        yield f"{path}: the agent made {calls} model calls, {recorded} are recorded"
    elif calls < recorded:
        yield f"{path}: {recorded - calls} of {recorded} recorded model calls were not made"


def _play(
    scenario: Scenario,
    script: Script,
    root: Path,
    failures: list[str],
    *,
    command: Sequence[str],
    env: Mapping[str, str],
    pacing: Pacing,
    seconds: float,
) -> Run:
    cwd, answers = root / "cwd", Answers(script.answers)
    editor = Editor(command, cwd=cwd, env=env, stderr=root / "stderr", answers=answers, seconds=seconds, pacing=pacing)
    settles = scenario.profile.settles_session
    player = Player(editor, cwd=cwd, answers=answers, settles_session=settles, seconds=seconds)
    try:
        player.play(script)
    except EditorError as error:
        failures.append(str(error))
    finally:
        failures += [f"the agent exited with {code}" for code in editor.exits if code != 0]
        editor.kill()
    failures += [failure for failure in editor.failures if failure not in " ".join(failures)]
    return _harvest(root, scenario, editor, player, failures)


def _environment(
    scenario: Scenario, mode: Mode, root: Path, given: Mapping[str, str], model_url: str | None
) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIX)}
    env |= {"HOME": str(root / "home"), "TMPDIR": str(root / "tmp")}
    if (prefix := scenario.profile.replay_env) is not None:
        env |= {
            prefix: mode,
            f"{prefix}_FILE": os.path.abspath(scenario.fixture),
            f"{prefix}_SESSIONS_ROOT": str(root / "sessions"),
        }
        if mode == "replay":
            env[f"{prefix}_REPORT"] = str(root / "report.jsonl")
            if scenario.override is not None:
                env[f"{prefix}_OVERRIDE"] = os.path.abspath(scenario.override)
    if model_url is not None:
        env |= addresses(model_url)
    env |= scenario.env
    for name, value in given.items():
        # a replay from a log has no model: what would lead there stays unset
        if model_url is not None or _MODEL_URL not in value:
            env[name] = value.replace(_MODEL_URL, model_url or "")
    return env


def _harvest(root: Path, scenario: Scenario, editor: Editor, player: Player, failures: list[str]) -> Run:
    profile = scenario.profile
    spill_root = str(root / "home" / profile.spill_root) if profile.spill_root else None
    masks = Masks(cwd=str(root / "cwd"), session_ids=player.session_ids, spill_root=spill_root)
    frames = [entry.frame for entry in editor.entries if entry.sender == "agent"]
    if scenario.concurrent:
        frames = _by_session(editor.entries, player.session_ids)
    written: dict[str, list[JsonObject]] = {}
    for path in sorted((root / "sessions").glob(profile.log_glob)) if profile.log_glob else ():
        records = read_lines(path)
        written[records[0]["id"]] = normalise_log(records, spill_root=spill_root)
    failures += [f"a log of the unknown session {unknown}" for unknown in written.keys() - set(player.session_ids)]
    report = root / "report.jsonl"
    return Run(
        entries=tuple(editor.entries),
        raw=bytes(editor.raw),
        transcript=normalise_transcript(frames, masks),
        logs=[written.get(session_id) for session_id in player.session_ids] if profile.log_glob else [],
        report=read_lines(report) if report.exists() else [],
        failures=failures,
        cwd=str(root / "cwd"),
        began=editor.began,
        stderr=(root / "stderr").read_text(encoding="utf-8", errors="replace")[-_STDERR_SHOWN:],
    )


def _by_session(entries: Iterable[Entry], session_ids: Sequence[str]) -> list[JsonObject]:
    """The agent's frames session by session, those of none first: only inside each their order is certain."""
    asked: dict[str, str] = {}
    groups: dict[str, list[JsonObject]] = {"": [], **{session_id: [] for session_id in session_ids}}
    for entry in entries:
        frame = entry.frame
        session = str((as_object(frame.get("params")) or {}).get("sessionId", ""))
        if entry.sender == "client":
            asked[encode(frame.get("id"))] = session
            continue
        if "method" not in frame:
            session = asked.get(encode(frame.get("id")), "")
        groups.setdefault(session, []).append(frame)
    return [frame for group in groups.values() for frame in group]
