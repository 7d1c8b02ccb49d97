"""The command: what it measures, prints, writes, and how it ends."""

import json
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest

from acp_bridge.testing.bench import QUICK_SETTLE, _busy, _progress, main
from acp_bridge.testing.bench_client import BenchError
from acp_bridge.testing.bench_growth import GrowthPlan
from acp_bridge.testing.bench_metrics import Plan
from tests.support.bench_agent import bench_agent
from tests.support.official import agent_command

STUB = shlex.join(bench_agent())
TINY = Plan(spawns=1, prompts=1, deltas=20, sessions=1)


def bench(*argv, **fields):
    return main(["--settle", "0", "--agent", STUB, *argv], full=TINY, quick=TINY, **fields)


def constant(**figures):
    return lambda *_: figures


def test_two_agents_are_compared_in_a_table_and_in_json(tmp_path, capsys):
    argv = ["--vs", STUB, "--metrics", "m1,m2", "--rounds", "2", "--json", str(tmp_path / "x.json")]
    assert bench(*argv) == 0
    out = capsys.readouterr().out
    head, *rows = (line.split() for line in out.splitlines())
    assert " ".join(head).endswith("bench_agent.py #2 ratio")
    assert [row[0] for row in rows] == ["m1.initialize_ms", "m1.new_ms", "m2.prompt_ms", "m2.prompt_p90_ms"]
    text = (tmp_path / "x.json").read_text()
    found = json.loads(text)
    assert len(found["samples"]) == 8
    assert found["targets"] == []
    assert str(tmp_path) not in text
    assert os.path.dirname(sys.executable) not in text


def test_targets_decide_the_exit_code(capsys):
    metrics = {"m4b": constant(mib_per_session=0.06)}
    assert bench("--vs", "", "--targets", metrics=metrics) == 1
    assert "MISSED" in capsys.readouterr().out
    assert bench("--vs", "", "--targets", "--quick", metrics=metrics) == 0
    assert "tolerated" in capsys.readouterr().out
    # a ratio without a peer proves nothing
    assert bench("--vs", "", "--targets", metrics={"m2": constant(prompt_ms=1)}) == 1
    assert "not measured" in capsys.readouterr().out


def test_an_agent_that_fails_is_a_row_and_an_exit_code(capsys):
    assert bench("--vs", "", "--metrics", "m1", "--agent", "false") == 1
    assert "FAILED m1 of false: the agent ended with 1 before it answered initialize" in capsys.readouterr().out


def test_the_default_peer_is_the_sdk_agent_where_it_is_installed(capsys):
    assert bench("--metrics", "m2", metrics={"m2": constant(prompt_ms=1)}) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("Python SDK + httpx  ratio")


def test_a_guard_measures_only_what_it_judges_and_peers_only_where_they_count():
    seen = []

    def noting(name, figures):
        def metric(world, contender, _plan):
            seen.append((name, contender.name, world.settle))
            return figures

        return metric

    metrics = {
        "m2": noting("m2", {"prompt_ms": 1}),
        "m4": noting("m4", {"rss_mib": 1}),
        "m4b": noting("m4b", {"mib_per_session": 0}),
    }
    argv = ["--quick", "--targets", "--rounds", "1", "--agent", "a", "--vs", "b", "--settle", "9"]
    assert main(argv, metrics=metrics) == 0
    assert seen == [("m2", "a", QUICK_SETTLE), ("m2", "b", QUICK_SETTLE), ("m4b", "a", QUICK_SETTLE)]


def test_an_environment_reaches_the_agents():
    seen = []

    def metric(world, *_):
        seen.append(world.env)
        return {}

    assert bench("--vs", "", "--env", "A=1=2", "--env", "B=", "--rounds", "1", metrics={"m2": metric}) == 0
    assert seen == [{"A": "1=2", "B": ""}]


def test_growth_prints_tables_of_one_agent(capsys):
    assert bench("--growth", long=GrowthPlan(deltas=(5,), turns=(2,))) == 0
    assert "events loaded" in capsys.readouterr().out


def test_ctrl_c_ends_it_with_its_code():
    def metric(*_):
        raise KeyboardInterrupt

    assert bench("--vs", "", metrics={"m2": metric}) == 130


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--metrics", "m1,m9"], "there is no metric m9; there are m1, m2"),
        (["--rounds", "0"], "invalid _positive value"),
        (["--agent", ""], "invalid _words value"),
        (["--agent", "'"], "invalid _words value"),
        (["--growth", "--agent", "/no/such/agent"], "does not start"),
    ],
)
def test_wrong_use_is_a_sentence(argv, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        bench(*argv)
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_bar_is_drawn_for_a_person_only(capsys):
    with _progress(2, terminal=True) as step:
        step("round 1: m1")
    with _progress(2, terminal=False) as step:
        step("round 2: m1")
    error = capsys.readouterr().err
    assert "round 2" not in error


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_a_plot_is_drawn(tmp_path):
    path = tmp_path / "x.svg"
    assert bench("--vs", "", "--plot", str(path), metrics={"m3": constant(frames_per_s=5)}) == 0
    assert path.read_bytes().startswith(b"<?xml")


@pytest.mark.skipif(find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_is_measured(capsys):
    with pytest.raises(SystemExit) as caught:
        bench("--plot", "x.svg", metrics={})
    assert caught.value.code == 2
    assert "dsh-acp-agent[bench]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [(*agent_command(), "bench"), (sys.executable, "-m", "acp_bridge.testing.bench")],
    ids=["agent", "kit"],
)
def test_the_agent_and_the_kit_have_the_command(command):
    done = subprocess.run([*command, "--metrics", "no"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "dsh-acp-agent bench: error: there is no metric no;" in done.stderr


def test_a_busy_machine_is_told_of():
    assert _busy({"load": 2.0, "cores": 2}) == ""
    assert _busy({"load": 2.06, "cores": 2}).startswith("\nthis machine was busy (load 2.1, 2 cores)")


def test_a_failure_keeps_what_the_agent_said_out_of_its_sentence():
    error = BenchError("it ended", "Traceback")
    assert (str(error), error.detail) == ("it ended", "Traceback")
