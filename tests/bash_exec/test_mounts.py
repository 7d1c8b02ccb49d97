"""Which rule decides about a path, and the order in which bubblewrap hears of them."""

import os

import pytest

from bash_exec.mounts import MountPlan, is_below

ROOT_IS_CLOSED = ["--remount-ro", "/"]


def test_the_rule_of_the_deeper_path_wins():
    plan = MountPlan()
    plan.put("write", ["/a/b/c"])
    plan.put("empty", ["/a/b"])
    plan.put("read", ["/a"])
    assert [plan.shows(path) for path in ("/", "/b", "/a", "/a/x", "/a/b", "/a/b/x", "/a/b/c", "/a/b/c/d")] == [
        False,
        False,
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert plan.arguments() == [
        *("--ro-bind", "/a", "/a"),
        *("--tmpfs", "/a/b"),
        *("--bind", "/a/b/c", "/a/b/c"),
        *ROOT_IS_CLOSED,
    ]


def test_the_later_rule_for_one_path_wins():
    plan = MountPlan()
    plan.put("read", ["/a/"])
    plan.put("write", ["/a"])
    assert plan.arguments() == ["--bind", "/a", "/a", *ROOT_IS_CLOSED]


def test_a_rule_that_changes_nothing_is_left_out():
    plan = MountPlan()
    plan.put("read", ["/a/b", "/a", "/a/c/d"])
    plan.put("write", ["/a/c"])
    assert plan.arguments() == [
        *("--ro-bind", "/a", "/a"),
        *("--bind", "/a/c", "/a/c"),
        *("--ro-bind", "/a/c/d", "/a/c/d"),
        *ROOT_IS_CLOSED,
    ]


def test_processes_are_shown_read_only():
    plan = MountPlan()
    plan.put("proc", ["/proc"])
    plan.put("dev", ["/dev"])
    assert plan.arguments() == ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc", *ROOT_IS_CLOSED]


@pytest.mark.parametrize(("kind", "end"), [("read", ROOT_IS_CLOSED), ("write", [])])
def test_the_whole_machine_can_be_shown(kind, end):
    plan = MountPlan()
    plan.put("empty", ["/tmp"])
    plan.put(kind, ["/"])
    assert plan.shows("/a")
    assert plan.arguments()[1:] == ["/", "/", "--tmpfs", "/tmp", *end]


def test_what_does_not_exist_has_a_rule_only_when_it_must(tmp_path):
    plan = MountPlan()
    plan.put_present("read", [str(tmp_path / "absent"), str(tmp_path)])
    assert plan.arguments() == ["--ro-bind", str(tmp_path), str(tmp_path), *ROOT_IS_CLOSED]


def test_a_link_is_shown_beside_its_target_and_only_where_nothing_else_shows_it(tmp_path):
    base = os.path.realpath(tmp_path)
    for folder in ("real/inner", "shown", "home"):
        os.makedirs(f"{base}/{folder}")
    os.symlink(f"{base}/real", f"{base}/link")
    os.symlink(f"{base}/real", f"{base}/shown/link")
    os.symlink(f"{base}/real", f"{base}/home/link")
    plan = MountPlan()
    plan.put("read", [f"{base}/shown"])
    plan.put("empty", [f"{base}/home"])
    plan.put("write", [f"{base}/{name}" for name in ("link", "link/inner", "shown/link", "home/link")])
    assert plan.shows(f"{base}/link/inner/x")
    assert plan.arguments() == [
        *("--tmpfs", f"{base}/home"),
        *("--bind", f"{base}/real", f"{base}/real"),
        *("--ro-bind", f"{base}/shown", f"{base}/shown"),
        *("--symlink", f"{base}/real", f"{base}/link"),
        *("--symlink", f"{base}/real", f"{base}/home/link"),
        *ROOT_IS_CLOSED,
    ]


@pytest.mark.parametrize(
    ("path", "folder", "answer"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/", True), ("/", "/a", False)],
)
def test_a_path_is_below_itself_and_below_its_parents(path, folder, answer):
    assert is_below(path, folder) is answer
