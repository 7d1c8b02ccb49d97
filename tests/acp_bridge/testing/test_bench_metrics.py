"""Every metric, against a small agent that needs no model; and the peer, against the benchmark's own model."""

import importlib
import os
import sys
from dataclasses import replace

import pytest

from acp_bridge.testing.bench import METRICS
from acp_bridge.testing.bench_client import BenchError, NotOfferedError
from acp_bridge.testing.bench_growth import GrowthPlan, growth
from acp_bridge.testing.bench_metrics import Plan, percentile
from acp_bridge.testing.bench_world import Contender, World, served_model
from acp_bridge.testing.record import record
from tests.support.bench_agent import bench_agent
from tests.support.stub_scenario import STUB, prompt, stub_scenario

TINY = Plan(
    spawns=1, prompts=2, deltas=50, rate=1, paced=20, sessions=3, loaded=40, loads=1, stored=5, stored_deltas=2, lists=1
)


def world_of(tmp_path, url="http://127.0.0.1:9", **env):
    return World(tmp_path / "world", url, env, settle=0, limit=30)


def stub(*faults):
    return Contender("a stub", bench_agent(*faults))


def measured(tmp_path, metric, *faults, plan=TINY):
    return METRICS[metric](world_of(tmp_path), stub(*faults), plan)


FIGURES = {
    "m1": {"initialize_ms", "new_ms"},
    "m2": {"prompt_ms", "prompt_p90_ms"},
    "m3": {"frames_per_s", "deltas_per_s", "cpu_s", "cpu_us_per_delta", "idle_mib", "after_mib"},
    "m3p": {"p50_ms", "p99_ms", "max_ms", "cpu_s"},
    "m4": {"rss_mib", "peak_mib"},
    "m4b": {"mib_per_session", "new_session_ms"},
    "m5": {"load_s", "peak_mib", "cpu_s", "frames"},
    "sessions": {"first_ms", "all_pages_ms", "list_ms", "sessions"},
}


@pytest.mark.parametrize("metric", FIGURES)
def test_a_metric_gives_its_figures(tmp_path, metric):
    figures = measured(tmp_path, metric)
    assert figures.keys() == FIGURES[metric]
    assert all(value >= 0 for name, value in figures.items() if name != "mib_per_session")
    assert figures.get("frames", 40) == 40
    assert figures.get("sessions", 5) == 5
    assert figures.get("initialize_ms", 0) <= figures.get("new_ms", 0)


def test_an_agent_lives_in_directories_of_its_own(tmp_path):
    world = world_of(tmp_path, EXTRA="1")
    command = (sys.executable, "-c", "import os; print(dict(os.environ)); print(os.getcwd())")
    with world.started(Contender("who/is it", command)) as client, pytest.raises(BenchError, match="ended with 0"):
        client.initialize()
    (home,) = (tmp_path / "world").iterdir()
    assert home.name == "who-is-it"
    assert {path.name for path in home.iterdir() if path.is_dir()} >= {"home", "tmp", "config", "state", "work"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in home.iterdir() if path.is_dir())


def test_stored_sessions_are_made_once_and_take_no_room(tmp_path):
    world, plan = world_of(tmp_path), replace(TINY, stored=20)
    for _ in range(2):
        assert METRICS["sessions"](world, stub(), plan)["sessions"] == 20
    logs = list((tmp_path / "world").rglob("*.log"))
    assert len(logs) == 20
    assert len({log.stat().st_size for log in logs}) == 1
    assert {log.stat().st_mode & 0o077 for log in logs[1:]} <= {0, 0o044}


def test_a_session_is_stored_once_for_all_loads(tmp_path):
    world = world_of(tmp_path)
    for _ in range(2):
        METRICS["m5"](world, stub(), TINY)
    assert len(list((tmp_path / "world").rglob("*.log"))) == 1


@pytest.mark.parametrize(
    ("metric", "fault", "error", "sentence"),
    [
        ("m3", "few", BenchError, "49 of 50 deltas arrived before the answer"),
        ("m3p", "few", BenchError, "19 of 20 deltas arrived"),
        ("m5", "few", BenchError, "39 of 40 deltas were replayed"),
        ("m5", "poor", NotOfferedError, "does not advertise loadSession"),
        ("sessions", "poor", NotOfferedError, "does not advertise sessionCapabilities.list"),
        ("sessions", "scattered", NotOfferedError, "is not one file"),
        ("sessions", "forgetful", BenchError, "1 of 5 stored sessions are listed"),
        ("snapshots", "", NotOfferedError, "no suite"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(tmp_path, metric, fault, error, sentence):
    with pytest.raises(error, match=sentence):
        measured(tmp_path, metric, fault)


def suite(tmp_path):
    """A suite of two scenarios of the harness's stub; what it says is recorded as right."""
    rows = "".join(f'[[scenario]]\nname = "{name}"\nhas_model_turn = false\nsource = "recorded"\n' for name in "ab")
    (tmp_path / "scenarios.toml").write_text(
        '[agent]\ncommand = []\nsettles_session = "available_commands_update"\nreplay_env = "DSH_SNAPSHOT"\n'
        f'log_glob = "**/*.jsonl"\n{rows}'
    )
    for name in "ab":
        record(stub_scenario(tmp_path / name, prompt("say hi")), environment={})
    return Contender("a stub", STUB, tmp_path)


def test_a_suite_of_scenarios_is_timed_as_a_whole(tmp_path):
    figures = METRICS["snapshots"](world_of(tmp_path), suite(tmp_path), replace(TINY, most_scenarios=1))
    assert figures["scenarios"] == 1
    assert figures["mean_s"] >= figures["max_s"] > 0


def test_a_scenario_that_fails_has_no_time(tmp_path):
    contender = suite(tmp_path)
    (tmp_path / "a" / "stdout.golden.jsonl").write_text("{}\n")
    with pytest.raises(BenchError, match="scenario a fails") as caught:
        METRICS["snapshots"](world_of(tmp_path), contender, TINY)
    assert "differs at record 1" in caught.value.detail


def test_scenarios_that_cannot_be_read_are_a_sentence(tmp_path):
    with pytest.raises(BenchError, match="cannot be read"):
        METRICS["snapshots"](world_of(tmp_path), Contender("a", (), tmp_path), TINY)


def test_growth_is_three_tables(tmp_path):
    told = []
    text = growth(world_of(tmp_path), stub(), GrowthPlan(deltas=(10, 20), turns=(2, 4), around=2), told.append)
    heads = [table.splitlines()[0].split("  ")[0] for table in text.split("\n\n")]
    assert heads == ["deltas in one answer", "events loaded", "turns in the session"]
    assert [line.split()[0] for line in text.splitlines() if line[:1].isdigit()] == ["10", "20", "10", "20", "2", "4"]
    assert told == ["10 deltas", "20 deltas", "2 turns", "4 turns"]


def test_a_percentile_is_one_of_the_values():
    assert [percentile([3, 1, 2], share) for share in (0, 0.5, 0.99, 1)] == [1, 2, 3, 3]


def test_the_peer_streams_every_delta_as_a_frame_and_keeps_a_log(tmp_path):
    sdk = pytest.importorskip("acp")
    pytest.importorskip("httpx")
    assert sdk.Agent in importlib.import_module("acp_bridge.testing.bench_peer").SdkPeer.__mro__
    coverage = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    with served_model() as url:
        world = world_of(tmp_path, url, **coverage)
        peer = Contender("peer", (sys.executable, "-m", "acp_bridge.testing.bench_peer"))
        with world.session(peer) as (client, session):
            client.prompt(session, "@bench n=30 rate=0")
            assert (client.frames, client.deltas) == (30, 30)
            client.prompt(session, "@bench n=10 rate=1000 size=32")
            assert len(client.latencies) == 10
    (log,) = world.home(peer).rglob(f"{session}.jsonl")
    assert len(log.read_text().splitlines()) == 40
