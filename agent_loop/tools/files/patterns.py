"""Shell patterns of paths as regular expressions.

May not know: files. Invariant: pure, standard library only (the search process imports it); `*` never crosses a slash,
`**` does.
"""

import re
from typing import Final

_CLASS: Final = re.compile(r"\[[!^]?\]?[^\]/]*\]")


def path_pattern(glob: str, *, braces: bool = True, anchored: bool = False) -> re.Pattern[str]:
    """What matches relative paths, slashes between their parts. Without a slash in it, and unless it is `anchored`, it
    matches a name at any depth.

    `*`, `?`, `[…]`, `**`, and with `braces` `{a,b}`; a backslash takes the meaning from the next character.
    """
    anchored = anchored or "/" in glob.rstrip("/")
    body = _translate(glob.strip("/"), braces=braces)
    return re.compile(("" if anchored else "(?:.*/)?") + body, re.DOTALL)


def fixed_directory(glob: str) -> tuple[str, str]:
    """The part of `glob` up to the last slash before anything special, and the rest: `src/*.py` is `src`, `*.py`."""
    special = re.search(r"[*?\[{\\]", glob)
    head, slash, rest = (glob if special is None else glob[: special.start()]).rpartition("/")
    if not slash:
        return "", glob
    return head or "/", rest + ("" if special is None else glob[special.start() :])


def _translate(glob: str, *, braces: bool) -> str:
    out: list[str] = []
    depth = at = 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "*":
            stars, at = _stars(glob, at)
            out.append(stars)
        elif character == "?":
            out.append("[^/]")
        elif character == "[" and (found := _CLASS.match(glob, at - 1)):
            out.append(_character_class(found.group()))
            at = found.end()
        elif braces and character == "{" and "}" in glob[at:]:
            depth += 1
            out.append("(?:")
        elif depth and character in ",}":
            out.append("|" if character == "," else ")")
            depth -= character == "}"
        else:
            literal = glob[at : at + 1] if character == "\\" and at < len(glob) else character
            at += character == "\\" and at < len(glob)
            out.append(re.escape(literal))
    return "".join(out) + ")" * depth


def _stars(glob: str, at: int) -> tuple[str, int]:
    """The expression for the stars of which the first was read, and where they end."""
    if not glob.startswith("*", at):
        return "[^/]*", at
    at += 1
    begins = at == 2 or glob[at - 3] == "/"
    if begins and glob.startswith("/", at):
        return "(?:.*/)?", at + 1
    return ".*", at


def _character_class(text: str) -> str:
    inner = text[1:-1]
    negated = inner[:1] in ("!", "^")
    members = (inner[1:] if negated else inner).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return f"[{'^/' if negated else ''}{members.replace('^', chr(92) + '^')}]"
