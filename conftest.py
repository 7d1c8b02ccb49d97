"""What only this product can check of a replayed scenario (`--acp-scenarios snapshots`); how the suite is collected."""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acp_bridge.testing.harness import Run
    from acp_bridge.testing.scenario import Scenario


def acp_scenario_checks(scenario: Scenario, run: Run) -> list[str]:
    """The official schema where it is found, and the universal replay invariant: a log keeps its meaning."""
    from acp_bridge.testing.json_values import read_lines  # noqa: PLC0415 - a run without scenarios does not need it
    from acp_bridge.testing.normalise import normalise_log  # noqa: PLC0415 - for scenarios alone
    from tests.support.history import history  # noqa: PLC0415 - for scenarios alone
    from tests.support.official import schema_referee  # noqa: PLC0415 - for scenarios alone

    findings = schema_referee().violations(run.entries)
    for path, log in zip(scenario.logs(), run.logs, strict=False):
        if log is not None and history(log) != history(normalise_log(read_lines(path))):
            findings.append(f"{path}: the history derived from the log that was written again is another one")
    return findings


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Unless the run is a long one, the last altered request of every third scenario stands for all.

    To alter the last one, all before it must have been played and found right.
    """
    altered: dict[str, list[pytest.Item]] = {}
    for item in items:
        name, is_altered, _request = item.name.partition("[mutate ")
        if is_altered:
            altered.setdefault(name, []).append(item)
    for number, of_one in enumerate(altered.values()):
        for item in of_one[: -1 if number % 3 == 0 else None]:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of modules and items are made that stay: to look for garbage among them is a third of the work."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
