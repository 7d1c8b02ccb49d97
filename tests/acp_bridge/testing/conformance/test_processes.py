import os
import subprocess
import sys

from acp_bridge.testing.conformance.processes import descendants, inhabitants, parents

_GRANDPARENT = "import subprocess, sys; p = subprocess.Popen(['cat']); print(p.pid, flush=True); p.wait()"


def test_children_of_children_are_descendants_and_live_where_they_were_started(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _GRANDPARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as child:
        grandchild = int(child.stdout.readline())
        assert descendants(os.getpid()) >= {child.pid, grandchild}
        assert descendants(child.pid) == {grandchild}
        assert inhabitants(tmp_path.resolve()) == {child.pid, grandchild}
        child.stdin.close()
    assert inhabitants(tmp_path.resolve()) == set()


def test_a_zombie_is_not_alive():
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert child.pid not in parents()


def test_without_proc_ps_answers_and_directories_are_unknown(tmp_path):
    family = parents(tmp_path / "none")
    assert family[os.getpid()] == os.getppid()
    assert inhabitants(tmp_path, proc=tmp_path / "none") == set()


def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(tmp_path):
    (tmp_path / "self").touch()
    (tmp_path / "12").mkdir()
    (tmp_path / "13").mkdir()
    (tmp_path / "13" / "stat").write_text("13 (a) name) S 1 13 13")
    assert parents(tmp_path) == {13: 1}
