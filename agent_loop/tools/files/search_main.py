"""The search process where ripgrep is not installed: the same output, by Python.

Started by `searching` in a bare interpreter: a pattern may take for ever, and a process can be ended. May not know: the
agent; standard library only. Invariant: what is written is `path NUL line : text LF` for each matching line, in the
order of the paths.
"""

import os
import re
import sys
from collections.abc import Sequence
from typing import BinaryIO

from agent_loop.tools.files.ignoring import Ignored
from agent_loop.tools.files.opening import directory_of
from agent_loop.tools.files.patterns import path_pattern
from agent_loop.tools.files.walking import read_file, walk

_LARGEST = 16 << 20
_HEAD = 8192
BAD_PATTERN = 2
"""The exit code that ripgrep has for it, too."""


def main(arguments: Sequence[str], out: BinaryIO) -> int:
    """`[pattern, directory, name, glob]`: search the file `name` in `directory`, or all below it when that is empty.

    Returns the exit code: 0 found, 1 nothing found, 2 not a regular expression (told on stderr).
    """
    pattern, top, only, glob = arguments
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        sys.stderr.write(f"{error}\n")
        return BAD_PATTERN
    chosen = path_pattern(glob) if glob else None
    found = False
    with directory_of(os.path.join(top, ".")) as (directory, _):
        inner = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        if only:
            found = _search(wanted, read_file(inner, only, limit=_LARGEST), only, out)
        else:
            for file in walk(inner, Ignored(top)):
                # a glob that names a file says that it is wanted, ignored or not
                if not file.link and (chosen.fullmatch(file.path) if chosen else not file.ignored):
                    found |= _search(wanted, read_file(file.directory, file.name, limit=_LARGEST), file.path, out)
        os.close(inner)
    return 0 if found else 1


def _search(wanted: re.Pattern[str], data: bytes | None, path: str, out: BinaryIO) -> bool:
    if data is None or b"\0" in data[:_HEAD]:
        return False
    found = False
    lines = data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n") if data else []
    for number, line in enumerate(lines, 1):
        text = line.removesuffix("\r")
        if wanted.search(text):
            found = True
            out.write(f"{path}\0{number}:{text}\n".encode("utf-8", "surrogateescape"))
    return found
