"""`bin/stress-bash`: what it promises of hundreds of hostile commands holds for a few as well."""

import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def stress(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tests.support.stress_bash", *arguments]
    return subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)


def test_mixed_hostile_commands_leave_nothing_and_hold_nothing_up():
    run = stress("--commands", "25", "--seconds", "6")
    assert run.returncode == 0, run.stdout + run.stderr
    figures = dict(re.findall(r"^(\w[\w ]+?) {2,}(-?[\d.]+)", run.stdout, re.MULTILINE))
    assert float(figures.pop("RSS growth")) < 5
    assert figures == {"survivors": "0", "leaked fds": "0", "late timers": "0"}


def test_a_run_without_commands_is_no_success():
    assert stress("--commands", "0", "--seconds", "0").returncode == 1
