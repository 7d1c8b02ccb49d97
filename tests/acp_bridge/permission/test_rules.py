"""Does a call fall under a rule? Allowed only when all of it is covered, forbidden as soon as a part of it is."""

import pytest

from acp_bridge.permission.rules import (
    UNSURE,
    CallRule,
    Case,
    CommandRule,
    FilesRule,
    PrefixRule,
    Rule,
    ToolRule,
    allowing,
    forbidding,
    read_target,
    target_json,
)
from agent_loop.tools.seam import Subject


def allow(target, scope="project"):
    return Rule("allow", target, scope)


def deny(target, scope="project"):
    return Rule("deny", target, scope)


def command(line, directory="/p"):
    return Case("bash", "execute", Subject(command=line, directory=directory), ("/p",), "d")


def files(*paths, tool="edit", effect="edit"):
    return Case(tool, effect, Subject(paths=paths), ("/p", "/q"), "d")


STATUS, HEAD = allow(PrefixRule(("git", "status"))), allow(PrefixRule(("head",)), "config")
MAKE = allow(CommandRule("bash", "make test", "/p"))
ODD = allow(CommandRule("bash", "echo $x", "/p"))


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("git status -s", [STATUS]),
        ("git status | head -1; git status", [STATUS, HEAD]),
        ("cd sub && git status", [STATUS]),
        ("cd /p/sub; head x", [HEAD]),
        ("make test", [MAKE]),
        ("make test 2>&1 | head", [MAKE, HEAD]),
        ("echo $x", [ODD]),
    ],
)
def test_a_line_is_allowed_by_the_rules_that_together_cover_it(line, rules):
    assert allowing((STATUS, HEAD, MAKE, ODD), command(line)) == tuple(rules)


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git status && git push",
        "git status --output=x",
        "echo $x | head",
        "git status $x",
        "git status > out",
        "cd / && git status",
        "cd .. && git status",
        "cd - && git status",
        "cd && git status",
        "cd '' && git status",
        "cd a b && git status",
        "git status && cd sub",
        "cd sub && make test",
        "make test2",
        "cd",
    ],
)
def test_one_part_that_is_not_covered_is_enough(line):
    assert allowing((STATUS, HEAD, MAKE, ODD), command(line)) == ()


def test_a_cd_alone_uses_no_rule():
    assert allowing((STATUS,), command("cd sub")) == ()


def test_beginnings_hold_in_the_workspace_only_and_exact_lines_in_their_directory():
    assert allowing((STATUS,), command("git status", "/p/sub")) == (STATUS,)
    assert allowing((STATUS,), command("git status", "/etc")) == ()
    assert allowing((MAKE,), command("make test", "/p/sub")) == ()
    assert allowing((), command("git status")) == ()


def test_a_cd_through_a_link_is_followed(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "out").symlink_to("/")
    root = str(tmp_path / "work")
    case = Case("bash", "execute", Subject(command="cd out && git status", directory=root), (root,), "d")
    assert allowing((STATUS,), case) == ()


def test_files_are_allowed_below_a_directory_for_that_tool_alone():
    rule = allow(FilesRule("edit", "/p/src/"), "session")
    assert allowing((rule,), files("/p/src/a.py", "/p/src/b/c.py")) == (rule,)
    assert allowing((rule,), files("/p/src")) == (rule,)
    assert allowing((rule,), files("/p/src/a.py", "/p/b.py")) == ()
    assert allowing((rule,), files("/p/srcs/a.py")) == ()
    assert allowing((rule,), files("/p/src/a.py", tool="write")) == ()
    assert allowing((rule,), files("/p/src/.git/hooks/x")) == ()
    assert allowing((rule, STATUS, allow(CallRule("d"))), files()) == ()


def test_looking_into_what_is_protected_can_be_allowed():
    rule = allow(FilesRule("read", "/x/"), "session")
    assert allowing((rule,), files("/x/.git/config", tool="read", effect="read")) == (rule,)


def test_a_tool_that_names_nothing_is_allowed_as_a_whole():
    rule = allow(ToolRule("srv__x"), "session")
    assert allowing((rule,), Case("srv__x", "execute", Subject(), ("/p",), "d")) == (rule,)
    assert allowing((rule,), Case("srv__y", "execute", Subject(), ("/p",), "d")) == ()
    assert allowing((rule,), files("/p/a", tool="srv__x")) == ()


PUSH = deny(PrefixRule(("git", "push")))


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "ls; git push -f",
        "if a; then git push; fi",
        "x=$(git push)",
        "sudo -n git push",
        "bash -c 'ls && git push'",
        "git push > out &",
    ],
)
def test_what_is_forbidden_is_found_wherever_it_stands(line):
    assert forbidding((STATUS, PUSH), command(line)) == PUSH


@pytest.mark.parametrize("line", ["$x push", "git $x", "a 'b", "sudo $x push"])
def test_where_it_cannot_be_seen_nobody_is_sure(line):
    assert forbidding((PUSH,), command(line)) == UNSURE


@pytest.mark.parametrize("line", ["git status", "echo git push", "git", "git-push", "$x status"])
def test_everything_else_is_not_forbidden(line):
    assert forbidding((STATUS, PUSH), command(line)) is None


def test_an_exact_line_is_forbidden_also_as_a_part_of_another():
    rule = deny(CommandRule("bash", "rm a", "/p"))
    assert forbidding((rule,), command("rm a")) == rule
    assert forbidding((rule,), command("ls && rm a", "/p/sub")) == rule
    assert forbidding((rule,), command("rm b")) is None
    assert forbidding((rule,), command("a 'b")) is None
    odd = deny(CommandRule("bash", "rm $a; b", "/p"))
    assert forbidding((odd,), command("rm $a; b")) == odd
    assert forbidding((odd,), command("b")) is None
    assert forbidding((rule, PUSH), files("/p/a")) is None


def test_files_tools_and_calls_are_forbidden():
    file, tool, call = deny(FilesRule("edit", "/p/a")), deny(ToolRule("srv__x")), deny(CallRule("d"))
    assert forbidding((file,), files("/p/b", "/p/a")) == file
    assert forbidding((file,), files("/p/ab")) is None
    assert forbidding((tool,), Case("srv__x", "execute", Subject(), ("/p",), "d")) == tool
    assert forbidding((tool,), command("ls")) is None
    assert forbidding((call,), command("ls")) == call
    assert forbidding((deny(CallRule("e")),), command("ls")) is None


@pytest.mark.parametrize(
    "target",
    [
        CommandRule("bash", "make", "/p"),
        PrefixRule(("git", "push")),
        FilesRule("edit", "/p/"),
        ToolRule("x"),
        CallRule("d"),
    ],
)
def test_a_target_is_read_as_it_was_written(target):
    assert read_target(target_json(target)) == target


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"kind": "future"},
        {"kind": "command", "tool": "bash", "line": 1, "directory": "/p"},
        {"kind": "prefix"},
        {"kind": "prefix", "words": []},
        {"kind": "prefix", "words": ["git", 1]},
        {"kind": "tool"},
    ],
)
def test_anything_else_is_no_target(row):
    assert read_target(row) is None
