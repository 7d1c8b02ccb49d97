"""Whatever the order of events: a replay comes to the same transcript (our agent, the real console script)."""

import json
import os
from itertools import groupby
from pathlib import Path

import pytest

from acp_bridge.testing.harness import Run, run_scenario
from acp_bridge.testing.json_values import read_lines
from acp_bridge.testing.judge import judge
from acp_bridge.testing.model_thread import served
from acp_bridge.testing.pacing import RandomPacing
from acp_bridge.testing.scenario import load_model, load_scenarios
from tests.support.official import agent_command, referee

pytestmark = pytest.mark.usefixtures("unmeasured")

ROOT = Path(__file__).parent.parent / "snapshots"
SCENARIOS = {scenario.name: scenario for scenario in load_scenarios(ROOT)}
SEEDS = range(1, 11 if os.environ.get("DSH_LONG") else 4)


def sessions_in_order(run: Run) -> list[str]:
    """The session of each update, in the order of the wire, by its mask."""
    ids: dict[str, str] = {}
    updates = [entry.frame["params"] for entry in run.entries if entry.frame.get("method") == "session/update"]
    return [ids.setdefault(params["sessionId"], f"s{len(ids) + 1}") for params in updates]


@pytest.mark.parametrize("seed", SEEDS)
def test_three_sessions_at_the_same_time_are_the_same_three_transcripts(seed):
    scenario = SCENARIOS["three-sessions"]
    run = run_scenario(scenario, command=agent_command(), pacing=RandomPacing(seed))
    assert judge(scenario, run, referee()) == []
    order = sessions_in_order(run)
    turns = order[order.index("s3") + 1 :]  # behind the opening of the last session
    # at the same time: a session goes on after another has said something
    assert len(list(groupby(turns))) > len(set(turns))


@pytest.mark.parametrize("name", ["tool-call-turn", "load-replay"])
def test_input_cut_anywhere_is_heard_the_same(name):
    scenario = SCENARIOS[name]
    run = run_scenario(scenario, command=agent_command(), pacing=RandomPacing(7))
    assert judge(scenario, run, referee()) == []


def test_a_model_that_sends_byte_by_byte_is_heard_the_same():
    scenario = SCENARIOS["tool-call-turn"]
    answers = [{**answer, "one_byte": True} for answer in load_model(scenario.model)]
    with served(answers) as server:
        run = run_scenario(scenario, mode="record", command=agent_command(), model_url=server.base_url)
    assert run.failures == []
    # what initialize offers may differ: a replay needs no key
    assert json.dumps(run.transcript[1:]) == json.dumps(read_lines(scenario.golden)[1:])
