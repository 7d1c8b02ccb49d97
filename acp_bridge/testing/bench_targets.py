"""What the agent of this repository has to reach, as one table, and how a run is held against it.

May not know: how anything is measured. Invariant: a target is a ratio inside one run wherever a peer can be measured;
where it is a plain number it is one of memory, or of a time that is long against a machine's noise.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from acp_bridge.testing.bench_results import Results

Word = Literal["aim", "must", "tolerated", "missed", "not measured"]


@dataclass(frozen=True, slots=True)
class Target:
    """`figure` must be at most `must` (`at_least`: at least), and should be `aim`; `is_ratio`: to that of the peer."""

    figure: str
    sentence: str
    must: float
    aim: float
    is_ratio: bool = False
    at_least: bool = False

    @property
    def is_plain_time(self) -> bool:
        """Whether it says as much of the machine as of the agent."""
        return not self.is_ratio and self.figure.endswith(("_s", "_ms"))

    def reaches(self, value: float, bound: float, *, tolerance: float = 0.0) -> bool:
        """Whether `value` keeps `bound`, or misses it by no more than the share `tolerance`."""
        return value >= bound / (1 + tolerance) if self.at_least else value <= bound * (1 + tolerance)


TARGETS = (
    Target("m1.initialize_ms", "from spawn to the answer of initialize", 0.10, 0.04, is_ratio=True),
    Target("m1.new_ms", "from spawn to the answer of session/new", 0.35, 0.20, is_ratio=True),
    Target("m2.prompt_ms", "a prompt that the model answers with one delta", 1.1, 0.9, is_ratio=True),
    Target("m3.cpu_s", "CPU of the agent for a burst of deltas", 0.45, 0.33, is_ratio=True),
    Target("m3.frames_per_s", "frames a second in a burst of deltas", 1.8, 2.7, is_ratio=True, at_least=True),
    Target("m3p.p50_ms", "median delay of a delta at 200 a second", 1.1, 0.85, is_ratio=True),
    Target("m3p.p99_ms", "99th percentile of that delay", 1.5, 1.0, is_ratio=True),
    Target("m3.idle_mib", "resident memory after a first prompt, MiB", 45, 40),
    Target("m3.after_mib", "resident memory after the burst, MiB", 70, 50),
    Target("m4b.mib_per_session", "memory of each further session, MiB", 0.05, 0.02),
    Target("m5.load_s", "loading a session of 50,000 deltas, s", 1.2, 0.8),
    Target("m5.peak_mib", "peak memory of that load, MiB", 90, 60),
    Target("sessions.list_ms", "a page of 1,000 stored sessions of 5 MB, ms", 50, 25),
    Target("snapshots.mean_s", "a snapshot scenario, played and judged, s", 0.35, 0.2),
)


JUDGED = frozenset(target.figure.partition(".")[0] for target in TARGETS)
"""The metrics that have a target."""
COMPARED = frozenset(target.figure.partition(".")[0] for target in TARGETS if target.is_ratio)
"""The metrics that need a peer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`value` is the median over the rounds; None: not measured."""

    target: Target
    value: float | None
    word: Word


def verdicts(results: Results, agent: str, peer: str | None, *, tolerance: float | None = None) -> Iterator[Verdict]:
    """Hold the run against each target whose metric was run.

    Missed is a target whose median lies beyond `must`. With a `tolerance` (a share) the run is a guard on a noisy
    machine: what lies beyond `must` by no more than that in at least one round is tolerated, and so are plain times.
    """
    metrics = {sample.metric for sample in results.samples}
    for target in TARGETS:
        if target.figure.partition(".")[0] not in metrics:
            continue
        if target.is_ratio:
            values = results.ratios(agent, peer, target.figure) if peer is not None else []
        else:
            values = list(results.per_round(agent, target.figure).values())
        if not values:
            yield Verdict(target, None, "not measured")
            continue
        median = statistics.median(values)
        word: Word = "missed"
        if target.reaches(median, target.aim):
            word = "aim"
        elif target.reaches(median, target.must):
            word = "must"
        elif tolerance is not None and (
            target.is_plain_time or any(target.reaches(value, target.must, tolerance=tolerance) for value in values)
        ):
            word = "tolerated"
        yield Verdict(target, median, word)
