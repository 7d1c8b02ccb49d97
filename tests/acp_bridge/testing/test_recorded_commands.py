"""What the scenarios of this repository run: nothing that is another thing tomorrow, or elsewhere."""

import re
from pathlib import Path

from acp_bridge.testing.json_values import read_lines

ROOT = Path(__file__).parents[3] / "snapshots"
UNSTEADY = re.compile(r"\b(date|env|printenv|hostname|whoami|uname|nohup|disown|ps|yes)\b|RANDOM|(?<![&>])&(?![&>\d])")


def test_no_recorded_command_tells_the_time_or_the_machine_or_goes_on_alone():
    rows = [row for path in sorted(ROOT.glob("*/session*.jsonl")) for row in read_lines(path)]
    calls = {row["data"]["arguments"] for row in rows if row["type"] == "tool/call"}
    assert len(calls) > 10
    assert [arguments for arguments in sorted(calls) if UNSTEADY.search(arguments)] == []
