"""What the `--acp-…` options say, read once.

May not know: items, scenarios. Invariant: an option that cannot be followed is a `pytest.UsageError` before anything
runs; where `CI` is set, nothing that writes into the scenarios is allowed.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True, slots=True)
class Options:
    """`command` None: the one of `scenarios.toml`. `known` are ids of rules."""

    command: tuple[str, ...] | None
    scenarios: Path | None
    mode: str
    update: bool
    mutate: bool
    fuzz: int
    report: Path | None
    env: Mapping[str, str]
    conformance: bool
    strict: bool
    known: tuple[str, ...]
    json: Path | None

    @property
    def in_use(self) -> bool:
        """Whether this run has items of ours."""
        return self.conformance or self.scenarios is not None


def add_options(parser: pytest.Parser) -> None:
    """Declare them, in a group of their own."""
    group = parser.getgroup("acp", "Agent Client Protocol")
    group.addoption("--acp-agent", metavar="COMMAND", help="how the agent is started")
    group.addoption("--acp-scenarios", metavar="DIR", help="run the scenarios of DIR/scenarios.toml")
    group.addoption(
        "--acp-mode",
        choices=["replay", "record", "refresh"],
        default="replay",
        help="replay: compare (default); record: ask the model anew; refresh: keep what the model said, renew the rest",
    )
    group.addoption("--acp-update", action="store_true", help="take the transcripts of this run as right")
    group.addoption(
        "--acp-mutate", action="store_true", help="also run with every recorded request altered: each must be noticed"
    )
    group.addoption(
        "--acp-fuzz",
        type=int,
        default=0,
        metavar="N",
        help="also run every scenario N times with input cut anywhere and answers at random moments",
    )
    group.addoption("--acp-report", metavar="FILE.html", help="write a page about the scenarios that ran")
    group.addoption(
        "--acp-env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable for the agent; {model_url} is the address of the scripted model",
    )
    group.addoption("--acp-conformance", action="store_true", help="check the agent against the protocol")
    group.addoption("--acp-strict", action="store_true", help="rules of strength SHOULD and CLIENT fail the run, too")
    group.addoption(
        "--acp-known", action="append", default=[], metavar="ID,…", help="rules that the agent is known to break"
    )
    group.addoption("--acp-json", metavar="FILE", help="write the results of the rules")


def read_options(config: pytest.Config, environment: Mapping[str, str] = os.environ) -> Options:
    """The options of this run. Raises `pytest.UsageError`."""
    value: Any = config.getoption
    given = value("--acp-scenarios")
    options = Options(
        command=_command(value("--acp-agent")),
        scenarios=_folder(config, given) if given else None,
        mode=value("--acp-mode"),
        update=value("--acp-update"),
        mutate=value("--acp-mutate"),
        fuzz=value("--acp-fuzz"),
        report=_path(config, value("--acp-report")),
        env=dict(map(_variable, value("--acp-env"))),
        conformance=value("--acp-conformance"),
        strict=value("--acp-strict"),
        known=tuple(rule for text in value("--acp-known") for rule in text.split(",") if rule),
        json=_path(config, value("--acp-json")),
    )
    if options.conformance and options.command is None:
        raise pytest.UsageError('--acp-conformance needs --acp-agent "COMMAND"')
    if options.scenarios and not (options.scenarios / "scenarios.toml").is_file():
        raise pytest.UsageError(f"--acp-scenarios: there is no {options.scenarios / 'scenarios.toml'}")
    if options.update and options.mode != "replay":
        raise pytest.UsageError(f"--acp-update belongs to --acp-mode replay; {options.mode} writes goldens by itself")
    if environment.get("CI") and (options.update or options.mode != "replay"):
        word = "--acp-update" if options.update else f"--acp-mode {options.mode}"
        raise pytest.UsageError(
            f"{word} writes into the scenarios, and CI never writes: run it where you can review it"
        )
    return options


def _folder(config: pytest.Config, text: str) -> Path:
    """As seen from here, or from the root of the project, whose configuration may have named it."""
    here = (config.invocation_params.dir / text).resolve()
    return here if here.is_dir() else (config.rootpath / text).resolve()


def _command(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    words = shlex.split(text)
    if not words:
        raise pytest.UsageError("--acp-agent: the command is empty")
    return found_command(words)


def found_command(words: list[str]) -> tuple[str, ...]:
    """The command as it can be started anywhere: an agent runs in a directory of its own.

    Words that name a file here become absolute. A program that is not on PATH is looked for beside this interpreter,
    where its environment installs commands.
    """
    program, *arguments = words
    if "/" not in program and shutil.which(program) is None:
        beside = os.path.join(os.path.dirname(sys.executable), program)
        program = beside if os.path.isfile(beside) else program
    elif "/" in program:
        program = os.path.abspath(program)
    return (program, *(os.path.abspath(word) if os.path.isfile(word) else word for word in arguments))


def _path(config: pytest.Config, text: str | None) -> Path | None:
    return config.invocation_params.dir / text if text else None


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise pytest.UsageError(f"--acp-env: {text!r} is not NAME=VALUE")
    return name, value
