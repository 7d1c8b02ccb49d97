"""The rules that are saved for a project: one file per project, outside of it.

May not know: sessions, modes. Invariant: the file is 0600 in a 0700 directory, is replaced whole or not at all, and is
read anew whenever it has changed: what another agent has saved or revoked holds at once. A file that cannot be read
gives no rule, says so, and is put aside, not overwritten, by the next save.
"""

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from acp_bridge.permission.rules import Rule, read_target, target_json
from acp_bridge.private_file import only_writer, replace_file
from agent_loop.vocabulary import JsonObject

_VERSION: Final = 1
_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Saved:
    """The rules of a project. `problem`: why they could not be read, None when all is well."""

    rules: tuple[Rule, ...] = ()
    problem: str | None = None


class Ledger:
    """The files below `root`. `project` is always a resolved directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, tuple[_Stamp, Saved]] = {}

    def path(self, project: str) -> Path:
        """The file of a project."""
        return self._root / f"{hashlib.sha256(os.fsencode(project)).hexdigest()[:16]}.json"

    def saved(self, project: str) -> Saved:
        """The rules as they now are. Never raises."""
        path = self.path(project)
        try:
            stamp = _stamp(os.stat(path))
            known = self._read.get(project)
            if known is None or known[0] != stamp:
                known = self._read[project] = (stamp, _parse(path.read_bytes(), project))
        except FileNotFoundError:
            return Saved()
        except OSError as error:
            return Saved(problem=str(error))
        return known[1]

    def add(self, project: str, rules: tuple[Rule, ...]) -> None:
        """Save rules besides those that are there. Raises `OSError`."""
        with self._changing(project) as before:
            self._write(project, tuple(dict.fromkeys([*before, *rules])))

    def remove(self, project: str, rules: tuple[Rule, ...]) -> None:
        """Revoke rules. Raises `OSError`."""
        with self._changing(project) as before:
            self._write(project, tuple(rule for rule in before if rule not in rules))

    @contextmanager
    def _changing(self, project: str) -> Generator[tuple[Rule, ...]]:
        """One writer at a time, also between processes; yields the rules as they are on the disk."""
        with only_writer(str(self._root)):
            saved = self.saved(project)
            if saved.problem is not None:
                path = self.path(project)
                os.replace(path, path.with_suffix(".damaged"))
            yield saved.rules

    def _write(self, project: str, rules: tuple[Rule, ...]) -> None:
        rows = [{"effect": rule.effect, **target_json(rule.target)} for rule in rules]
        text = json.dumps({"version": _VERSION, "project": project, "rules": rows}, indent=1)
        replace_file(str(self.path(project)), text + "\n")


def _stamp(facts: os.stat_result) -> _Stamp:
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _parse(content: bytes, project: str) -> Saved:
    try:
        value: object = json.loads(content)
    except ValueError as error:
        return Saved(problem=str(error))
    table = _table(value)
    rows: object = table.get("rules")
    if table.get("version") != _VERSION or table.get("project") != project or not isinstance(rows, list):
        return Saved(problem="it is not a list of this project's rules")
    rules = [_rule(_table(row)) for row in cast("list[Any]", rows)]
    known = tuple(rule for rule in rules if rule)
    return (
        Saved(known) if len(known) == len(rules) else Saved(problem="it holds a rule that this version does not know")
    )


def _table(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _rule(row: JsonObject) -> Rule | None:
    effect, target = row.get("effect"), read_target(row)
    return Rule(effect, target, "project") if target and effect in ("allow", "deny") else None
