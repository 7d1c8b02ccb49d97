"""Patterns of paths, and what git ignores."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_loop.tools.files.ignoring import Ignored
from agent_loop.tools.files.patterns import fixed_directory, path_pattern
from agent_loop.tools.files.walking import walk


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "x/src/a.py"]),
        ("/a.py", ["a.py"], ["x/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py"]),
        ("src/**", ["src/a", "src/a/b"], ["src"]),
        ("a**b", ["ab", "a/x/b"], ["a"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[a-c]x", ["ax", "cx"], ["dx"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("[^a]", ["b"], ["a"]),
        ("[]x]", ["]", "x"], ["[]x]"]),
        ("[ab", ["[ab"], ["a"]),
        ("{a,b*}.{c,d}", ["a.c", "bee.d"], ["c.c"]),
        ("{a,{b,c}}", ["a", "b", "c"], ["d"]),
        ("{a,b", ["{a,b"], ["a"]),
        ("a}", ["a}"], ["a"]),
        ("\\*\\\\", ["*\\"], ["a\\"]),
        ("a\\", ["a\\"], ["a"]),
        ("a+b(c).$", ["a+b(c).$"], ["aab(c).$"]),
    ],
)
def test_a_pattern_matches_these_paths_and_not_those(glob, matches, others):
    pattern = path_pattern(glob)
    assert [path for path in matches if not pattern.fullmatch(path)] == []
    assert [path for path in others if pattern.fullmatch(path)] == []


def test_braces_mean_nothing_to_git():
    assert path_pattern("{a,b}", braces=False).fullmatch("{a,b}")


@pytest.mark.parametrize(
    ("glob", "parts"),
    [
        ("*.py", ("", "*.py")),
        ("src/*.py", ("src", "*.py")),
        ("src/x*/y", ("src", "x*/y")),
        ("src/a.py", ("src", "a.py")),
        ("/*.py", ("/", "*.py")),
        ("a.py", ("", "a.py")),
        ("../x/**", ("../x", "**")),
    ],
)
def test_the_fixed_part_of_a_pattern_is_a_directory(glob, parts):
    assert fixed_directory(glob) == parts


FILES = (
    *("a.log", "b/a.log", "b/c/x.txt", "build/o.o", "src/build/o.o", "src/build.txt", "doc/a.md", "doc/sub/b.md"),
    *("foo/bar/baz.txt", "foo/keep.txt", "x/[z].txt", "tmp1/q", "deep/a/b/d.py", "deep/d.py", "#hash", "!bang"),
    *("k/nested/secret.key", "k/ok.key", "sp ace.txt", ".hidden/f"),
)
RULES = (
    *(
        "*.log\n!b/a.log\n",
        "build/\n",
        "/build\n",
        "doc/*.md\n",
        "doc/**/*.md\n",
        "foo/*\n!foo/keep.txt\n",
        "**/d.py\n",
    ),
    *("deep/**\n", "deep/**/d.py\n", "tmp?\n", "\\#hash\n\\!bang\n", "*.key\n!ok.key\n", "x/\\[z\\].txt\n", "[a-b]*\n"),
    *("[!a-k]*\n", "# c\n\n  \n.hidden\n", "sp\\ ace.txt \n", "sp ace.txt\\ \n", "*\n!*/\n!*.py\n", "{a,b}.log\n"),
    *("/*.log\n", "*.[lo]*\n", "/\n"),
)


def not_ignored(top: Path) -> list[str]:
    directory = os.open(top, os.O_RDONLY)
    try:
        return sorted(file.path for file in walk(directory, Ignored(str(top))) if not file.ignored)
    finally:
        os.close(directory)


def of_git(top: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    told = subprocess.run(command, cwd=top, capture_output=True, check=True).stdout.decode()
    return sorted(filter(None, told.split("\0")))


@pytest.mark.skipif(shutil.which("git") is None, reason="git itself is the judge")
def test_git_ignores_the_same(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".git/info/exclude").write_text("/k/.gitignore\n")
    (tmp_path / "k/.gitignore").write_text("!secret.key\nnested/x\n")
    for rules in RULES:
        (tmp_path / ".gitignore").write_text(rules)
        assert not_ignored(tmp_path) == of_git(tmp_path), rules
    (tmp_path / ".gitignore").write_text("d.py\n!/deep/d.py\n")
    (tmp_path / "deep/.gitignore").write_text("b\n")
    assert not_ignored(tmp_path / "deep/a") == of_git(tmp_path / "deep/a") == [], "the rules above hold below"


def test_without_a_repository_nothing_is_ignored(tmp_path: Path):
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "a").touch()
    assert not_ignored(tmp_path) == [".gitignore", "a"]
