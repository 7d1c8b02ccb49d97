"""What must hold for the scenario folders themselves, without running anything (contract snapshots.md §4).

May not know: the agent under test. Invariant: each finding is one line that names the file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acp_bridge.testing.scenario import Scenario

_ALLOWED = re.compile(
    r"input\.json|session(\.\d+)?\.jsonl|stdout\.golden\.jsonl|replay\.override(\.\d+)?\.json|model\.json"
)
SECRETS = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----|[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}|//[^/\s:@\"]+:[^/\s:@\"]+@"
)
"""What looks like a key, a token or a password."""


def check_folders(root: Path, scenarios: Sequence[Scenario]) -> list[str]:
    """Declared scenarios without a folder, folders that nobody declares, and what is wrong inside."""
    declared = {scenario.name for scenario in scenarios}
    present = {path.name for path in root.iterdir() if path.is_dir()}
    findings = [f"{root / name}: declared, but there is no such folder" for name in sorted(declared - present)]
    findings += [f"{root / name}: not declared in scenarios.toml" for name in sorted(present - declared)]
    for scenario in scenarios:
        if scenario.name in present:
            findings += _check_folder(scenario)
    return findings


def _check_folder(scenario: Scenario) -> Iterator[str]:
    folder = scenario.directory
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    is_foreign = scenario.profile.replay_env is None
    for name in ("input.json", "model.json" if is_foreign else "session.jsonl", "stdout.golden.jsonl"):
        # a foreign agent that never asks its model needs no script of it
        if name not in files and (scenario.has_model_turn or name != "model.json"):
            yield f"{folder / name}: missing"
    if not is_foreign:
        yield from _check_override(scenario, files)
    for name, path in files.items():
        data = path.read_bytes()
        if not name.startswith("workspace/"):
            if not _ALLOWED.fullmatch(name):
                yield f"{path}: no file of a scenario"
            # what lies in a workspace is what the agent meets: that may be a file with other line ends
            if b"\r" in data:
                yield f"{path}: line ends are LF"
        yield from _check_text(path, data)


def _check_override(scenario: Scenario, files: Mapping[str, Path]) -> Iterator[str]:
    authored = scenario.source == "authored"
    if authored != ("replay.override.json" in files):
        yield (
            f"{scenario.directory}: an override stands exactly in authored scenarios, and this one is {scenario.source}"
        )
    if authored and "model.json" in files:
        yield f"{scenario.model}: an authored scenario has no model to record"


def _check_text(path: Path, data: bytes) -> Iterator[str]:
    if b"UNKNOWN_TOOL" in data:
        yield f"{path}: an UNKNOWN_TOOL result was recorded"
    if found := SECRETS.search(data.decode("utf-8", errors="replace")):
        yield f"{path}: looks like a secret at character {found.start()}"
