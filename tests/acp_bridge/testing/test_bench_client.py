"""The lean client of the benchmark, and what the kernel tells of an agent: against real processes."""

import json
import os
import sys
import textwrap
import time

import anyio
import pytest

from acp_bridge.testing.bench_client import BenchError, Client
from acp_bridge.testing.bench_usage import cpu_seconds, memory
from tests.support.bench_agent import bench_agent
from tests.support.processes import ended, is_alive

CHUNK = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","x":"%s"}}}'
)


def client_of(tmp_path, *faults, seconds=20.0, command=None):
    return Client(
        command or bench_agent(*faults),
        env={**os.environ, "HOME": str(tmp_path)},
        cwd=tmp_path,
        stderr=tmp_path / "stderr",
        seconds=seconds,
    )


def answering(tmp_path, *pieces):
    """A client whose agent writes these pieces, each alone, when it is asked; then it tells what it has read."""
    program = f"""
        import os, sys, time
        sys.stdin.buffer.readline()
        for piece in {[piece.encode() for piece in pieces]!r}:
            os.write(1, piece)
            if b'"method":"ask' in piece or b"permission" in piece:
                open("heard", "ab").write(sys.stdin.buffer.readline())
        sys.stdin.buffer.read()
        """
    return client_of(tmp_path, command=[sys.executable, "-c", textwrap.dedent(program)])


ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"done":true}}\n'


def test_a_burst_is_counted_to_the_last_frame(tmp_path):
    client = client_of(tmp_path)
    client.initialize()
    assert client.capabilities["loadSession"] is True
    session = client.new_session(tmp_path)
    client.prompt(session, "@bench n=3000 rate=0")
    assert (client.frames, client.deltas, client.latencies, client.others) == (3000, 3000, [], 0)
    assert client.started < client.last_frame <= time.monotonic_ns()
    client.reset()
    client.prompt(session, "@bench n=7 rate=1")
    assert (client.frames, client.deltas, len(client.latencies)) == (7, 7, 7)
    assert all(latency > 0 for latency in client.latencies)
    client.close(10)


def test_deltas_that_an_agent_joins_are_counted_as_deltas(tmp_path):
    client = client_of(tmp_path, "joined")
    client.initialize()
    client.prompt("s", "@bench n=30 rate=0")
    assert (client.frames, client.deltas) == (1, 30)
    client.close(10)


def test_a_line_that_comes_in_pieces_is_one_line(tmp_path):
    line = CHUNK % "1~" + "\n"
    client = answering(tmp_path, line[:20], line[20:60], line[60:] + ANSWER[:9], ANSWER[9:])
    assert client.call("x", {}) == {"done": True}
    assert (client.frames, client.deltas, client.others) == (1, 1, 0)
    client.close(10)


def test_an_answer_behind_frames_is_seen_though_a_frame_names_its_kind_twice(tmp_path):
    twice = CHUNK % "agent_message_chunk~" + "\n"
    client = answering(tmp_path, twice + ANSWER)
    assert client.call("x", {}) == {"done": True}
    assert client.frames == 1
    client.close(10)


def test_what_is_no_frame_of_a_stream_is_counted_apart_and_requests_are_answered(tmp_path):
    asked = [
        '{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"options":[{"optionId":"yes"}]}}\n',
        '{"jsonrpc":"2.0","id":7,"method":"ask/anything","params":{}}\n',
    ]
    client = answering(tmp_path, "noise\n[]\n", '{"jsonrpc":"2.0","method":"x"}\n', *asked, ANSWER)
    assert client.call("x", {}) == {"done": True}
    assert (client.frames, client.others) == (0, 3)
    client.close(10)
    first, second = map(json.loads, (tmp_path / "heard").read_text().splitlines())
    assert first["result"] == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    assert second["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("fault", "seconds", "sentence", "detail"),
    [
        ("end", 20, "the agent ended with 1 before it answered session/prompt", "last words"),
        ("hang", 0.1, "no answer to session/prompt within 0.1 s", ""),
        ("error", 20, "session/prompt was answered with an error", "no, for /a/reason"),
    ],
)
def test_an_agent_that_fails_is_a_sentence_with_what_it_said(tmp_path, fault, seconds, sentence, detail):
    client = client_of(tmp_path, fault)
    client.initialize()
    client.seconds = seconds
    with pytest.raises(BenchError, match=sentence) as caught:
        client.prompt("s", "@bench n=1")
    assert detail in caught.value.detail
    assert str(tmp_path) not in str(caught.value)
    client.close(0)


def test_a_prompt_to_an_agent_that_has_ended_says_so(tmp_path):
    client = client_of(tmp_path, command=["true"])
    os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(BenchError, match="ended with 0"):
        client.initialize()
    with pytest.raises(BenchError, match="has ended"):
        memory(client.pid)
    client.close(0)


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path):
    client = client_of(tmp_path, "long")
    with pytest.raises(BenchError, match="a line of more than 64 MiB"):
        client.initialize()
    client.close(0)


def test_a_command_that_does_not_exist_is_a_sentence(tmp_path):
    with pytest.raises(BenchError, match="does not start: No such file"):
        client_of(tmp_path, command=["/no/such/agent"])


async def test_an_agent_that_does_not_end_is_ended_with_its_children(tmp_path):
    client = client_of(tmp_path, "deaf")
    client.initialize()
    child = int((tmp_path / "child").read_text())
    # the tree is two processes: the child's memory is in it
    assert memory(client.pid).resident > memory(child).resident > 0
    assert cpu_seconds(client.pid) >= 0
    client.close(0.01)
    with anyio.fail_after(10):
        await ended(child)
    assert not is_alive(client.pid)


def test_what_ends_while_it_is_looked_at_counts_nothing(tmp_path):
    for pid, children in ((1, "2 3"), (2, "")):
        task = tmp_path / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (task / "children").write_text(children)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) S 1 {'0 ' * 9}1 2 3 4 0\n")
        (tmp_path / str(pid) / "status").write_text("Name:\tx\nVmHWM:\t 4096 kB\nVmRSS:\t 2048 kB\n")
    (tmp_path / "2" / "task" / "9" / "children").mkdir(parents=True)
    used = memory(1, proc=tmp_path)
    assert (used.resident, used.peak) == (4, 8)
    assert cpu_seconds(1, proc=tmp_path) * os.sysconf("SC_CLK_TCK") == 20
    (tmp_path / "1" / "status").write_text("Name:\tzombie\n")
    assert memory(1, proc=tmp_path).resident == 2


def test_cpu_time_is_what_the_kernel_says_of_this_process():
    times = os.times()
    used = times.user + times.system + times.children_user + times.children_system
    assert cpu_seconds(os.getpid()) == pytest.approx(used, abs=0.3)
