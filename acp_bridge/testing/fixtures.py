"""Fixtures for people who write Python tests: a virtual editor, and scenarios by name.

May not know: the agent under test. Invariant: nothing is imported before a test asks; after the test every process is
dead and every temporary directory gone.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from acp_bridge.testing.plugin_options import Options, found_command, read_options

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from acp_bridge.testing.conformance.agent import LabAgent
    from acp_bridge.testing.conformance.lab import Lab
    from acp_bridge.testing.conformance.model import LabModel
    from acp_bridge.testing.harness import Run
    from acp_bridge.testing.json_values import JsonObject
    from acp_bridge.testing.pacing import Pacing


_LIMIT_SECONDS = 600.0  # of one test; its agents are ended then


class ClientFactory:
    """Call it for a virtual editor with its own process of the agent.

    `model` is the scripted model that all of them talk to, `cwd` their working directory.
    """

    def __init__(self, lab: Lab, stack: contextlib.ExitStack, options: Options) -> None:
        self._lab = lab
        self._stack = stack
        self._options = options

    @property
    def model(self) -> LabModel:
        """`model.script({"text": ["hi"]})` before the prompt, `model.requests` after it."""
        return self._lab.model

    @property
    def cwd(self) -> Path:
        """Where the agent runs and its sessions work."""
        return self._lab.cwd

    def __call__(
        self,
        command: Sequence[str] | None = None,
        *,
        capabilities: JsonObject | None = None,
        initialize: bool = True,
        env: Mapping[str, str] | None = None,
        **answers: Sequence[JsonObject],
    ) -> LabAgent:
        """Start an agent: `command`, or `--acp-agent`.

        `permission`, `elicitation`, `fs` and `terminal` are the answers to its requests, first in, first out, as in
        `input.json` (without `late`): `permission=[{"kind": "allow_once"}]`. Raises `ValueError` without a command.
        """
        from acp_bridge.testing.answers import Answers  # noqa: PLC0415 - only a test that uses it pays for it

        given = found_command(list(command)) if command is not None else self._options.command
        if given is None:
            raise ValueError("which agent? give --acp-agent, or call acp_client with a command")
        queues = Answers(answers)

        def answer(request: JsonObject) -> JsonObject | None:
            response = queues.answer(request)
            return None if response is None else {key: item for key, item in response.items() if key != "id"}

        return self._stack.enter_context(
            self._lab.agent(
                command=given,
                capabilities=capabilities,
                initialize=initialize,
                env={**self._options.env, **(env or {})},
                answers=answer,
            )
        )


@pytest.fixture
def acp_client(pytestconfig: pytest.Config) -> Generator[ClientFactory]:
    """`agent = acp_client(permission=[{"kind": "allow_once"}])`: a started, initialized agent to talk to."""
    from acp_bridge.testing.conformance.lab import laboratory  # noqa: PLC0415 - only a test that uses it pays for it

    options = read_options(pytestconfig)
    # every client names its own command: the laboratory's is not used
    room = laboratory(options.command or ("agent",), env=options.env, limit=_LIMIT_SECONDS)
    with room as lab, contextlib.ExitStack() as stack:
        yield ClientFactory(lab, stack, options)


class ScenarioRunner:
    """Call it with a scenario's name for its run."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def __call__(
        self,
        name: str,
        *,
        root: Path | None = None,
        env: Mapping[str, str] | None = None,
        pacing: Pacing | None = None,
    ) -> Run:
        """Play scenario `name` of `root`, or of `--acp-scenarios`. Raises `ScenarioError`, `ValueError`."""
        from acp_bridge.testing.harness import run_scenario  # noqa: PLC0415 - only a test that uses it pays for it
        from acp_bridge.testing.pacing import STEADY  # noqa: PLC0415 - only a test that uses it pays for it
        from acp_bridge.testing.scenario import ScenarioError, load_scenarios  # noqa: PLC0415 - only its users pay

        folder = root or self._options.scenarios
        if folder is None:
            raise ValueError("which scenarios? give --acp-scenarios, or call acp_scenario with a root")
        for scenario in load_scenarios(folder):
            if scenario.name == name:
                command = self._options.command or found_command(list(scenario.profile.command))
                given = {**self._options.env, **(env or {})}
                return run_scenario(scenario, command=command, env=given, pacing=pacing or STEADY)
        raise ScenarioError(folder / "scenarios.toml", f"declares no {name}")


@pytest.fixture
def acp_scenario(pytestconfig: pytest.Config) -> ScenarioRunner:
    """`run = acp_scenario("text-turn")`: the frames, the normalised transcript and the logs of a played scenario."""
    return ScenarioRunner(read_options(pytestconfig, os.environ))
