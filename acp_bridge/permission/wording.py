"""What a standing rule would be for a call, and the exact words that say so (acp.md §4).

May not know: where rules are kept, the editor. Invariant: pure; the words of an option say everything that the rule
will cover. What cannot be said in one short readable line is not offered.
"""

import os
from collections.abc import Sequence
from typing import Final, assert_never

from acp_bridge.permission.programs import beginning_of
from acp_bridge.permission.rules import (
    CallRule,
    Case,
    CommandRule,
    FilesRule,
    PrefixRule,
    Rule,
    RuleEffect,
    Scope,
    Target,
    ToolRule,
    lies_in,
    without_cd,
)
from acp_bridge.permission.shell import simple_commands
from agent_loop.tools.seam import Subject

LONGEST_TEXT: Final = 120
"""Characters of a line or a path that an option can show."""
MOST_RULES: Final = 3


def proposals(case: Case, standing: Sequence[Rule]) -> tuple[Target, ...]:
    """What "always" would mean for this call, besides what is allowed already; empty when it cannot be said."""
    subject = case.subject
    if subject.command is not None:
        return _command_proposals(case, subject.command, standing)
    if subject.paths:
        directory = _directory(case)
        return (FilesRule(case.tool, directory + "/"),) if directory and _is_readable(directory) else ()
    return (ToolRule(case.tool),) if subject == Subject() and _is_readable(case.tool) else ()


def prohibitions(case: Case, targets: Sequence[Target], *, tellable: bool) -> tuple[Target, ...]:
    """What "never" would mean, where "always" would mean `targets`: what cannot be said in words is this very call.

    Of a line of several commands nobody knows which one was meant: the line is forbidden; so are the files themselves,
    not what lies around them.
    """
    subject = case.subject
    if tellable and subject.command is not None and len(targets) > 1:
        return (CommandRule(case.tool, subject.command, subject.directory or ""),)
    if tellable and 0 < len(subject.paths) <= MOST_RULES and all(_is_readable(path) for path in subject.paths):
        return tuple(FilesRule(case.tool, path) for path in subject.paths)
    return tuple(targets) or (CallRule(case.digest),)


def scope_of(target: Target) -> Scope:
    """Commands are remembered for the project; everything else while the session is open."""
    match target:
        case CommandRule() | PrefixRule():
            return "project"
        case FilesRule() | ToolRule() | CallRule():
            return "session"
        case _:
            assert_never(target)


def option_name(effect: RuleEffect, targets: Sequence[Target], scope: Scope, project: str) -> str:
    """`Always allow `git status …` in this project`."""
    verb = "Always allow" if effect == "allow" else "Never allow"
    return f"{verb} {covered(targets, project)} {'for' if scope == 'session' else 'in'} this {scope}"


def covered(targets: Sequence[Target], project: str) -> str:
    """What the rules cover, for a person."""
    return " and ".join(_words(target, project) for target in targets)


def _words(target: Target, project: str) -> str:
    match target:
        case CommandRule(_, line, directory):
            return f"`{line}`" + ("" if directory == project else f" in {_shown(directory, project)}")
        case PrefixRule(words):
            return f"`{' '.join(words)} …`"
        case FilesRule(tool, place) if place.endswith("/"):
            return f"`{tool}` on files below {_shown(place.rstrip('/'), project)}"
        case FilesRule(tool, place):
            return f"`{tool}` on {os.path.relpath(place, project) if lies_in(place, project) else place}"
        case ToolRule(tool):
            return f"every call of `{tool}`"
        case CallRule():
            return "exactly this call"
        case _:
            assert_never(target)


def _shown(directory: str, project: str) -> str:
    if directory == project:
        return "the project directory"
    return os.path.relpath(directory, project) + "/" if lies_in(directory, project) else directory


def _command_proposals(case: Case, line: str, standing: Sequence[Rule]) -> tuple[Target, ...]:
    directory = case.subject.directory or ""
    if not _is_readable(line) or not _is_readable(directory):
        return ()
    exact = (CommandRule(case.tool, line, directory),)
    commands = simple_commands(line)
    if commands is None or not case.is_inside(directory):
        return exact
    left, moved = without_cd(commands, directory)
    if moved is None or not case.is_inside(moved) or not left:
        return exact
    known = {rule.target for rule in standing if rule.effect == "allow"}
    new: dict[Target, None] = {}
    for words in left:
        beginning = beginning_of(words)
        if beginning is None:
            return exact
        if (target := PrefixRule(beginning)) not in known:
            new[target] = None
    return tuple(new) if 0 < len(new) <= MOST_RULES else exact


def _directory(case: Case) -> str | None:
    """The directory that a rule about these files names: their common one; None when it would be too wide."""
    paths = case.subject.paths
    if case.protected:
        return None
    directory = os.path.commonpath([path if os.path.isdir(path) else os.path.dirname(path) for path in paths])
    return directory if directory.count("/") > 1 or case.is_inside(directory) else None


def _is_readable(text: str) -> bool:
    return 0 < len(text) <= LONGEST_TEXT and text.isprintable() and "`" not in text
