"""What is measured on one agent: one function per metric, each in a fresh process of the agent.

May not know: other agents, ratios, targets. Invariant: figures are plain numbers whose names end in their unit; what
an agent does not offer is a `NotOfferedError`, everything else that goes wrong a `BenchError`.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acp_bridge.testing.bench_client import BenchError
from acp_bridge.testing.bench_usage import cpu_seconds, memory
from acp_bridge.testing.bench_world import Contender, World, require

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `most_scenarios` of a snapshot suite, None: all of them."""

    spawns: int = 10
    prompts: int = 20
    deltas: int = 20_000
    rate: int = 200
    paced: int = 1000
    sessions: int = 50
    loaded: int = 50_000
    loads: int = 3
    stored: int = 1000
    stored_deltas: int = 1600
    lists: int = 9
    most_scenarios: int | None = None


Metric = Callable[[World, Contender, Plan], Figures]


def cold_start(world: World, contender: Contender, _plan: Plan) -> Figures:
    """m1: from one spawn to the answers of `initialize` and `session/new`."""
    with world.started(contender) as client:
        client.initialize()
        answered = _ms_since(client.started)
        client.new_session(world.cwd(contender))
        opened = _ms_since(client.started)
    return {"initialize_ms": answered, "new_ms": opened}


def prompt_overhead(world: World, contender: Contender, plan: Plan) -> Figures:
    """m2: a prompt that a model answers with one delta."""
    with world.session(contender) as (client, session):
        times: list[float] = []
        for _ in range(3 + plan.prompts):
            begin = time.monotonic_ns()
            client.prompt(session, "hi @bench n=1 rate=0")
            times.append(_ms_since(begin))
    return {"prompt_ms": statistics.median(times[3:]), "prompt_p90_ms": percentile(times[3:], 0.9)}


def burst(world: World, contender: Contender, plan: Plan) -> Figures:
    """m3: `plan.deltas` deltas as fast as the model can; CPU and memory of the agent."""
    with world.session(contender) as (client, session):
        client.prompt(session, "warm @bench n=20 rate=0")
        world.rest()
        idle, used, begin = memory(client.pid), cpu_seconds(client.pid), time.monotonic_ns()
        client.reset()
        client.prompt(session, f"go @bench n={plan.deltas} rate=0 size=6")
        if client.deltas < plan.deltas:
            raise BenchError(f"{client.deltas} of {plan.deltas} deltas arrived before the answer")
        seconds = (client.last_frame - begin) / 1e9
        world.rest()
        used, after = cpu_seconds(client.pid) - used, memory(client.pid)
    return {
        "frames_per_s": client.frames / seconds,
        "deltas_per_s": client.deltas / seconds,
        "cpu_s": used,
        "cpu_us_per_delta": used / plan.deltas * 1e6,
        "idle_mib": idle.resident,
        "after_mib": after.resident,
    }


def paced(world: World, contender: Contender, plan: Plan) -> Figures:
    """m3p: `plan.rate` deltas a second; from the model's write to the client's read of its frame."""
    with world.session(contender) as (client, session):
        client.prompt(session, "warm @bench n=200 rate=0")
        client.reset()
        used = cpu_seconds(client.pid)
        client.prompt(session, f"go @bench n={plan.paced} rate={plan.rate} size=32")
        used = cpu_seconds(client.pid) - used
    times = [latency / 1e6 for latency in client.latencies]
    if len(times) < plan.paced:
        raise BenchError(f"{len(times)} of {plan.paced} deltas arrived before the answer")
    return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "max_ms": max(times), "cpu_s": used}


def footprint(world: World, contender: Contender, _plan: Plan) -> Figures:
    """m4: memory behind `session/new`."""
    with world.session(contender) as (client, _):
        world.rest()
        used = memory(client.pid)
    return {"rss_mib": used.resident, "peak_mib": used.peak}


def session_cost(world: World, contender: Contender, plan: Plan) -> Figures:
    """m4b: what each further session holds in memory, over `plan.sessions`."""
    with world.session(contender) as (client, session):
        client.prompt(session, "hi @bench n=1 rate=0")
        world.rest()
        one, begin = memory(client.pid), time.monotonic_ns()
        for _ in range(plan.sessions):
            client.new_session(world.cwd(contender))
        spent = _ms_since(begin)
        world.rest()
        many = memory(client.pid)
    return {
        "mib_per_session": (many.resident - one.resident) / plan.sessions,
        "new_session_ms": spent / plan.sessions,
    }


def load(world: World, contender: Contender, plan: Plan) -> Figures:
    """m5: `session/load` of a session of `plan.loaded` deltas in fresh processes, the median of `plan.loads`."""
    key = (contender.name, f"load of {plan.loaded}")
    if key not in world.kept:
        with world.session(contender) as (client, session):
            require(client, "loadSession")
            client.prompt(session, f"go @bench n={plan.loaded} rate=0 size=6")
            world.rest()
        world.kept[key] = session
    cwd = str(world.cwd(contender))
    runs: list[tuple[float, float, float, int]] = []
    for _ in range(plan.loads):
        with world.started(contender) as client:
            client.initialize()
            # what it prepares behind the handshake is part of its start, not of the load
            world.rest()
            used, begin = cpu_seconds(client.pid), time.monotonic_ns()
            client.call("session/load", {"sessionId": world.kept[key], "cwd": cwd, "mcpServers": []})
            seconds = _ms_since(begin) / 1e3
            if client.deltas < plan.loaded:
                raise BenchError(f"{client.deltas} of {plan.loaded} deltas were replayed")
            runs.append((seconds, memory(client.pid).peak, cpu_seconds(client.pid) - used, client.frames))
    seconds, peak, used, frames = sorted(runs)[len(runs) // 2]
    return {"load_s": seconds, "peak_mib": peak, "cpu_s": used, "frames": frames}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _ms_since(begin: int) -> float:
    return (time.monotonic_ns() - begin) / 1e6
