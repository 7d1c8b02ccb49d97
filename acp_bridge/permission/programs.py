"""Of which programs a standing permission may name the beginning, and which of their options it never covers.

May not know: how a line is parsed, rules. Invariant: what runs the text or the program that it is given (a shell, an
interpreter, `env`, `xargs`, `sudo`, `ssh`, `npx`, …) has no beginning that could be allowed; neither has a program that
is not listed: of these only the whole line can. A covered command is at least two words of a subcommand, or a program
that by itself starts nothing else.
"""

import re
from typing import Final

from acp_bridge.permission.shell import Words
from acp_bridge.runners import runs_anything

_NAME: Final = re.compile(r"\w[\w:.-]*")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# no subcommands: the program itself is the beginning
_WHOLE: Final = _names(
    "ls pwd wc head tail cat nl file stat du df tree cut tr sort diff cmp comm basename dirname realpath readlink "
    "which whoami date uname id echo printf true false grep egrep fgrep rg fd find jq md5sum sha1sum sha256sum test "
    "seq pytest ruff mypy pyright basedpyright eslint tsc"
)
# `*` stands for one more word: a script of the project
_SUBCOMMANDS: Final[dict[str, frozenset[Words]]] = {
    program: frozenset(tuple(row.split()) for row in rows.split(","))
    for program, rows in {
        "git": "status,diff,log,show,branch,blame,add,commit,fetch,pull,push,checkout,switch,restore,stash,merge,tag,"
        "rev-parse,ls-files,describe,shortlog,grep,reset,cherry-pick",
        "npm": "test,ci,install,ls,outdated,run *",
        "pnpm": "test,install,ls,outdated,run *",
        "yarn": "test,install,run *",
        "cargo": "build,check,test,clippy,fmt,doc,bench,tree,metadata",
        "go": "build,test,vet,fmt,list,doc,version",
        "uv": "sync,lock,tree",
        "pip": "list,show,freeze,check",
        "poetry": "check,show,lock",
        "dotnet": "build,test,restore",
        "terraform": "validate,fmt",
        "kubectl": "get,describe,logs",
        "docker": "ps,images,logs,inspect",
        "gh": "pr view,pr list,pr diff,pr checks,issue view,issue list,run view,run list",
    }.items()
}
# options that run a program, read other settings, or write a file
_REFUSED: Final = {
    program: _names(options)
    for program, options in {
        "git": "-x -O --exec --upload-pack --receive-pack --open-files-in-pager --ext-diff --output",
        "npm": "--script-shell --prefix --node-options --userconfig --globalconfig",
        "pnpm": "-C --dir --script-shell --node-options",
        "yarn": "--cwd --script-shell --use-yarnrc",
        "cargo": "-Z -C --config --manifest-path",
        "go": "-exec -toolexec -vettool -overlay -C",
        "uv": "--project --directory --config-file --python",
        "kubectl": "--kubeconfig",
        "find": "-exec -ok -delete -fprint -fls",
        "fd": "-x -X --exec",
        "rg": "--pre --hostname-bin",
        "sort": "-o --output --compress-program",
        "tree": "-o -R",
        "date": "-s --set",
        "pytest": "-p -c -o --rootdir --override-ini --confcutdir --basetemp --junit-xml --junitxml --log-file",
        "file": "-C --compile",
        "eslint": "-o --output-file -c --config --resolve-plugins-relative-to --rulesdir --plugin -f --format",
        "ruff": "-o --config --output-file",
        "mypy": "--config-file --python-executable --install-types",
        "tsc": "-p --project",
    }.items()
}


def beginning_of(words: Words) -> Words | None:
    """The beginning of this command that a standing permission may name; None when only the whole line can."""
    program = words[0]
    if program in _WHOLE:
        found: Words | None = (program,)
    else:
        found = next((words[: len(row) + 1] for row in _SUBCOMMANDS.get(program, ()) if _is_row(words[1:], row)), None)
    return found if found and covers(found, words) else None


def covers(beginning: Words, words: Words) -> bool:
    """`words` begins so, and none of the others is an option that goes beyond what the beginning says."""
    rest = words[len(beginning) :]
    return (
        words[: len(beginning)] == beginning
        and not runs_anything(beginning[0])
        and not any(_is_option(word, option) for word in rest for option in _REFUSED.get(beginning[0], ()))
    )


def _is_row(words: Words, row: Words) -> bool:
    return len(words) >= len(row) and all(
        word == wanted or (wanted == "*" and _NAME.fullmatch(word)) for word, wanted in zip(words, row, strict=False)
    )


def _is_option(word: str, option: str) -> bool:
    """`word` is `option` in any spelling: with a value, shortened, or among other letters."""
    name = word.partition("=")[0]
    if len(option) == 2:
        return name.startswith("-") and not name.startswith("--") and option[1] in name[1:]
    # some programs take their long options with one dash, too
    spellings = (option, "-" + option) if not option.startswith("--") else (option,)
    return len(name) > 2 and any(name.startswith(each) or each.startswith(name) for each in spellings)
