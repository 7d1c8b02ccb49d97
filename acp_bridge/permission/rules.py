"""The standing rules: what was allowed or forbidden once and for all, and whether a call falls under it (acp.md §4).

May not know: where rules are kept, how they come about. Invariant: pure. A rule allows a call only when everything that
the call does is certain and covered; it forbids one as soon as something that it names is in it.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never, cast

from acp_bridge.permission.programs import covers
from acp_bridge.permission.shell import PartlyKnown, Words, mentioned_commands, simple_commands
from agent_loop.tools.seam import Effect, Subject
from agent_loop.vocabulary import JsonObject

RuleEffect = Literal["allow", "deny"]
Scope = Literal["session", "project", "config"]

UNSURE: Final = "unsure"
"""Whether a rule forbids the call cannot be seen."""
# programs that run their own words: what follows them is a command, too
_PASSING_ON: Final = frozenset(
    {"sudo", "doas", "env", "nice", "nohup", "time", "timeout", "xargs", "command", "exec", "stdbuf", "setsid", "ssh"}
)
_PROTECTED: Final = frozenset({".git", ".hg", ".svn"})
_PROTECTED_FILES: Final = frozenset({".dsh-acp-agent.toml"})


@dataclass(frozen=True, slots=True)
class CommandRule:
    """Exactly this command line of `tool`, in this directory."""

    tool: str
    line: str
    directory: str


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """Every simple command that begins with these words."""

    words: Words


@dataclass(frozen=True, slots=True)
class FilesRule:
    """`tool` on one file; on everything in a directory and below when `place` ends with a slash."""

    tool: str
    place: str


@dataclass(frozen=True, slots=True)
class ToolRule:
    """Every call of a tool that says of none what it touches."""

    tool: str


@dataclass(frozen=True, slots=True)
class CallRule:
    """Exactly this call: what cannot be said otherwise can still be forbidden."""

    digest: str


Target = CommandRule | PrefixRule | FilesRule | ToolRule | CallRule


@dataclass(frozen=True, slots=True)
class Rule:
    """`scope`: for the open session, saved for the project, or written in the user's configuration."""

    effect: RuleEffect
    target: Target
    scope: Scope


@dataclass(frozen=True, slots=True)
class Case:
    """A call that is judged. `roots`: the workspace, resolved, the first is the project."""

    tool: str
    effect: Effect
    subject: Subject
    roots: tuple[str, ...]
    digest: str

    @property
    def inside(self) -> bool:
        """It names paths, and every one lies in the workspace."""
        return bool(self.subject.paths) and all(self.is_inside(path) for path in self.subject.paths)

    @property
    def protected(self) -> bool:
        """It changes what decides what other programs run: that is never done without a question."""
        return self.effect == "edit" and any(is_protected(path) for path in self.subject.paths)

    def is_inside(self, path: str) -> bool:
        """A resolved path lies in the workspace."""
        return any(lies_in(path, root) for root in self.roots)


def is_protected(path: str) -> bool:
    """What lies here decides what other programs run."""
    parts = path.split("/")
    return not _PROTECTED.isdisjoint(parts) or parts[-1] in _PROTECTED_FILES


def lies_in(path: str, directory: str) -> bool:
    """A resolved path is the directory (with or without a slash at its end) or lies below it."""
    above = directory.rstrip("/")
    return path == above or path.startswith(above + "/")


def allowing(rules: Iterable[Rule], case: Case) -> tuple[Rule, ...]:
    """The rules that together allow the case; empty when they do not."""
    allowed = [rule for rule in rules if rule.effect == "allow"]
    if case.subject.command is not None:
        return _allowing_command(allowed, case.subject.command, case)
    for rule in allowed:
        match rule.target:
            case FilesRule(tool, place):
                paths = case.subject.paths
                covered = paths and all(lies_in(path, place) for path in paths)
                if tool == case.tool and covered and not case.protected:
                    return (rule,)
            case ToolRule(tool):
                if tool == case.tool and case.subject == Subject():
                    return (rule,)
            case CommandRule() | PrefixRule() | CallRule():
                continue
            case _:
                assert_never(rule.target)
    return ()


def forbidding(rules: Iterable[Rule], case: Case) -> Rule | Literal["unsure"] | None:
    """The first rule that forbids the case; `UNSURE` when one may; None when none does."""
    unsure = False
    for rule in rules:
        if rule.effect == "deny":
            found = _falls_under(rule.target, case)
            if found is True:
                return rule
            unsure = unsure or found is None
    return UNSURE if unsure else None


def _allowing_command(allowed: list[Rule], line: str, case: Case) -> tuple[Rule, ...]:
    directory = case.subject.directory or ""
    for rule in allowed:
        if rule.target == CommandRule(case.tool, line, directory):
            return (rule,)
    commands = simple_commands(line) if allowed else None
    if commands is None or not case.is_inside(directory):
        return ()
    left, moved = without_cd(commands, directory)
    if moved is None or not case.is_inside(moved):
        return ()
    used: list[Rule] = []
    for words in left:
        rule = next((rule for rule in allowed if _covers(rule.target, case.tool, words, moved)), None)
        if rule is None:
            return ()
        used.append(rule)
    return tuple(dict.fromkeys(used))


def without_cd(commands: tuple[Words, ...], directory: str) -> tuple[tuple[Words, ...], str | None]:
    """The commands behind a leading `cd`, and where they run; None when that is not certain.

    If that `cd` fails they run where they would have run without it: whoever asks has looked at that directory, too.
    """
    if commands[0][0] != "cd":
        return commands, directory
    if len(commands[0]) != 2 or commands[0][1].startswith("-") or not commands[0][1]:
        return commands, None
    return commands[1:], os.path.realpath(os.path.join(directory, commands[0][1]))


def _covers(target: Target, tool: str, words: Words, directory: str) -> bool:
    if isinstance(target, PrefixRule):
        return covers(target.words, words)
    return (
        isinstance(target, CommandRule)
        and (target.tool, target.directory) == (tool, directory)
        and simple_commands(target.line) == (words,)
    )


def _falls_under(target: Target, case: Case) -> bool | None:
    """None: it may."""
    line = case.subject.command
    match target:
        case FilesRule(tool, place):
            return tool == case.tool and any(lies_in(path, place) for path in case.subject.paths)
        case ToolRule(tool):
            return tool == case.tool
        case CommandRule(tool, forbidden, _):
            if line is None or tool != case.tool:
                return False
            commands = simple_commands(forbidden)
            alone = commands[0] if commands and len(commands) == 1 else None
            return line == forbidden or (alone is not None and alone in (mentioned_commands(line) or ()))
        case PrefixRule(words):
            return False if line is None else _mentions(line, words)
        case CallRule(digest):
            return digest == case.digest
        case _:
            assert_never(target)


def _mentions(line: str, words: Words) -> bool | None:
    commands = mentioned_commands(line)
    return None if commands is None else _any_of(_begins(command, words) for command in commands)


def _begins(command: PartlyKnown, words: Words) -> bool | None:
    starts = range(len(command)) if command and command[0] in _PASSING_ON else range(1)
    return _any_of(_are(command[start : start + len(words)], words) for start in starts)


def _are(part: PartlyKnown, words: Words) -> bool | None:
    fits = len(part) == len(words) and all(known in (None, word) for known, word in zip(part, words, strict=True))
    return None if fits and None in part else fits


def _any_of(answers: Iterable[bool | None]) -> bool | None:
    """True when one is; None when none is, but one may be."""
    unsure = False
    for answer in answers:
        if answer:
            return True
        unsure = unsure or answer is None
    return None if unsure else False


def target_json(target: Target) -> JsonObject:
    """The target as it is logged and saved."""
    match target:
        case CommandRule(tool, line, directory):
            return {"kind": "command", "tool": tool, "line": line, "directory": directory}
        case PrefixRule(words):
            return {"kind": "prefix", "words": list(words)}
        case FilesRule(tool, place):
            return {"kind": "files", "tool": tool, "place": place}
        case ToolRule(tool):
            return {"kind": "tool", "tool": tool}
        case CallRule(digest):
            return {"kind": "call", "digest": digest}
        case _:
            assert_never(target)


def read_target(row: JsonObject) -> Target | None:
    """The target that `target_json` has written; None when it is none."""
    match row:
        case {"kind": "command", "tool": str(tool), "line": str(line), "directory": str(directory)}:
            return CommandRule(tool, line, directory)
        case {"kind": "prefix"}:
            words = row.get("words")
            listed = cast("list[Any]", words) if isinstance(words, list) else []
            return PrefixRule(tuple(listed)) if listed and all(isinstance(word, str) for word in listed) else None
        case {"kind": "files", "tool": str(tool), "place": str(place)}:
            return FilesRule(tool, place)
        case {"kind": "tool", "tool": str(tool)}:
            return ToolRule(tool)
        case {"kind": "call", "digest": str(digest)}:
            return CallRule(digest)
        case _:
            return None


def grant_json(rules: tuple[Rule, ...]) -> JsonObject:
    """What `permission/decision.grant` says of the rules that decided, or that a decision has made."""
    return {
        "effect": rules[0].effect,
        "rules": [{"scope": rule.scope, **target_json(rule.target)} for rule in rules],
    }
