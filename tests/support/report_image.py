"""`bin/report-image`: takes docs/images/report.png from a real report, with one deliberate difference in a golden."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.json_values import read_lines
from acp_bridge.testing.judge import judge
from acp_bridge.testing.report import ReportRun, write_report
from acp_bridge.testing.scenario import load_scenarios
from tests.support.browser import browser
from tests.support.official import agent_command, referee

SHOWN = ("two-sessions", "tool-call-turn", "load-replay", "cancel")
CHANGED = ("two-sessions", '"text":" *pear*"', '"text":" *plum*"')
HEIGHT = 1700  # pixels; the width is 1280


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree("snapshots", Path(folder, "snapshots"))
        # the accept command on the page names the folder as a reader would
        os.chdir(folder)
        name, old, new = CHANGED
        golden = Path("snapshots", name, "stdout.golden.jsonl")
        golden.write_text(golden.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
        runs: list[ReportRun] = []
        for scenario in sorted(
            (scenario for scenario in load_scenarios(Path("snapshots")) if scenario.name in SHOWN),
            key=lambda scenario: SHOWN.index(scenario.name),
        ):
            run = run_scenario(scenario, command=agent_command())
            runs.append(ReportRun(scenario.name, judge(scenario, run, referee()), run, read_lines(scenario.golden)))
        write_report(Path("report.html"), runs)
        with browser(Path(folder, "profile")) as driver:
            driver.set_window_size(1280, HEIGHT)
            driver.get(Path("report.html").absolute().as_uri())
            driver.execute_script("document.querySelectorAll('#s1-d1 details')[1].open = true;")
            driver.save_screenshot(str(target))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
