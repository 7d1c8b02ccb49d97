"""The programs that run what their words say: shells, interpreters, and those that pass a command on.

May not know: rules, settings. Invariant: plain data. To allow the beginning of such a command would allow everything.
"""

import re
from typing import Final

_NAMES: Final = (
    "bash sh zsh dash ksh fish csh tcsh python pypy perl ruby node nodejs deno bun php lua tclsh Rscript awk gawk mawk "
    "sed env xargs sudo doas su ssh nohup nice time timeout watch parallel eval exec command source . builtin script "
    "expect npx pnpx bunx uvx pipx stdbuf setsid chroot unshare nsenter busybox strace gdb trap coproc"
)
RUNNERS: Final = frozenset(_NAMES.split())
_VERSION: Final = re.compile(r"[\d.]+$")


def runs_anything(program: str) -> bool:
    """The program, named in whatever form (`/usr/bin/python3.11`), runs what it is told to."""
    name = program.rsplit("/", 1)[-1]
    return name in RUNNERS or _VERSION.sub("", name) in RUNNERS
