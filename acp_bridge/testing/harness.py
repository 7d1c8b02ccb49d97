"""Runs one scenario against the real console script, in a world of its own (contract snapshots.md §3).

May not know: what is right or wrong about the outcome. Invariant: whatever happens — a step that fails, an agent that
hangs — the agent is dead and the temporary directories are gone afterwards, and stderr is part of the report.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.editor import Editor, EditorError, Entry
from acp_bridge.testing.json_values import JsonObject, read_lines
from acp_bridge.testing.normalise import Masks, normalise_log, normalise_transcript
from acp_bridge.testing.player import Player
from acp_bridge.testing.scenario import Scenario, load_script

Mode = Literal["replay", "record"]

# what a program needs to start at all, and what measures it; nothing that tells one machine from another
_PASSED = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_PASSED_PREFIX = "COVERAGE_"
_STDERR_SHOWN = 8_000  # characters of it in a failure


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run: the wire, the logs by order of session creation (None: none was written), the rest.

    `transcript` and `logs` are normalised; `report` holds the consumed keys of the replay.
    """

    entries: tuple[Entry, ...]
    raw: bytes
    transcript: list[JsonObject]
    logs: list[list[JsonObject] | None]
    report: list[JsonObject]
    failures: list[str]
    stderr: str


def run_scenario(
    scenario: Scenario,
    *,
    mode: Mode = "replay",
    command: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = 30.0,
) -> Run:
    """Play the scenario's script; its failures are data. Raises `ScenarioError` for a script that cannot be read."""
    script = load_script(scenario.directory / "input.json")
    # resolved: a program asked for its directory answers with the real path
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="acp-snapshot-")))
    try:
        places = {name: root / name for name in ("cwd", "home", "sessions", "tmp")}
        for place in places.values():
            place.mkdir(mode=0o700)
        if (workspace := scenario.directory / "workspace").is_dir():
            shutil.copytree(workspace, places["cwd"], dirs_exist_ok=True)
        editor = Editor(
            command or scenario.profile.command,
            cwd=places["cwd"],
            env=_environment(scenario, mode, root) | dict(env or {}),
            stderr=root / "stderr",
            answers=Answers(script.answers),
            seconds=seconds,
        )
        player = Player(editor, cwd=places["cwd"], settles_session=scenario.profile.settles_session, seconds=seconds)
        failures: list[str] = []
        try:
            player.play(script)
        except EditorError as error:
            failures.append(str(error))
        finally:
            failures += [f"the agent exited with {code}" for code in editor.exits if code != 0]
            editor.kill()
        failures += [failure for failure in editor.failures if failure not in " ".join(failures)]
        spill_root = root / "home" / scenario.profile.spill_root if scenario.profile.spill_root else None
        return _harvest(root, editor, player, failures, spill_root=spill_root and str(spill_root))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _environment(scenario: Scenario, mode: Mode, root: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIX)}
    env |= {
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "DSH_SNAPSHOT": mode,
        "DSH_SNAPSHOT_FILE": os.path.abspath(scenario.fixture),
        "DSH_SNAPSHOT_SESSIONS_ROOT": str(root / "sessions"),
    }
    if mode == "replay":
        env["DSH_SNAPSHOT_REPORT"] = str(root / "report.jsonl")
        if scenario.override is not None:
            env["DSH_SNAPSHOT_OVERRIDE"] = os.path.abspath(scenario.override)
    return env | dict(scenario.env)


def _harvest(root: Path, editor: Editor, player: Player, failures: list[str], *, spill_root: str | None) -> Run:
    masks = Masks(cwd=str(root / "cwd"), session_ids=player.session_ids, spill_root=spill_root)
    frames = [entry.frame for entry in editor.entries if entry.sender == "agent"]
    written: dict[str, list[JsonObject]] = {}
    for path in sorted((root / "sessions").rglob("*.jsonl")):
        records = read_lines(path)
        written[records[0]["id"]] = normalise_log(records, spill_root=spill_root)
    failures += [f"a log of the unknown session {unknown}" for unknown in written.keys() - set(player.session_ids)]
    report = root / "report.jsonl"
    return Run(
        entries=tuple(editor.entries),
        raw=bytes(editor.raw),
        transcript=normalise_transcript(frames, masks),
        logs=[written.get(session_id) for session_id in player.session_ids],
        report=read_lines(report) if report.exists() else [],
        failures=failures,
        stderr=(root / "stderr").read_text(encoding="utf-8", errors="replace")[-_STDERR_SHOWN:],
    )
