"""What a scenario says: `scenarios.toml` and `input.json`, read and checked (contract snapshots.md §1, §2).

May not know: processes, frames, the agent under test. Invariant: what loads can be played — every operation, field and
answer is known — and every error names the file and the place in it.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from acp_bridge.testing.answers import ADDRESS
from acp_bridge.testing.json_values import JsonObject, as_list, as_object


class ScenarioError(Exception):
    """A scenario that cannot be played as it is written."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}")


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """What holds for every scenario: the table `[agent]`.

    `command` starts the agent. `settles_session` names the update that follows each opened session some time after
    the response: the editor waits for it, so that its place in the transcript does not depend on timing.
    `spill_root`, relative to HOME, is where the agent keeps output that was too long.

    An agent that can replay its own log says so with `replay_env`, the prefix of the variables that lead it
    (`DSH_SNAPSHOT`: contract §3), and `log_glob`, where below its sessions root it writes the logs. Without them it is
    a foreign agent: the scripted server plays the scenario's `model.json`, and there is no second surface.
    """

    command: tuple[str, ...] = ("dsh-acp-agent",)
    settles_session: str | None = None
    spill_root: str | None = None
    replay_env: str | None = None
    log_glob: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One folder. `capabilities` are dotted names that the agent must advertise, e.g. `loadSession`.

    `concurrent`: its sessions run at the same time, so that the order of frames is only certain inside each session.
    """

    directory: Path
    has_model_turn: bool
    source: Literal["recorded", "authored"]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    capabilities: tuple[str, ...] = ()
    concurrent: bool = False
    profile: AgentProfile = AgentProfile()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.directory.name

    @property
    def fixture(self) -> Path:
        """The first session's log; `session.2.jsonl`, … lie beside it."""
        return self.directory / "session.jsonl"

    @property
    def golden(self) -> Path:
        """The transcript's record."""
        return self.directory / "stdout.golden.jsonl"

    @property
    def override(self) -> Path | None:
        """The authored model answers, when there are some."""
        path = self.directory / "replay.override.json"
        return path if path.exists() else None

    @property
    def model(self) -> Path:
        """The script of the model server: what a recording talks to, and what a foreign agent replays."""
        return self.directory / "model.json"

    def logs(self) -> list[Path]:
        """`session.jsonl`, `session.2.jsonl`, … as far as they exist without a gap."""
        paths: list[Path] = []
        while (path := self.log_path(len(paths) + 1)).exists():
            paths.append(path)
        return paths

    def log_path(self, number: int) -> Path:
        """Where the log of the session of this number (from 1) belongs."""
        return self.fixture if number == 1 else self.directory / f"session.{number}.jsonl"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of the client. `number` counts from 1; `session` is its alias, `""` by default."""

    number: int
    op: str
    session: str
    fields: JsonObject


@dataclass(frozen=True, slots=True)
class Script:
    """The client's side of a run. `answers` maps `permission`, `elicitation`, `fs`, `terminal` to their queue.

    An answer with a `session` (an alias) is kept for the requests of that session, one with a `method` for that method.
    """

    steps: tuple[Step, ...]
    answers: Mapping[str, tuple[JsonObject, ...]] = field(default_factory=dict[str, tuple[JsonObject, ...]])


_ROW_KEYS = {"name", "has_model_turn", "source", "env", "capabilities", "concurrent"}
_AGENT_KEYS = {"command", "settles_session", "spill_root", "replay_env", "log_glob"}


def load_scenarios(root: Path) -> list[Scenario]:
    """The scenarios that `root/scenarios.toml` declares, in its order. Raises `ScenarioError`."""
    path = root / "scenarios.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, str(error)) from error
    agent: JsonObject = table.get("agent", {})
    if extra := sorted(agent.keys() - _AGENT_KEYS):
        raise ScenarioError(path, f"[agent]: unknown {', '.join(extra)}")
    if ("replay_env" in agent) != ("log_glob" in agent):
        raise ScenarioError(path, "[agent]: replay_env and log_glob stand together")
    command = tuple(agent.pop("command", AgentProfile().command))
    profile = AgentProfile(command=command, **agent)
    return [_scenario(path, row, profile) for row in table.get("scenario", [])]


def _scenario(path: Path, row: JsonObject, profile: AgentProfile) -> Scenario:
    name = row.get("name")
    if not isinstance(name, str):
        raise ScenarioError(path, f"a scenario without a name: {row}")
    if extra := sorted(row.keys() - _ROW_KEYS):
        raise ScenarioError(path, f"{name}: unknown {', '.join(extra)}")
    if not isinstance(row.get("has_model_turn"), bool) or row.get("source") not in {"recorded", "authored"}:
        raise ScenarioError(path, f"{name}: has_model_turn (bool) and source (recorded or authored) are needed")
    return Scenario(
        directory=path.parent / name,
        has_model_turn=row["has_model_turn"],
        source=row["source"],
        env=row.get("env", {}),
        capabilities=tuple(row.get("capabilities", ())),
        concurrent=row.get("concurrent", False),
        profile=profile,
    )


_PROMPT = {"text", "blocks"}
# operation → (needed fields, allowed further fields)
OPERATIONS: Mapping[str, tuple[set[str], set[str]]] = {
    "initialize": (set(), {"terminalOutput", "capabilities"}),
    "newSession": (set(), {"additionalDirectories", "mcpServers"}),
    "newSessionExpectError": (set(), {"cwd", "additionalDirectories", "mcpServers"}),
    "loadSession": (set(), set()),
    "resumeSession": (set(), set()),
    "closeSession": (set(), set()),
    "listSessions": (set(), {"cwd", "cursor"}),
    "prompt": (set(), _PROMPT | {"wait"}),
    "promptExpectError": (set(), _PROMPT),
    "promptAndCancel": (set(), _PROMPT | {"afterUpdate", "waitForFile"}),
    "cancel": (set(), set()),
    "setMode": ({"modeId"}, set()),
    "setConfigOption": ({"configId", "value"}, set()),
    "request": ({"method"}, {"params"}),
    "requestExpectError": ({"method"}, {"params"}),
    "waitForTurnEnd": (set(), {"timeoutMs"}),
    "waitForUpdate": ({"match"}, {"timeoutMs"}),
    "expectQuiet": ({"ms"}, set()),
    "advance": ({"ms"}, set()),
    "restart": (set(), set()),
}
_ANSWER_KEYS = {
    "permission": {"kind", "late", "never", "error", "unknown"},
    "elicitation": {"result", "late", "never", "error"},
    "fs": {"result", "late", "never", "error"},
    "terminal": {"result", "late", "never", "error"},
}


def load_script(path: Path) -> Script:
    """Read an `input.json`. Raises `ScenarioError`."""
    try:
        table = as_object(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, str(error)) from error
    if table is None or not isinstance(table.get("steps"), list):
        raise ScenarioError(path, 'this is no {"steps": […]}')
    queues = {f"{name}Answers": name for name in _ANSWER_KEYS}
    if extra := sorted(table.keys() - {"steps", *queues}):
        raise ScenarioError(path, f"unknown {', '.join(extra)}")
    return Script(
        steps=tuple(_step(path, number, row) for number, row in enumerate(table["steps"], start=1)),
        answers={name: _answers(path, key, name, table[key]) for key, name in queues.items() if key in table},
    )


def load_model(path: Path) -> list[JsonObject]:
    """The answers of a model script (see `model_server`). Raises `ScenarioError`."""
    try:
        rows = as_list(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, str(error)) from error
    if rows is None:
        raise ScenarioError(path, "this is no list of answers")
    return rows


def _step(path: Path, number: int, row: Any) -> Step:
    fields = dict(as_object(row) or {})
    op, session = fields.pop("op", None), fields.pop("session", "")
    if op not in OPERATIONS:
        raise ScenarioError(path, f"step {number}: unknown operation {row!r}")
    needed, allowed = OPERATIONS[op]
    if missing := sorted(needed - fields.keys()):
        raise ScenarioError(path, f"step {number} ({op}): needs {', '.join(missing)}")
    if extra := sorted(fields.keys() - needed - allowed):
        raise ScenarioError(path, f"step {number} ({op}): unknown {', '.join(extra)}")
    if allowed >= _PROMPT and len(_PROMPT & fields.keys()) != 1:
        raise ScenarioError(path, f"step {number} ({op}): needs either text or blocks")
    return Step(number, op, session, fields)


def _answers(path: Path, key: str, name: str, rows: Any) -> tuple[JsonObject, ...]:
    known = _ANSWER_KEYS[name]
    for number, row in enumerate(rows, start=1):
        table = as_object(row) or {}
        if len(table.keys() - ADDRESS) != 1 or not table.keys() <= known | ADDRESS:
            raise ScenarioError(path, f"{key} {number}: {row!r} is not one of {', '.join(sorted(known))}")
    return tuple(rows)
