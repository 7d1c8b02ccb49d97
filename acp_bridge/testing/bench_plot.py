"""Cold start and throughput of the measured agents as a picture (SVG).

May not know: how they were measured. Invariant: without matplotlib (extra `bench`) nothing is drawn, and a sentence
says how to get it; the same results give the same bytes.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp_bridge.testing.bench_client import BenchError
from acp_bridge.testing.bench_results import Results

_PANELS = (
    ("Cold start, ms (less is better)", (("m1.initialize_ms", "initialize"), ("m1.new_ms", "session/new"))),
    ("Burst of deltas, frames/s (more is better)", (("m3.frames_per_s", "frames/s"),)),
)
_HEIGHT = 0.7  # of all bars of an agent, 1 being the distance between two agents


def drawing(load_module: Callable[[str], Any] = importlib.import_module) -> Any:
    """The library. Raises `BenchError` when it is missing."""
    try:
        return load_module("matplotlib.figure")
    except ImportError as error:
        raise BenchError("a plot needs matplotlib: pip install 'dsh-acp-agent[bench]'") from error


def plot(results: Results, path: Path, library: Any) -> None:
    """Draw the medians. Raises `OSError`."""
    figure = library.Figure(figsize=(9, 1.5 + 0.6 * len(results.agents)), layout="constrained")
    for axes, (title, series) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        thick = _HEIGHT / len(series)
        for at, (name, label) in enumerate(series):
            places = [row + at * thick for row in range(len(results.agents))]
            values = [results.median(agent, name) or 0.0 for agent in results.agents]
            bars = axes.barh(places, values, height=thick, label=label)
            axes.bar_label(bars, labels=[f"{value:,.0f}" if value else "–" for value in values], padding=3, fontsize=8)
        middle = (len(series) - 1) * thick / 2
        axes.set_yticks([row + middle for row in range(len(results.agents))], results.agents, fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(title, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        if len(series) > 1:
            axes.legend(fontsize=8)
    importlib.import_module("matplotlib").rcParams["svg.hashsalt"] = "bench"
    figure.savefig(path, format="svg", metadata={"Date": None})
