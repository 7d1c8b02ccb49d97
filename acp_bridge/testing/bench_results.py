"""Rounds of measurements, interleaved, and what can be said of them: medians, and ratios inside a round.

May not know: what a metric does, what is good. Invariant: two agents are only compared by what they did in the same
round; machines are noisy, and yesterday's figure is another machine's.
"""

import statistics
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from acp_bridge.testing.bench_client import BenchError, NotOfferedError
from acp_bridge.testing.bench_metrics import Figures, Metric, Plan
from acp_bridge.testing.bench_world import Contender, World


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of one metric on one agent in one round: figures, or the sentence that says why there are none."""

    metric: str
    agent: str
    round: int
    figures: Figures = field(default_factory=dict[str, float])
    problem: str | None = None
    detail: str = ""
    is_failure: bool = False


@dataclass(slots=True)
class Results:
    """All samples. A figure is named `metric.figure`, as in `m3.cpu_s`."""

    agents: Sequence[str]
    samples: list[Sample] = field(default_factory=list[Sample])

    @property
    def failures(self) -> list[Sample]:
        """What should have been measured and was not."""
        return [sample for sample in self.samples if sample.is_failure]

    def figures(self) -> list[str]:
        """The names of all figures, in the order in which they came."""
        return list(dict.fromkeys(f"{sample.metric}.{name}" for sample in self.samples for name in sample.figures))

    def per_round(self, agent: str, figure: str) -> dict[int, float]:
        """By round; empty when it was not measured."""
        metric, _, name = figure.partition(".")
        return {
            sample.round: sample.figures[name]
            for sample in self.samples
            if (sample.agent, sample.metric) == (agent, metric) and name in sample.figures
        }

    def median(self, agent: str, figure: str) -> float | None:
        """Over the rounds."""
        values = self.per_round(agent, figure).values()
        return statistics.median(values) if values else None

    def ratios(self, agent: str, peer: str, figure: str) -> list[float]:
        """Agent to peer, a ratio per round in which both have the figure and the peer's is not zero."""
        theirs = self.per_round(peer, figure)
        return [value / theirs[at] for at, value in self.per_round(agent, figure).items() if theirs.get(at)]


def run_rounds(
    world: World,
    contenders: Sequence[Contender],
    metrics: Mapping[str, Metric],
    plan: Plan,
    *,
    rounds: int,
    step: Callable[[str], None],
    alone: Container[str] = (),
) -> Results:
    """Measure every metric on every agent, round by round; `step` hears of each metric before it is measured.

    `alone`: metrics that are only measured on the first agent.
    """
    results = Results([contender.name for contender in contenders])
    for number in range(rounds):
        # who comes first meets another machine than who comes second: take turns
        order = contenders if number % 2 == 0 else contenders[::-1]
        for name, metric in metrics.items():
            # starts are short and their times scatter: many, alternating inside the round
            repeats = plan.spawns if name == "m1" else 1
            gathered: dict[str, list[Sample]] = {}
            step(f"round {number + 1}: {name}")
            for contender in list(contenders[:1] if name in alone else order) * repeats:
                sample = _sample(world, contender, name, metric, plan, number)
                gathered.setdefault(contender.name, []).append(sample)
            results.samples += map(_joined, gathered.values())
    return results


def _sample(world: World, contender: Contender, name: str, metric: Metric, plan: Plan, number: int) -> Sample:
    try:
        return Sample(name, contender.name, number, metric(world, contender, plan))
    except NotOfferedError as error:
        return Sample(name, contender.name, number, problem=str(error))
    except BenchError as error:
        return Sample(name, contender.name, number, problem=str(error), detail=error.detail, is_failure=True)


def _joined(samples: Sequence[Sample]) -> Sample:
    """The medians of a round; the first failure, if there is one."""
    for sample in samples:
        if sample.problem is not None:
            return sample
    first = samples[0]
    medians = {name: statistics.median(sample.figures[name] for sample in samples) for name in first.figures}
    return Sample(first.metric, first.agent, first.round, medians)
