"""The pytest plugin: `pytest --acp-agent "COMMAND" --acp-scenarios DIR` and `--acp-conformance` (contract §6, §7).

May not know: the agent under test. Invariant: a run that uses none of its options and fixtures imports nothing more
than this file needs, and collects nothing of it.

Asked for on the command line without paths, scenarios and rules are all that runs. In a configuration (`addopts`) they
join what is collected: the scenarios where their folder is, e.g. by `testpaths = ["tests", "snapshots"]`.

A function `acp_scenario_checks(scenario, run)` in a `conftest.py` or a plugin checks what only the product can check of
a run, and returns its findings. It is looked up by name: pytest takes nothing for a hook that is not called `pytest_…`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from acp_bridge.testing.fixtures import acp_client, acp_scenario
from acp_bridge.testing.plugin_options import Options, add_options, read_options

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["acp_client", "acp_scenario"]

OPTIONS = pytest.StashKey[Options]()
_WORDS = ("--acp-scenarios", "--acp-conformance")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, aim the collection, and gather results where the run is controlled."""
    options = config.stash[OPTIONS] = read_options(config)
    if not options.in_use:
        return
    if any(str(argument).startswith(_WORDS) for argument in config.invocation_params.args):
        scenarios = [str(options.scenarios / "scenarios.toml")] if options.scenarios else []
        chosen = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
        config.args = [*chosen, *(path for path in scenarios if not _names(chosen, path))]
    if not hasattr(config, "workerinput"):
        from acp_bridge.testing.plugin_results import Results  # noqa: PLC0415 - only a run that uses it pays for it

        config.pluginmanager.register(Results(options), "acp-results")


def _names(arguments: list[str], path: str) -> bool:
    """Whether the user named the scenarios already, e.g. one of them by its node id."""
    from pathlib import Path  # noqa: PLC0415 - only a run that uses it pays for it

    paths = [Path(argument.partition("::")[0]).resolve() for argument in arguments]
    return any(Path(path).is_relative_to(given) for given in paths)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `scenarios.toml` of the folder that `--acp-scenarios` names."""
    options = parent.config.stash[OPTIONS]
    if file_path.name != "scenarios.toml" or file_path.parent.resolve() != options.scenarios:
        return None
    from acp_bridge.testing.plugin_items import ScenarioFile  # noqa: PLC0415 - only a run that uses it pays for it

    kind: Any = ScenarioFile
    return kind.from_parent(parent, path=file_path, options=options)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for each rule; before `-k` selects."""
    options = config.stash[OPTIONS]
    if options.conformance:
        from acp_bridge.testing.plugin_rules import rule_suite  # noqa: PLC0415 - only a run that uses it pays for it

        report = config.hook.pytest_make_collect_report(collector=rule_suite(session, options))
        config.hook.pytest_collectreport(report=report)
        items += report.result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Send what an item leaves for the end of the run along with its report, also from another process."""
    report = yield
    if (left := getattr(item, "acp_left", None)) and report.when == "call":
        report.acp = left
    return report
