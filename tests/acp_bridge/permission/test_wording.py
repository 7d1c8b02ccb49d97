"""What "always" and "never" would mean for a call, and the words that say so."""

import pytest

from acp_bridge.permission.rules import CallRule, Case, CommandRule, FilesRule, PrefixRule, Rule, ToolRule
from acp_bridge.permission.wording import option_name, prohibitions, proposals, scope_of
from agent_loop.tools.seam import Subject


def command(line, directory="/p"):
    return Case("bash", "execute", Subject(command=line, directory=directory), ("/p",), "d")


def files(*paths, tool="edit", effect="edit"):
    return Case(tool, effect, Subject(paths=paths), ("/p",), "d")


def names(case, standing=()):
    """The names of both lasting options."""
    targets = proposals(case, standing)
    never = prohibitions(case, targets, tellable=True)
    always = option_name("allow", targets, scope_of(targets[0]), "/p") if targets else None
    return always, option_name("deny", never, scope_of(never[0]), "/p")


EXACT = "exactly this call for this session"
SAME = object()
OUTSIDE = {"tool": "read", "effect": "read"}


@pytest.mark.parametrize(
    ("case", "always", "never"),
    [
        (command("git status -s"), "`git status …` in this project", SAME),
        (command("git add x && ls"), "`git add …` and `ls …` in this project", "`git add x && ls` in this project"),
        (command("cd sub && ls"), "`ls …` in this project", SAME),
        (command("make"), "`make` in this project", SAME),
        (command("ls && make"), "`ls && make` in this project", SAME),
        (command("make", "/p/sub"), "`make` in sub/ in this project", SAME),
        (command("ls", "/etc"), "`ls` in /etc in this project", SAME),
        (command("cd /etc && ls"), "`cd /etc && ls` in this project", SAME),
        (command("cd && ls"), "`cd && ls` in this project", SAME),
        (command("cd sub"), "`cd sub` in this project", SAME),
        (command("echo $x"), "`echo $x` in this project", SAME),
        (command("ls | wc | sort | head"), "`ls | wc | sort | head` in this project", SAME),
        (command("x" * 121), None, EXACT),
        (command("a\nb"), None, EXACT),
        (command("a `b`"), None, EXACT),
        (command("a", "/p/`"), None, EXACT),
        (files("/p/src/a.py"), "`edit` on files below src/ for this session", "`edit` on src/a.py for this session"),
        (files("/p/a"), "`edit` on files below the project directory for this session", "`edit` on a for this session"),
        (files("/p/.git/config"), None, "`edit` on .git/config for this session"),
        (
            files("/x/y/z", **OUTSIDE),
            "`read` on files below /x/y for this session",
            "`read` on /x/y/z for this session",
        ),
        (files("/x/y", **OUTSIDE), None, "`read` on /x/y for this session"),
        (files("/p/`/x"), None, EXACT),
        (files("/p/1", "/p/2"), SAME, "`edit` on 1 and `edit` on 2 for this session"),
        (Case("srv__x", "execute", Subject(), ("/p",), "d"), "every call of `srv__x` for this session", SAME),
    ],
)
def test_an_option_says_all_that_its_rule_covers(case, always, never):
    said_always, said_never = names(case)
    if always is not SAME:
        assert said_always == (always and f"Always allow {always}")
    assert said_never == f"Never allow {always if never is SAME else never}"


def test_what_is_allowed_already_is_not_offered_again():
    standing = (Rule("allow", PrefixRule(("ls",)), "session"), Rule("deny", PrefixRule(("wc",)), "session"))
    assert proposals(command("ls | wc"), standing) == (PrefixRule(("wc",)),)
    assert proposals(command("ls"), standing) == (CommandRule("bash", "ls", "/p"),)


def test_a_directory_that_exists_is_named_itself(tmp_path):
    case = Case("list", "read", Subject(paths=(str(tmp_path),)), ("/p",), "d")
    assert proposals(case, ()) == (FilesRule("list", f"{tmp_path}/"),)


def test_what_may_not_be_told_is_this_very_call():
    assert prohibitions(command("a && b"), (), tellable=False) == (CallRule("d"),)
    assert prohibitions(files("/p/a"), (), tellable=False) == (CallRule("d"),)


@pytest.mark.parametrize(
    ("target", "scope"),
    [(PrefixRule(("a",)), "project"), (FilesRule("a", "/"), "session"), (ToolRule("a"), "session")],
)
def test_commands_are_remembered_for_the_project(target, scope):
    assert scope_of(target) == scope
