"""`dsh-acp-agent bench`, `python -m acp_bridge.testing.bench`: how fast is an agent, and against which others?

May not know: any agent beyond its command. Invariant: agents are measured in turns, below one temporary
directory; the exit code is 0 exactly when what was asked for was measured and, with `--targets`, no must is missed.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from acp_bridge.testing.bench_client import BenchError
from acp_bridge.testing.bench_growth import GrowthPlan, growth
from acp_bridge.testing.bench_metrics import (
    Metric,
    Plan,
    burst,
    cold_start,
    footprint,
    load,
    paced,
    prompt_overhead,
    session_cost,
)
from acp_bridge.testing.bench_plot import drawing, plot
from acp_bridge.testing.bench_results import run_rounds
from acp_bridge.testing.bench_stored import listing, snapshots
from acp_bridge.testing.bench_table import machine, table, targets, to_json
from acp_bridge.testing.bench_targets import COMPARED, JUDGED, verdicts
from acp_bridge.testing.bench_world import Contender, World, served_model
from acp_bridge.testing.conformance.lab import located
from acp_bridge.testing.json_values import JsonObject

METRICS: Final[Mapping[str, Metric]] = {
    "m1": cold_start,
    "m2": prompt_overhead,
    "m3": burst,
    "m3p": paced,
    "m4": footprint,
    "m4b": session_cost,
    "m5": load,
    "sessions": listing,
    "snapshots": snapshots,
}
QUICK: Final = Plan(
    spawns=1,
    prompts=10,
    deltas=6000,
    paced=200,
    sessions=20,
    loads=1,
    stored_deltas=200,
    lists=1,
    most_scenarios=2,
)
QUICK_TOLERANCE: Final = 0.3
QUICK_SETTLE: Final = 0.25
INTERRUPTED: Final = 130
_OWN: Final = "dsh-acp-agent"


def main(
    argv: Sequence[str],
    *,
    metrics: Mapping[str, Metric] = METRICS,
    full: Plan | None = None,
    quick: Plan = QUICK,
    long: GrowthPlan | None = None,
) -> int:
    """Run the command; returns the exit code (2: wrong use). The plans say how much is measured."""
    parser = _parser()
    given = parser.parse_args(argv)
    is_guard = given.quick and given.targets
    names: list[str] = given.metrics.split(",") if given.metrics else [*metrics]
    if unknown := sorted(set(names) - metrics.keys()):
        parser.error(f"there is no metric {', '.join(unknown)}; there are {', '.join(metrics)}")
    contenders = _contenders(given.agent, given.vs)
    contenders[0] = replace(contenders[0], scenarios=given.snapshots)
    plan = quick if given.quick else full or Plan()
    # a guard has no time for what it does not judge
    chosen = {name: metrics[name] for name in names if given.metrics or not is_guard or name in JUDGED}
    alone = chosen.keys() - COMPARED if is_guard else ()
    env = dict(pair.partition("=")[::2] for pair in given.env)
    terminal = sys.stderr.isatty()
    try:
        library = drawing() if given.plot else None
        with tempfile.TemporaryDirectory(prefix="acp-bench-") as root, served_model() as url:
            world = World(Path(os.path.realpath(root)), url, env, settle=given.settle)
            if given.growth:
                with _progress(None, terminal=terminal) as step:
                    _say(growth(world, contenders[0], long or GrowthPlan(), step))
                return 0
            if given.quick:
                world.settle = min(world.settle, QUICK_SETTLE)
            facts = machine()
            with _progress(given.rounds * len(chosen), terminal=terminal) as step:
                results = run_rounds(world, contenders, chosen, plan, rounds=given.rounds, step=step, alone=alone)
    except BenchError as error:
        parser.exit(2, f"{parser.prog}: {error}\n{error.detail}")
    except KeyboardInterrupt:
        return INTERRUPTED
    peer = contenders[1].name if len(contenders) > 1 else None
    tolerance = QUICK_TOLERANCE if given.quick else None
    found = list(verdicts(results, contenders[0].name, peer, tolerance=tolerance)) if given.targets else []
    _say(table(results))
    if found:
        _say(f"\n{targets(found)}{_busy(facts)}")
    if given.json is not None:
        given.json.write_text(json.dumps(to_json(results, plan, found, facts), indent=1) + "\n", encoding="utf-8")
    if library is not None:
        plot(results, given.plot, library)
    bad = any(verdict.word in {"missed", "not measured"} for verdict in found)
    return 1 if bad or results.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{_OWN} bench", description="Measure ACP agents, in turns, against a model on this machine."
    )
    parser.add_argument(
        "--agent", type=_words, metavar="COMMAND", default=_own(), help=f"starts the agent; {_OWN} by default"
    )
    parser.add_argument(
        "--vs",
        action="append",
        type=shlex.split,
        metavar="COMMAND",
        help="starts an agent to compare with; may be repeated, '' is none "
        "(default: a minimal agent on the official Python SDK and httpx, when they are installed)",
    )
    parser.add_argument("--metrics", metavar="M,…", help=f"default: all, {','.join(METRICS)}")
    parser.add_argument("--rounds", type=_positive, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="less of everything; a target fails with 30%% tolerance")
    parser.add_argument("--growth", action="store_true", help="instead: cost and memory by the length of a session")
    parser.add_argument("--targets", action="store_true", help=f"hold the result against the targets of {_OWN}")
    parser.add_argument("--snapshots", type=Path, metavar="DIR", help="scenarios of the agent, for that metric")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for every agent")
    parser.add_argument("--settle", type=float, default=0.7, metavar="S", help="rest before memory is read")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round there")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw cold start and throughput (matplotlib)")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _words(text: str) -> tuple[str, ...]:
    if not (words := shlex.split(text)):
        raise ValueError(text)
    return located(words)


def _contenders(agent: tuple[str, ...], others: Sequence[list[str]] | None) -> list[Contender]:
    commands = [agent]
    if others is None:
        is_installed = all(importlib.util.find_spec(name) for name in ("acp", "httpx"))
        commands += [(sys.executable, "-m", "acp_bridge.testing.bench_peer")] * is_installed
    else:
        commands += [located(words) for words in others if words]
    found: list[Contender] = []
    for command in commands:
        name = " ".join(Path(word).name for word in command if not word.startswith("-"))
        name = "Python SDK + httpx" if name.endswith(".bench_peer") else name[:32]
        same = sum(contender.name.partition(" #")[0] == name for contender in found)
        found.append(Contender(f"{name} #{same + 1}" if same else name, command))
    return found


def _own() -> tuple[str, ...]:
    """The console script of this installation, as far as it has one."""
    beside = Path(sys.executable).with_name(_OWN)
    return (str(beside) if beside.exists() else _OWN,)


@contextlib.contextmanager
def _progress(total: int | None, *, terminal: bool) -> Generator[Callable[[str], None]]:
    """A bar on stderr, for a person: when it is a terminal and rich is installed."""
    if not (terminal and importlib.util.find_spec("rich")):
        yield lambda _text: None
        return
    from rich.console import Console  # noqa: PLC0415 - optional
    from rich.progress import Progress  # noqa: PLC0415 - optional

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def step(text: str) -> None:
            bar.update(task, description=text, advance=1)

        yield step


def _busy(facts: JsonObject) -> str:
    """What has to be said of plain times that were taken on a machine that had other work."""
    if facts["load"] <= facts["cores"]:
        return ""
    return f"\nthis machine was busy (load {facts['load']:.1f}, {facts['cores']} cores): trust the ratios only"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
