"""Which processes belong to a command, and the ladder that ends them (contract tools-and-bash.md §4).

May not know: sockets, the loop, the command's text. Loaded by the supervisor child too, so its imports stay light.
Invariant: only a process found in a fresh table is ever signalled, and what is still alive afterwards is said.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple

MARKER = "DSH_COMMAND_ID"
KILL_ROUNDS = 1.0  # seconds for KILL to take effect, new forks included
_POLL = 0.05
_KILL_AGAIN = 0.02
_COMMAND_LIMIT = 200


class Process(NamedTuple):
    """One row of the process table; `command` is empty where the table does not tell it."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    command: str = ""


ReadTable = Callable[[], list[Process]]


def read_proc(root: str = "/proc") -> list[Process]:
    """The process table of Linux."""
    table: list[Process] = []
    for name in os.listdir(root):
        if not name.isdigit():
            continue
        try:
            with open(f"{root}/{name}/stat", "rb") as file:
                raw = file.read()
        except OSError:
            continue  # it ended between the listing and this line
        state, parent, group, session = raw[raw.rindex(b")") + 2 :].split(maxsplit=4)[:4]
        table.append(Process(int(name), int(parent), int(group), int(session), state.decode()))
    return table


def read_ps() -> list[Process]:
    """The process table where there is no /proc (macOS): sessions are unknown, groups stand for them."""
    import subprocess  # noqa: PLC0415 - Linux never pays for it

    argv = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,command="]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as ps:
        text = ps.communicate()[0].decode(errors="replace")
    return [process for process in parse_ps(text) if process.pid != ps.pid]


def parse_ps(text: str) -> list[Process]:
    """The rows of `ps`; a line that a command's own text has broken is no row."""
    table: list[Process] = []
    for line in text.split("\n"):
        pid, parent, group, state, command = [*line.split(None, 4), "", "", "", "", ""][:5]
        if pid.isdecimal() and parent.isdecimal() and group.isdecimal():
            table.append(Process(int(pid), int(parent), int(group), int(group), state[:1], command))
    return table


def members(
    table: Iterable[Process],
    *,
    below: int = 0,
    group: int = 0,
    marked: frozenset[int] = frozenset(),
    without: Iterable[int] = (),
) -> list[Process]:
    """The living processes of a command.

    Those below the process `below`, those of the process group or session `group`, those in `marked`, and everything
    below each of them; whole branches that start at a pid of `without` are left out.
    """
    children: dict[int, list[Process]] = {}
    found: dict[int, Process] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process)
        if process.pid in marked or (group and group in {process.group, process.session}):
            found[process.pid] = process
    left_out = frozenset(without)
    pending = [below, *found] if below else list(found)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child.pid not in left_out and child.pid not in found:
                found[child.pid] = child
                pending.append(child.pid)
    return [process for process in found.values() if process.state not in {"Z", "X"}]


def marked_pids(table: Iterable[Process], marker: str, root: str = "/proc") -> frozenset[int]:
    """The processes whose start environment carries the marker `marker`; unreadable ones are not among them."""
    needle = f"\0{MARKER}={marker}\0".encode()
    found: set[int] = set()
    for process in table:
        with contextlib.suppress(OSError), open(f"{root}/{process.pid}/environ", "rb") as file:
            if needle in b"\0" + file.read() + b"\0":
                found.add(process.pid)
    return frozenset(found)


def describe(process: Process, root: str = "/proc") -> str:
    """The command line of a process in at most 200 characters, `?` when it is gone."""
    text = process.command
    if not text:
        with contextlib.suppress(OSError), open(f"{root}/{process.pid}/cmdline", "rb") as file:
            text = file.read(4 * _COMMAND_LIMIT).replace(b"\0", b" ").decode(errors="replace").strip()
    return text[:_COMMAND_LIMIT] or "?"


def send_signal(processes: Iterable[Process], group: int, number: int) -> None:
    """Signal the group `group` as one, so that it cannot fork away, and every process outside it by itself."""
    chosen = list(processes)
    if any(process.group == group for process in chosen):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for process in chosen:
        if process.group != group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


class KillLadder:
    """TERM → grace on liveness → KILL until nothing is left or a second has passed → survivors.

    It neither sleeps nor reads a clock: `advance(now)` does what is due and says when to come back.
    """

    __slots__ = ("_gives_up", "_grace_ends", "_group", "_targets", "_terminated", "survivors")

    def __init__(self, targets: Callable[[], list[Process]], *, group: int, grace: float, now: float) -> None:
        self._targets = targets
        self._group = group
        self._grace_ends = now + grace
        self._gives_up = now + grace + KILL_ROUNDS
        self._terminated = False
        self.survivors: list[Process] = []

    def advance(self, now: float) -> float | None:
        """The time of the next call, or None when it is over and `survivors` holds what is still alive."""
        alive = self._targets()
        if not alive or now >= self._gives_up:
            self.survivors = alive
            return None
        if now >= self._grace_ends:
            send_signal(alive, self._group, signal.SIGKILL)
            return now + _KILL_AGAIN
        if not self._terminated:
            self._terminated = True
            send_signal(alive, self._group, signal.SIGTERM)
            send_signal(alive, self._group, signal.SIGCONT)  # a stopped process takes TERM only when it goes on
        return min(now + _POLL, self._grace_ends)
