"""What git ignores: the `.gitignore` files of a repository and its `info/exclude`.

May not know: tools; standard library only (the search process imports it). Invariant: outside a repository nothing is
ignored, and nothing of `.git` is ever seen.
"""

import os
import re
from typing import NamedTuple

from agent_loop.tools.files.patterns import path_pattern


class Rule(NamedTuple):
    """One line. `within`: the directory of its file, relative to the repository, with a slash at its end."""

    within: str
    pattern: re.Pattern[str]
    keeps: bool
    directories: bool


class Ignored:
    """The rules that hold for the directory `top` (absolute, resolved) and what lies below it."""

    def __init__(self, top: str) -> None:
        self._repository = _repository(top)
        self._rules: list[Rule] = []
        self._prefix = ""
        if self._repository is not None:
            self._rules += _rules(_text(os.path.join(self._repository, ".git", "info", "exclude")), "")
            relative = os.path.relpath(top, self._repository)
            steps = [] if relative == os.curdir else relative.split(os.sep)
            for depth in range(len(steps)):
                self._prefix = "".join(f"{step}/" for step in steps[:depth])
                self.enter("", _text(os.path.join(self._repository, *steps[:depth], ".gitignore")))
            self._prefix = "".join(f"{step}/" for step in steps)

    @property
    def in_repository(self) -> bool:
        """Whether there are rules at all."""
        return self._repository is not None

    def enter(self, directory: str, gitignore: str) -> int:
        """Add the rules of `directory` (relative to `top`, "" or ending in a slash); returns the mark to leave."""
        mark = len(self._rules)
        self._rules += _rules(gitignore, self._prefix + directory)
        return mark

    def leave(self, mark: int) -> None:
        """Forget the rules added since."""
        del self._rules[mark:]

    def covers(self, path: str, *, directory: bool) -> bool:
        """Whether `path` (relative to `top`) is ignored; its parents were asked about before."""
        whole = self._prefix + path
        for rule in reversed(self._rules):
            if rule.directories and not directory:
                continue
            if rule.pattern.fullmatch(whole, len(rule.within)):
                return not rule.keeps
        return False


def _repository(top: str) -> str | None:
    at = top
    while not os.path.exists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above
    return at


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _rules(text: str, within: str) -> list[Rule]:
    rules: list[Rule] = []
    for row in text.splitlines():
        line = row.rstrip()
        # the blank behind a backslash belongs to the name
        line += " " * line.endswith("\\")
        keeps = line.startswith("!")
        glob = line[keeps:]
        if glob.strip("/") and not line.startswith("#"):
            rules.append(Rule(within, path_pattern(glob, braces=False), keeps, glob.endswith("/")))
    return rules
