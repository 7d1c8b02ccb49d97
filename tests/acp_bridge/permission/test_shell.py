"""A command line as bash would read it, and nothing that is not certain."""

import pytest

from acp_bridge.permission.shell import LONGEST, mentioned_commands, simple_commands


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git status", [["git", "status"]]),
        ("git log -5 --oneline | head -3 && ls", [["git", "log", "-5", "--oneline"], ["head", "-3"], ["ls"]]),
        ("a; b || ! c\n\n  d", [["a"], ["b"], ["c"], ["d"]]),
        ("a |& b", [["a"], ["b"]]),
        ("a 'b $c' \"d e\" f\"g\"'h'", [["a", "b $c", "d e", "fgh"]]),
        (r'a "x\"y\\z\n"', [["a", r'x"y\z\n']]),
        ("'git' \"status\" ''", [["git", "status", ""]]),
        ("a > /dev/null 2>&1 < /dev/null", [["a"]]),
        ("a 2>/dev/null >&2 &>/dev/null", [["a"]]),
        ("a src/*.py x?.c --opt=1 k=v ü", [["a", "src/*.py", "x?.c", "--opt=1", "k=v", "ü"]]),
        (">/dev/null a b", [["a", "b"]]),
        ("a 1 2", [["a", "1", "2"]]),
    ],
)
def test_simple_commands_are_told_word_by_word(line, commands):
    assert simple_commands(line) == tuple(tuple(words) for words in commands)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        "# nothing",
        "a # b",
        "a $x",
        'a "$x"',
        'a "`b`"',
        'a "b\\\nc"',
        "a $(b)",
        "a `b`",
        "a <(b)",
        "a $'b'",
        "a ${b}",
        "a $((1))",
        "a {b,c}",
        "a {1..3}",
        "a *.py",
        "a -*",
        'a x"y"*',
        "a x'y'$z",
        "a ~/x",
        "a b\\ c",
        "\\ a",
        "!a",
        "!''",
        "a | !b",
        "a \\\n b",
        "a > out",
        "a >> out",
        "a 2> out",
        "a < in",
        "a >& out",
        "a > /dev/null/../x",
        "a <<< x",
        "a << EOF\nx\nEOF",
        "a << 'EOF' | b\nx\nEOF",
        "x=1 a",
        "x=1",
        "export x=1",
        "unset x",
        "a & b",
        "a &",
        "a;; b",
        "(a)",
        "{ a; }",
        "if a; then b; fi",
        "for i in a; do b; done",
        "while a; do b; done",
        "case a in b) c;; esac",
        "[[ -f a ]]",
        "[ -f a ]",
        "f() { a; }",
        "function f { a; }",
        "a 'b",
        'a "b',
        "a (b",
        "a | ",
        "$x a",
        "a\x0bb",
        "a\u00a0b",
        "a\rb",
        "a\x00b",
        "a \u202e b",
        "a " + "b" * LONGEST,
    ],
)
def test_what_is_not_certain_is_no_command(line):
    assert simple_commands(line) is None


def test_a_long_chain_is_read_without_recursion():
    line = " && ".join(["a b"] * 2000)
    assert simple_commands(line) == (("a", "b"),) * 2000


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git push", {("git", "push")}),
        ("x=1 git push > out", {("git", "push")}),
        ("if a; then (git push); fi", {("a",), ("git", "push")}),
        ("a $(git push)", {("a", None), ("git", "push")}),
        ("$x push", {(None, "push")}),
        ("bash -c 'git push; b'", {("bash", "-c", "git push; b"), ("-c",), ("git", "push"), ("b",)}),
        ("eval", {("eval",)}),
        ("> out", set()),
    ],
)
def test_mentioned_commands_are_found_wherever_they_stand(line, commands):
    found = mentioned_commands(line)
    assert found is not None
    assert set(found) == commands


@pytest.mark.parametrize("line", ["a 'b", "a\x00b", "bash -c 'a ('"])
def test_a_line_that_cannot_be_read_mentions_nobody_knows_what(line):
    assert mentioned_commands(line) is None
