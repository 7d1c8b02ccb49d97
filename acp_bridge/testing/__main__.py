"""`python -m acp_bridge.testing check|record|refresh|accept [--root DIR] [NAME…]`: the tier from the command line.

May not know: the agent under test beyond its profile. Invariant: `check` writes nothing; the exit code is 0 exactly
when every named scenario is as it should be, 2 when the scenarios cannot be read.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from acp_bridge.testing.guards import check_folders
from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.judge import judge
from acp_bridge.testing.record import RecordingError, accept, record
from acp_bridge.testing.refresh import refresh
from acp_bridge.testing.scenario import Scenario, ScenarioError, load_scenarios
from acp_bridge.testing.validate import Referee


def main(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m acp_bridge.testing", description="Snapshot scenarios of an ACP agent."
    )
    parser.add_argument("action", choices=["check", "record", "refresh", "accept"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; all of them when none is named")
    parser.add_argument("--root", type=Path, default=Path("snapshots"), help="folder of scenarios.toml")
    # options may stand between the names, too
    given = parser.parse_intermixed_args(argv)
    if environment.get("CI") and given.action != "check":
        _say(f"{given.action} writes into the scenarios, and CI never writes: run it where you can review it")
        return 2
    try:
        scenarios = load_scenarios(given.root)
        chosen = [scenario for scenario in scenarios if scenario.name in given.names or not given.names]
        if unknown := sorted(set(given.names) - {scenario.name for scenario in scenarios}):
            raise ScenarioError(given.root / "scenarios.toml", f"declares no {', '.join(unknown)}")
        failed = 0
        for scenario in chosen:
            findings = _act(given.action, scenario, Referee(environment=environment))
            failed += bool(findings)
            _say("\n".join([f"{'FAIL' if findings else 'ok  '} {scenario.name}", *findings]))
        if given.action == "check":
            findings = check_folders(given.root, scenarios)
            failed += bool(findings)
            _say("\n".join(findings or ["ok   the folders"]))
    except ScenarioError as error:
        _say(str(error))
        return 2
    return 1 if failed else 0


def _act(action: str, scenario: Scenario, referee: Referee) -> list[str]:
    try:
        if action == "record":
            record(scenario)
        elif action == "refresh":
            _say("\n".join(refresh(scenario) or [f"{scenario.name} is as it was"]))
        run = run_scenario(scenario)
        if action == "accept":
            accept(scenario, run)
            return run.failures
    except RecordingError as error:
        return [str(error)]
    # a recording proves itself: it must replay to the same log and transcript
    return judge(scenario, run, referee)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
