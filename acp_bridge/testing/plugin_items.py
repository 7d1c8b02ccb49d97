"""Scenarios as pytest items: one each, one for the folders themselves, and their mutations and fuzzed runs.

May not know: how results are shown. Invariant: only `record`, `refresh` and `--acp-update` write, and never a fixture
by `--acp-update`; a scenario is played once for each of its items.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest

from acp_bridge.testing.guards import check_folders
from acp_bridge.testing.harness import Run, run_scenario
from acp_bridge.testing.json_values import JsonObject, read_lines
from acp_bridge.testing.judge import judge
from acp_bridge.testing.mutate import RecordedRequest, mutation_survives, recorded_requests
from acp_bridge.testing.pacing import STEADY, Pacing, RandomPacing
from acp_bridge.testing.plugin_options import Options, found_command
from acp_bridge.testing.record import RecordingError, accept, record
from acp_bridge.testing.refresh import refresh
from acp_bridge.testing.run_record import run_record
from acp_bridge.testing.scenario import Scenario, ScenarioError, load_scenarios
from acp_bridge.testing.validate import Referee


class ScenarioFailed(Exception):
    """What was found, as text for a person."""


class AcpItem(pytest.Item):
    """An item that fails with a text, not with a traceback. `acp_left` is what it leaves for the end of the run."""

    def __init__(self, *, options: Options, **rest: Any) -> None:
        super().__init__(**rest)  # pyright: ignore[reportUnknownMemberType] - pytest leaves it untyped
        self.options = options
        self.acp_left: JsonObject = {}

    @classmethod
    def under(cls, parent: pytest.Collector, name: str, **rest: Any) -> Self:
        """`from_parent`, with types."""
        kind: Any = cls
        return kind.from_parent(parent, name=name, **rest)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text alone when the failure is one of ours."""
        if isinstance(excinfo.value, ScenarioFailed | ScenarioError | RecordingError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands in the report."""
        return self.path, None, self.name


class ScenarioFile(pytest.File):
    """A `scenarios.toml`."""

    def __init__(self, *, options: Options, **rest: Any) -> None:
        super().__init__(**rest)
        self._options = options

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each scenario, and what the options add."""
        options = self._options
        # as the user spells the folder: failures name it
        folder = Path(os.path.relpath(self.path.parent))
        try:
            scenarios = load_scenarios(folder)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from error
        for scenario in scenarios:
            yield ScenarioItem.under(self, scenario.name, scenario=scenario, options=options)
            if options.mode != "replay":
                continue
            for request in recorded_requests(scenario) if options.mutate else ():
                name = f"{scenario.name}[mutate {request}]"
                yield MutationItem.under(self, name, scenario=scenario, request=request, options=options)
            for seed in range(1, options.fuzz + 1):
                yield ScenarioItem.under(
                    self,
                    f"{scenario.name}[fuzz {seed}]",
                    scenario=scenario,
                    options=replace(options, update=False),
                    pacing=RandomPacing(seed),
                )
        yield FoldersItem.under(self, "folders", root=folder, scenarios=scenarios, options=options)


class ScenarioItem(AcpItem):
    """One scenario, played in the mode of the run."""

    def __init__(self, *, scenario: Scenario, pacing: Pacing = STEADY, **rest: Any) -> None:
        super().__init__(**rest)
        self._scenario = scenario
        self._pacing = pacing

    def runtest(self) -> None:
        """Play it. Raises `ScenarioFailed`, `ScenarioError`, `RecordingError`."""
        scenario, options = self._scenario, self.options
        command = command_for(scenario, options)
        if options.mode == "record":
            if scenario.source == "authored":
                pytest.skip("authored: there is no model to record")
            record(scenario, command=command, env=options.env)
            self.acp_left = {"notes": [f"recorded {scenario.name}"]}
            return
        if options.mode == "refresh":
            changes = refresh(scenario, command=command, env=options.env)
            self.acp_left = {"notes": [f"refreshed {scenario.name}: {len(changes) or 'no'} changes", *changes]}
            return
        run = run_scenario(scenario, command=command, env=options.env, pacing=self._pacing)
        if options.update and not run.failures:
            accept(scenario, run)
        findings = self._findings(scenario, run)
        self.acp_left = {"unchecked": referee().skipped}
        if options.report is not None:
            golden = read_lines(scenario.golden) if scenario.golden.exists() else None
            self.acp_left |= {"name": self.name, "run": run_record(run), "findings": findings, "golden": golden}
        if findings:
            raise ScenarioFailed("\n\n".join(findings))

    def _findings(self, scenario: Scenario, run: Run) -> list[str]:
        if not scenario.golden.exists():
            return [*run.failures, f"{scenario.golden}: there is none; {self._again('--acp-update')} writes it"]
        findings = judge(
            scenario,
            run,
            referee(),
            accept=self._again("--acp-update"),
            record=f"{self._again('--acp-mode record')}, or refresh",
        )
        for _name, plugin in self.config.pluginmanager.list_name_plugin():
            check = getattr(plugin, "acp_scenario_checks", None)
            findings += (check(scenario=scenario, run=run) or []) if check is not None else []
        return findings

    def _again(self, words: str) -> str:
        agent = f"--acp-agent {shlex.quote(shlex.join(self.options.command))} " if self.options.command else ""
        scenario = self._scenario
        return f"pytest {agent}--acp-scenarios {scenario.directory.parent} {words} -k {scenario.name}"


class MutationItem(AcpItem):
    """A scenario with one recorded request altered: it passes when that is noticed."""

    def __init__(self, *, scenario: Scenario, request: RecordedRequest, **rest: Any) -> None:
        super().__init__(**rest)
        self._scenario = scenario
        self._request = request

    def runtest(self) -> None:
        """Replay it. Raises `ScenarioFailed` when the mutation survives."""
        command = command_for(self._scenario, self.options)
        survived = mutation_survives(self._scenario, self._request, command=command, env=self.options.env)
        if survived:
            raise ScenarioFailed(survived)


class FoldersItem(AcpItem):
    """The folders themselves: complete, declared, clean."""

    def __init__(self, *, root: Path, scenarios: list[Scenario], **rest: Any) -> None:
        super().__init__(**rest)
        self._root = root
        self._scenarios = scenarios

    def runtest(self) -> None:
        """Look at them. Raises `ScenarioFailed`."""
        if self.options.mode != "replay" or self.options.update:
            pytest.skip("looked at when nothing is being written")
        if findings := check_folders(self._root, self._scenarios):
            raise ScenarioFailed("\n".join(findings))


@cache
def referee() -> Referee:
    """The one of this process: loading the schema and the models takes longer than a scenario."""
    return Referee(environment=os.environ)


def command_for(scenario: Scenario, options: Options) -> tuple[str, ...]:
    """What starts the agent: the option, else the profile."""
    return options.command or found_command(list(scenario.profile.command))
