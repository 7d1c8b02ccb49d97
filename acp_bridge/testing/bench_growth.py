"""Whether an agent gets slower, or larger, with the length of a session.

May not know: other agents. Invariant: every row is one process; what grows is the session alone.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from acp_bridge.testing.bench_table import aligned, number
from acp_bridge.testing.bench_usage import cpu_seconds, memory
from acp_bridge.testing.bench_world import Contender, World, require

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class GrowthPlan:
    """The lengths of sessions, in deltas and in turns; each turn's time is a median of the `around` before it."""

    deltas: Sequence[int] = (1_000, 20_000, 200_000)
    turns: Sequence[int] = (10, 100, 1_000)
    around: int = 10


def growth(world: World, contender: Contender, plan: GrowthPlan, step: Callable[[str], None]) -> str:
    """Three tables. Raises `BenchError`."""
    deltas = [("deltas in one answer", "CPU µs/delta", "frames/s", "MiB before", "MiB after", "peak MiB")]
    loads = [("events loaded", "s", "µs/event", "peak MiB")]
    for count in plan.deltas:
        step(f"{count:,} deltas")
        row, loaded = _by_deltas(world, contender, count)
        deltas.append(row)
        loads.append(loaded)
    turns: list[Row] = [("turns in the session", "ms/prompt", "MiB"), *_by_turns(world, contender, plan, step)]
    return "\n\n".join(map(aligned, (deltas, loads, turns)))


def _by_deltas(
    world: World, contender: Contender, count: int
) -> tuple[tuple[str, str, str, str, str, str], tuple[str, str, str, str]]:
    cwd = world.cwd(contender)
    with world.session(contender) as (client, session):
        require(client, "loadSession")
        client.prompt(session, "warm @bench n=20 rate=0")
        world.rest()
        before, used, begin = memory(client.pid), cpu_seconds(client.pid), time.monotonic_ns()
        client.prompt(session, f"go @bench n={count} rate=0 size=6")
        seconds = (time.monotonic_ns() - begin) / 1e9
        world.rest()
        used, after = cpu_seconds(client.pid) - used, memory(client.pid)
    with world.started(contender) as client:
        client.initialize()
        world.rest()
        begin = time.monotonic_ns()
        client.call("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
        loading, peak = (time.monotonic_ns() - begin) / 1e9, memory(client.pid).peak
    figures = (used / count * 1e6, count / seconds, before.resident, after.resident, after.peak)
    written = [number(figure) for figure in figures]
    return (
        (f"{count:,}", written[0], written[1], written[2], written[3], written[4]),
        (f"{count:,}", number(loading), number(loading / count * 1e6), number(peak)),
    )


def _by_turns(world: World, contender: Contender, plan: GrowthPlan, step: Callable[[str], None]) -> Iterator[Row]:
    times: list[float] = []
    with world.session(contender) as (client, session):
        for count in plan.turns:
            step(f"{count:,} turns")
            while len(times) < count:
                begin = time.monotonic_ns()
                client.prompt(session, "hi @bench n=1 rate=0")
                times.append((time.monotonic_ns() - begin) / 1e6)
            median = statistics.median(times[-plan.around :])
            yield f"{count:,}", number(median), number(memory(client.pid).resident)
