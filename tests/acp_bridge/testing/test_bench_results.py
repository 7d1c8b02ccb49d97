"""Rounds, ratios, targets, the table, the JSON, the plot: made-up metrics, no process."""

import importlib.util
import json

import pytest

from acp_bridge.testing.bench_client import BenchError, NotOfferedError
from acp_bridge.testing.bench_metrics import Plan
from acp_bridge.testing.bench_plot import drawing, plot
from acp_bridge.testing.bench_results import Results, Sample, run_rounds
from acp_bridge.testing.bench_table import aligned, machine, number, table, targets, to_json
from acp_bridge.testing.bench_targets import TARGETS, Target, verdicts
from acp_bridge.testing.bench_world import Contender, World

OURS, PEER = Contender("ours", ("ours",)), Contender("peer", ("peer",))


def run(tmp_path, metrics, *, rounds=2, plan=None, alone=(), contenders=(OURS, PEER)):
    told = []
    world = World(tmp_path, "")
    return run_rounds(world, contenders, metrics, plan or Plan(), rounds=rounds, step=told.append, alone=alone), told


def results_of(**figures):
    """Rounds of the two agents: `m3__cpu_s=[(ours, peer), …]`."""
    results = Results(["ours", "peer"])
    for name, pairs in figures.items():
        metric, _, figure = name.partition("__")
        for at, pair in enumerate(pairs):
            results.samples += [
                Sample(metric, agent, at, {figure: value})
                for agent, value in zip(results.agents, pair, strict=True)
                if value is not None
            ]
    return results


def test_agents_take_turns_and_start_in_turns(tmp_path):
    seen = []

    def metric(_world, contender, _plan):
        seen.append(contender.name)
        return {"x": 1}

    results, told = run(tmp_path, {"m1": metric, "other": metric}, plan=Plan(spawns=2), alone={"other"})
    starts = ["ours", "peer", "ours", "peer"]
    assert seen == [*starts, "ours", *starts[::-1], "ours"]
    assert told == ["round 1: m1", "round 1: other", "round 2: m1", "round 2: other"]
    assert len(results.samples) == 6


def test_the_starts_of_a_round_are_one_median(tmp_path):
    times = iter([9, 1, 2])
    results, _ = run(tmp_path, {"m1": lambda *_: {"ms": next(times)}}, plan=Plan(spawns=3), rounds=1, contenders=[OURS])
    assert results.per_round("ours", "m1.ms") == {0: 2}


def test_what_fails_and_what_is_not_offered_are_two_things(tmp_path):
    def failing(_world, contender, _plan):
        if contender is OURS:
            raise BenchError("it ended", "in /a/path\nlast words")
        raise NotOfferedError("it does not load")

    results, _ = run(tmp_path, {"m5": failing})
    assert [(sample.agent, sample.problem) for sample in results.failures] == [("ours", "it ended")] * 2
    assert results.median("ours", "m5.load_s") is None
    assert table(results).splitlines() == [
        "figure  ours  peer  ratio",
        "FAILED m5 of ours: it ended",
        "    in /a/path",
        "    last words",
        "no m5 of peer: it does not load",
    ]
    told = json.dumps(to_json(results, Plan(), [], machine()))
    assert "it ended" in told
    assert "/a/path" not in told


def test_a_ratio_is_taken_inside_a_round():
    results = results_of(m3__cpu_s=[(1, 2), (10, 10), (3, None), (4, 0)])
    assert results.ratios("ours", "peer", "m3.cpu_s") == [0.5, 1.0]
    assert results.median("ours", "m3.cpu_s") == 3.5
    assert table(results).splitlines()[1].split() == ["m3.cpu_s", "3.5", "2", "0.75"]


def test_a_table_shows_what_only_one_has():
    results = results_of(m5__load_s=[(1.2345, None)], m1__new_ms=[(1234.5, 2000)])
    assert [line.split() for line in table(results).splitlines()[1:]] == [
        ["m5.load_s", "1.23", "–", "–"],
        ["m1.new_ms", "1,234", "2,000", "0.617"],
    ]


def test_columns_are_aligned_and_numbers_have_three_digits():
    assert aligned([["a", "b"], ["ccc", "10"]]) == "a     b\nccc  10"
    assert [number(value) for value in (None, 0, 0.012345, 99.94, 123.4, 45678)] == [
        *("–", "0", "0.0123", "99.9", "123", "45,678")
    ]


def words(results, peer="peer", **fields):
    return {verdict.target.figure: verdict.word for verdict in verdicts(results, "ours", peer, **fields)}


def test_a_target_is_held_against_the_median_of_the_ratios():
    results = results_of(
        m1__initialize_ms=[(4, 100), (3, 100), (90, 100)],
        m3__frames_per_s=[(2, 1), (2, 1), (9, 1)],
        m3p__p99_ms=[(16, 10)],
        m5__load_s=[(0.5, None)],
    )
    found = words(results)
    assert {name: found[name] for name in ("m1.initialize_ms", "m3.frames_per_s", "m3p.p99_ms", "m5.load_s")} == {
        "m1.initialize_ms": "aim",
        "m3.frames_per_s": "must",
        "m3p.p99_ms": "missed",
        "m5.load_s": "aim",
    }
    assert found["m1.new_ms"] == found["m5.peak_mib"] == "not measured"
    assert "m2.prompt_ms" not in found
    assert words(results, peer=None)["m1.initialize_ms"] == "not measured"


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ([0.2, 0.2, 0.2], "aim"),
        ([0.4, 0.4, 0.9], "must"),
        ([0.9, 0.5, 0.9], "tolerated"),
        ([0.6, 0.59, 0.7], "missed"),
        ([0.6, 0.58, 0.7], "tolerated"),
    ],
)
def test_a_guard_fails_only_when_every_round_is_far_off(ratios, word):
    results = results_of(m3__cpu_s=[(ratio, 1) for ratio in ratios])
    assert words(results, tolerance=0.3)["m3.cpu_s"] == word


def test_a_guard_does_not_fail_on_plain_times_which_say_as_much_of_the_machine():
    slow = results_of(m5__load_s=[(9, None)] * 3, m5__peak_mib=[(200, None)] * 3)
    assert words(slow, tolerance=0.3) == {"m5.load_s": "tolerated", "m5.peak_mib": "missed"}
    assert words(slow)["m5.load_s"] == "missed"


def test_more_is_better_where_a_target_says_at_least():
    target = Target("x", "", must=2, aim=3, at_least=True)
    assert [target.reaches(value, 2) for value in (1.9, 2, 4)] == [False, True, True]
    assert target.reaches(1.6, 2, tolerance=0.3)
    assert not target.reaches(1.5, 2, tolerance=0.3)


def test_every_target_has_an_aim_that_is_at_least_as_hard():
    assert all(target.reaches(target.aim, target.must) for target in TARGETS)
    assert len({target.figure for target in TARGETS}) == len(TARGETS)


def test_targets_are_read_as_rows():
    found = list(verdicts(results_of(m3__cpu_s=[(1, 1)], m4b__mib_per_session=[(0.01, None)]), "ours", "peer"))
    shown = targets(found)
    assert "CPU of the agent for a burst of deltas (ratio to the peer)         1  ≤ 0.45  ≤ 0.33        MISSED" in shown
    assert "frames a second in a burst of deltas (ratio to the peer)           –   ≥ 1.8   ≥ 2.7  not measured" in shown
    assert "memory of each further session, MiB                             0.01  ≤ 0.05  ≤ 0.02           aim" in shown


def test_json_holds_every_round_and_nothing_of_the_machine_but_its_kind():
    results = results_of(m3__cpu_s=[(1, 2), (1, 4)])
    found = to_json(results, Plan(), list(verdicts(results, "ours", "peer")), machine())
    assert found["machine"].keys() == {"cores", "load", "system", "architecture", "python"}
    assert found["plan"]["deltas"] == 20_000
    assert [sample["figures"]["cpu_s"] for sample in found["samples"]] == [1, 2, 1, 4]
    assert found["medians"]["peer"] == {"m3.cpu_s": 3}
    assert found["targets"][0] == {"figure": "m3.cpu_s", "value": 0.375, "verdict": "must"}


def test_a_plot_without_matplotlib_says_how_to_get_it():
    def load(name):
        raise ImportError(name)

    with pytest.raises(BenchError, match=r"pip install 'dsh-acp-agent\[bench\]'"):
        drawing(load)


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_a_plot_shows_start_and_throughput_of_every_agent(tmp_path):
    results = results_of(m1__initialize_ms=[(31, 926)], m1__new_ms=[(120, 927)], m3__frames_per_s=[(29_000, 10_240)])
    results.samples.append(Sample("m1", "a third", 0, problem="it ended"))
    results.agents = ["ours", "peer", "a third"]
    for name in ("a.svg", "b.svg"):
        plot(results, tmp_path / name, drawing())
    source = (tmp_path / "a.svg").read_text()
    assert source.startswith("<?xml")
    assert source == (tmp_path / "b.svg").read_text()
    for text in ("ours", "a third", "29,000", "926", "Cold start", "initialize", "session/new"):
        assert f"<!-- {text}" in source
