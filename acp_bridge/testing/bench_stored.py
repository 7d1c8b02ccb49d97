"""The metrics that need something stored: a listing of many sessions, a suite of snapshot scenarios.

May not know: how an agent writes its log, beyond that a session is one file with the session's id in its name and its
text. Invariant: the many sessions are clones of a real one that lie where it lies; their middle is a hole in the file,
so that 5 GB of logs cost a few megabytes of disk.
"""

import os
import statistics
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from acp_bridge.testing.bench_client import BenchError, Client, NotOfferedError
from acp_bridge.testing.bench_metrics import Figures, Plan
from acp_bridge.testing.bench_world import Contender, World, require
from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.json_values import as_list
from acp_bridge.testing.judge import judge
from acp_bridge.testing.scenario import Scenario, ScenarioError, load_scenarios
from acp_bridge.testing.validate import Referee

_END_BYTES: Final = 4096  # of a log, kept at both its ends
_PURPOSE: Final = "-stored"


def listing(world: World, contender: Contender, plan: Plan) -> Figures:
    """`session/list` over `plan.stored` stored sessions: the first one, which may have to read them, and the others.

    Raises `NotOfferedError` when the agent does not list, or its sessions are no files that can be cloned.
    """
    if (contender.name, _PURPOSE) not in world.kept:
        _store(world, contender, plan)
        world.kept[contender.name, _PURPOSE] = "made"
    with world.started(contender, _PURPOSE) as client:
        client.initialize()
        world.rest()
        first, found = _list(client)
        if found < plan.stored:
            raise BenchError(f"{found} of {plan.stored} stored sessions are listed")
        pages = statistics.median(_list(client)[0] for _ in range(plan.lists))
        begin = time.monotonic_ns()
        client.call("session/list", {})
        page = (time.monotonic_ns() - begin) / 1e6
    return {"first_ms": first, "all_pages_ms": pages, "list_ms": page, "sessions": found}


def _list(client: Client) -> tuple[float, int]:
    """How long a listing of all pages takes (ms), and how many sessions it has."""
    begin, found, cursor = time.monotonic_ns(), 0, None
    while True:
        page = client.call("session/list", {"cursor": cursor} if cursor else {})
        found += len(as_list(page.get("sessions")) or ())
        cursor = page.get("nextCursor")
        if not cursor:
            return (time.monotonic_ns() - begin) / 1e6, found


def _store(world: World, contender: Contender, plan: Plan) -> None:
    with world.started(contender, _PURPOSE) as client:
        client.initialize()
        require(client, "sessionCapabilities.list")
        session = client.new_session(world.cwd(contender, _PURPOSE))
        client.prompt(session, f"go @bench n={plan.stored_deltas} rate=0 size=1000")
        world.rest()
    # a file that locks another is small
    logs = [path for path in world.home(contender, _PURPOSE).rglob(f"*{session}*") if _size(path) > _END_BYTES]
    if len(logs) != 1:
        raise NotOfferedError("a session of the agent is not one file: it cannot be cloned")
    for _ in range(plan.stored - 1):
        _clone(logs[0], session, str(uuid.uuid4()))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _clone(log: Path, old: str, new: str) -> None:
    size = log.stat().st_size
    kept = min(_END_BYTES, size // 2)
    with log.open("rb") as source, log.with_name(log.name.replace(old, new)).open("xb") as clone:
        os.fchmod(clone.fileno(), 0o600)
        clone.write(source.read(kept).replace(old.encode(), new.encode()))
        source.seek(-kept, os.SEEK_END)
        clone.seek(size - kept)
        clone.write(source.read().replace(old.encode(), new.encode()))


def snapshots(_world: World, contender: Contender, plan: Plan) -> Figures:
    """The scenarios of the agent's suite, played and judged on every core, as a test run does it.

    `mean_s`: the time of the whole over its number of scenarios; `max_s`: the longest of them. Raises `BenchError`.
    """
    if contender.scenarios is None:
        raise NotOfferedError("it has no suite of scenarios")
    try:
        scenarios = load_scenarios(contender.scenarios)[: plan.most_scenarios]
    except ScenarioError as error:
        raise BenchError("the scenarios cannot be read", str(error)) from error
    referee = Referee(environment={})

    def play(scenario: Scenario) -> float:
        begin = time.monotonic()
        findings = judge(scenario, run_scenario(scenario, command=contender.command), referee)
        if findings:
            raise BenchError(f"scenario {scenario.name} fails", "\n".join(findings))
        return time.monotonic() - begin

    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as players:
        times = list(players.map(play, scenarios))
    return {"mean_s": (time.monotonic() - began) / len(times), "max_s": max(times), "scenarios": len(times)}
