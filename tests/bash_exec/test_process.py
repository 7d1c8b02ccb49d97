"""Whose a process is, and the ladder that ends it."""

import os
import subprocess

import anyio
import pytest

from bash_exec.process import (
    KillLadder,
    Process,
    describe,
    marked_pids,
    members,
    parse_ps,
    read_proc,
    read_ps,
    send_signal,
)
from tests.support.processes import ended


def sleeping() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "300"], start_new_session=True)


def row(pid, parent, group=0, session=0, state="S"):
    return Process(pid, parent, group or pid, session or pid, state)


TABLE = [
    row(2, 0, 0, 0),
    row(10, 1),  # the monitor
    row(11, 10, 11, 11),  # its shell
    row(12, 11, 11, 11),
    row(13, 11, 13, 13),  # setsid
    row(14, 13, 13, 13),
    row(15, 12, 11, 11, "Z"),
    row(20, 1, 11, 11),  # an orphan of the group
    row(21, 20, 21, 21),
    row(30, 1),
]


def pids(processes):
    return sorted(process.pid for process in processes)


def test_everything_living_below_a_process_is_found():
    assert pids(members(TABLE, below=10)) == [11, 12, 13, 14]


def test_a_group_brings_its_orphans_and_what_is_below_them():
    assert pids(members(TABLE, group=11)) == [11, 12, 13, 14, 20, 21]


def test_a_marked_process_brings_what_is_below_it():
    assert pids(members(TABLE, marked=frozenset({13, 30}))) == [13, 14, 30]


def test_a_branch_can_be_left_out():
    assert pids(members(TABLE, below=1, without=[10])) == [20, 21, 30]


def test_no_process_belongs_to_nobody():
    assert members(TABLE) == []


@pytest.mark.parametrize("read", [read_proc, read_ps])
def test_the_table_shows_a_child_of_ours(read):
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat", "-u"], stdin=pipe, stdout=pipe, bufsize=0, start_new_session=True) as child:
        child.stdin.write(b"x")
        assert child.stdout.read(1) == b"x"  # from here on it is cat
        (process,) = [process for process in read() if process.pid == child.pid]
        assert (process.parent, process.group, process.session) == (os.getpid(), child.pid, child.pid)
        assert describe(process) == "cat -u"


def test_rows_of_ps_are_read_and_broken_lines_are_not():
    text = "  1 0 1 Ss /sbin/init\n 22  1 22 S+ bash -c a\x0bb\u2028c\nsecond line of it\n 23 1 23 Z\n\n"
    assert parse_ps(text) == [
        Process(1, 0, 1, 1, "S", "/sbin/init"),
        Process(22, 1, 22, 22, "S", "bash -c a\x0bb\u2028c"),
        Process(23, 1, 23, 23, "Z"),
    ]


def test_a_process_that_ended_while_the_table_was_read_is_left_out(tmp_path):
    (tmp_path / "77").mkdir()
    (tmp_path / "88").mkdir()
    (tmp_path / "88" / "stat").write_bytes(b"88 (odd) name) S 1 88 88 0 -1")
    (tmp_path / "uptime").write_text("1")
    assert read_proc(str(tmp_path)) == [Process(88, 1, 88, 88, "S")]


def test_a_process_without_a_command_line_is_a_question_mark(tmp_path):
    assert describe(row(77, 1), str(tmp_path)) == "?"
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "cmdline").write_bytes(b"a\0" + b"b" * 300)
    assert describe(row(77, 1), str(tmp_path)) == "a " + "b" * 198


def test_a_marker_is_found_in_the_environment_it_was_started_with(tmp_path):
    for pid, environment in {
        "1": b"DSH_COMMAND_ID=x\0A=b\0",
        "2": b"A=b\0DSH_COMMAND_ID=x",
        "3": b"XDSH_COMMAND_ID=x\0",
    }.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "environ").write_bytes(environment)
    assert marked_pids([row(1, 0), row(2, 0), row(3, 0), row(4, 0)], "x", str(tmp_path)) == {1, 2}


def test_a_signal_to_what_has_ended_is_nothing():
    with subprocess.Popen(["true"], start_new_session=True) as child:
        child.wait()
    send_signal([row(child.pid, 1)], 0, 0)
    send_signal([row(child.pid, 1)], child.pid, 0)


def test_the_ladder_terminates_waits_kills_and_gives_up():
    ladder = KillLadder(lambda: [row(2**22 + 5, 1)], group=0, grace=3.0, now=100.0)  # a pid beyond the kernel's
    assert ladder.advance(100.0) == 100.05
    assert ladder.advance(100.05) == pytest.approx(100.1)
    assert ladder.advance(102.99) == 103.0
    assert ladder.advance(103.0) == pytest.approx(103.02)
    assert ladder.advance(104.0) is None
    assert pids(ladder.survivors) == [2**22 + 5]


def test_the_ladder_ends_when_nothing_is_alive():
    ladder = KillLadder(list, group=0, grace=3.0, now=100.0)
    assert ladder.advance(100.0) is None
    assert ladder.survivors == []


async def test_a_stopped_process_gets_its_term():
    with sleeping() as child:
        os.killpg(child.pid, 19)
        ladder = KillLadder(lambda: [row(child.pid, os.getpid())], group=child.pid, grace=30.0, now=0.0)
        ladder.advance(0.0)
        with anyio.fail_after(30):
            await ended(child.pid)
    assert child.returncode == -15
