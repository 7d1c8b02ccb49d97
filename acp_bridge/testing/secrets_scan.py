"""Finds secrets in text that is about to become a file (contract snapshots.md §4, §6).

May not know: scenarios. Invariant: a finding says what kind of secret stands where, and never repeats it.
"""

import json
import re
from collections.abc import Iterator, Mapping

from acp_bridge.testing.guards import SECRETS

_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST = 8  # characters; a shorter value is met by chance


def secrets_in(text: str, *, environment: Mapping[str, str]) -> Iterator[str]:
    """`a secret at line 3, character 14 (…why…)` for every secret of the environment, and what looks like one."""
    if found := SECRETS.search(text):
        yield f"something that looks like a secret at {_place(text, found.start())}"
    for name, value in environment.items():
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name):
            # as it is, and as it stands inside a JSON string
            for spelling in {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}:
                if (at := text.find(spelling)) >= 0:
                    yield f"the value of {name} at {_place(text, at)}"


def _place(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at)
    return f"line {text.count(chr(10), 0, at) + 1}, character {at - start}"
