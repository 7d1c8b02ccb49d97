"""Which processes are alive, and whose children they are.

May not know: agents. Invariant: a zombie is not alive; where `/proc` is missing, `ps` answers, and directories of
processes are unknown.
"""

import contextlib
import os
import subprocess
from pathlib import Path

_PROC = Path("/proc")


def parents(proc: Path = _PROC) -> dict[int, int]:
    """Every living process and its parent."""
    found: dict[int, int] = {}
    if not (proc / "self").exists():
        rows = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return {int(pid): int(ppid) for pid, ppid, state in map(str.split, rows) if not state.startswith("Z")}
    for entry in os.scandir(proc):
        if entry.name.isdigit():
            # it may end while it is looked at
            with contextlib.suppress(OSError):
                # the name may hold blanks and brackets: what follows the last one is plain
                state, ppid = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    found[int(entry.name)] = int(ppid)
    return found


def descendants(pid: int, *, among: dict[int, int] | None = None) -> set[int]:
    """The living children of `pid`, their children, and so on."""
    family = parents() if among is None else among
    found: set[int] = set()
    generation = {pid}
    while generation := {child for child, parent in family.items() if parent in generation} - found:
        found |= generation
    return found


def inhabitants(root: Path, *, proc: Path = _PROC) -> set[int]:
    """The living processes whose working directory lies in `root`."""
    found: set[int] = set()
    for pid in parents(proc):
        with contextlib.suppress(OSError):
            if Path(os.readlink(proc / str(pid) / "cwd")).is_relative_to(root):
                found.add(pid)
    return found
