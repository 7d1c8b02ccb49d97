"""What a bash command line is made of, as far as that is certain (acp.md §4).

May not know: rules, programs. Invariant: `simple_commands` answers only when bash would run exactly these programs with
exactly these words, in some order and no others; whatever is not certain — a substitution, a variable, a redirection to
a file, a node that the grammar has no plain word for — is None. Pure.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Words = tuple[str, ...]
PartlyKnown = tuple[str | None, ...]
"""The words of a command; None where a word is only known when it runs."""

LONGEST: Final = 20_000
"""Characters; a longer line is not read."""
_PLAIN: Final = re.compile(r"[\w@%+:,./=^-]+")
# what such a pattern expands to begins as it does: never with a dash
_PATTERN: Final = re.compile(r"[\w@%+:,./=^][\w@%+:,./=^*?-]*")
_HARMLESS_REDIRECT: Final = re.compile(r"[012]?>&[012]|(?:[012]|&)?>>? ?/dev/null|0?< ?/dev/null")
_ESCAPED: Final = re.compile(r'\\(["\\])')
_SEQUENCES: Final = frozenset({"program", "list", "pipeline", "negated_command", "redirected_statement"})
_SEPARATORS: Final = frozenset({"&&", "||", ";", "|", "|&", "!", "\n"})
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh", "eval"})


@lru_cache(maxsize=64)
def simple_commands(line: str) -> tuple[Words, ...] | None:
    """The words of every simple command of `line`, from left to right; None when they are not certain."""
    root = _parsed(line)
    # the tree begins at its first word: what was skipped before that is not in it
    if root is None or root.has_error or line.encode()[: root.start_byte].strip(b" \t\n"):
        return None
    commands: list[Words] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "command":
            words = _words_of(node)
            if words is None:
                return None
            commands.append(words)
        elif node.type in _SEQUENCES and _is_covered(node):
            waiting += reversed(node.children)
        elif not _adds_nothing(node):
            return None
    return tuple(commands) or None


@lru_cache(maxsize=64)
def mentioned_commands(line: str) -> tuple[PartlyKnown, ...] | None:
    """Every command that stands anywhere in `line`, also in loops and substitutions, and behind a shell's `-c`.

    None when the line cannot be read. What is mentioned need not run, and what runs need not be mentioned.
    """
    root = _parsed(line)
    if root is None or root.has_error:
        return None
    found: list[PartlyKnown] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "command":
            words = tuple(_word(argument) for argument in _arguments(node))
            found.append(words)
            if words and words[0] in _SHELLS:
                inner = [mentioned_commands(word) for word in words[1:] if word and word != line]
                if None in inner:
                    return None
                found += [command for commands in inner for command in commands or ()]
    return tuple(found)


@cache
def _parser() -> "Parser":
    import tree_sitter  # noqa: PLC0415 - 10 ms that only a line which a rule is held against has to pay
    import tree_sitter_bash  # noqa: PLC0415 - its grammar, for that line alone

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _parsed(line: str) -> "Node | None":
    # bash parts words at blanks and tabs only; what cannot be seen cannot be agreed to
    if len(line) > LONGEST or not all(char.isprintable() or char in "\n\t" for char in line):
        return None
    return _parser().parse(line.encode()).root_node


def _is_covered(node: "Node") -> bool:
    """Nothing but blanks stands between the parts of a node: nothing was skipped."""
    text, start = node.text or b"", node.start_byte
    if node.type == "negated_command" and text[1:2] not in (b" ", b"\t"):
        # `!a` is a program of that name
        return False
    at = start
    for child in node.children:
        if text[at - start : child.start_byte - start].strip(b" \t\n"):
            return False
        at = child.end_byte
    return not text[at - start :].strip(b" \t\n")


def _adds_nothing(node: "Node") -> bool:
    return node.type in _SEPARATORS or (
        node.type == "file_redirect" and _HARMLESS_REDIRECT.fullmatch(_text(node)) is not None
    )


def _words_of(command: "Node") -> Words | None:
    if not _is_covered(command):
        return None
    words: list[str] = []
    for child in command.children:
        if _adds_nothing(child):
            continue
        word = _word(child)
        if word is None:
            return None
        words.append(word)
    return tuple(words)


def _arguments(command: "Node") -> Iterator["Node"]:
    """The words of a command, without redirections and assignments."""
    for child in command.children:
        if child.is_named and child.type != "variable_assignment" and not child.type.endswith("_redirect"):
            yield child


def _word(node: "Node") -> str | None:
    """What a word is when it runs; None when that is not certain."""
    match node.type:
        case "command_name":
            return _word(node.children[0]) if len(node.children) == 1 else None
        case "word" | "number":
            text = _text(node)
            return text if _PLAIN.fullmatch(text) or _PATTERN.fullmatch(text) else None
        case "raw_string":
            return _text(node)[1:-1]
        case "string":
            text = _text(node)[1:-1]
            return None if "$" in text or "`" in text or "\\\n" in text else _ESCAPED.sub(r"\1", text)
        case "concatenation":
            parts = [_word(child) for child in node.children]
            if None in parts or any(glob in _text(child) for child in node.children for glob in "*?" if _bare(child)):
                return None
            return "".join(part for part in parts if part)
        case _:
            return None


def _bare(node: "Node") -> bool:
    return node.type in {"word", "number"}


def _text(node: "Node") -> str:
    return (node.text or b"").decode()
