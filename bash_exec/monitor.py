"""The process above one command: its parent, its subreaper, its end (contract tools-and-bash.md §4).

The supervisor forks one per command. As subreaper it inherits every orphan of the command — background jobs, `setsid`,
double forks, with or without the marker — so that the command's processes are exactly those below it, and "no child
left" means that all are gone. Its control socket is a lifeline: when the agent's end closes, everything below dies.

May not know: the loop, the agent, other commands. Imports stay light. Invariant: it never ends while a process of the
command lives, except after the ladder has run for an agent that is gone.
"""

import contextlib
import os
import select
import signal
import socket
import time

from bash_exec import wire
from bash_exec.process import MARKER, KillLadder, Process, describe, members, read_proc, read_ps

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # a command's `pkill python` is not for us
_DEFAULTED = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
_PORTABLE_POLL = 0.2
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every orphan below this process (Linux)."""
    import ctypes  # noqa: PLC0415 - the portable form has no prctl to call

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def watch_children() -> tuple[int, int]:
    """A pipe whose first end becomes readable whenever a child changes state."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, _note_child)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end, write_end


def _note_child(number: int, frame: object) -> None:
    """A handler must exist for the wakeup descriptor to be written."""


class Monitor:
    """Runs one command to the end of its last process."""

    def __init__(self, control: socket.socket, *, grace: float, orphan_grace: float, portable: bool) -> None:
        self._control = control
        self._grace = grace
        self._orphan_grace = orphan_grace
        self._portable = portable
        self._read_table = read_ps if portable else read_proc
        self._shell = 0
        self._shell_ended = False
        self._ladder: KillLadder | None = None
        self._due: float | None = None
        self._agent_lost = False

    def run(self, request: wire.Request, streams: list[int]) -> None:
        """Start the command and stay until nothing of it is left. Closes `streams`: stdout, stderr, maybe stdin."""
        if not self._portable:
            adopt_orphans()
        wake = watch_children()[0]
        # before the shell: a command may stop or kill us at once, and the agent must know whom to end then
        self._say(f"{wire.WATCHING} {os.getpid()}")
        started = self._spawn(request, streams)
        for descriptor in streams:
            os.close(descriptor)
        if not started:
            return
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        poller.register(self._control, select.POLLIN)
        while self._reap():
            if not self._advance_ladder() and self._agent_lost:
                return
            for descriptor, _event in poller.poll(self._timeout_ms()):
                if descriptor == wake:
                    os.read(wake, 4096)
                elif not self._obey():
                    poller.unregister(self._control)
        self._say(wire.GONE)

    def _spawn(self, request: wire.Request, streams: list[int]) -> bool:
        out, err, *given = streams
        no_input = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
        stage = wire.STAGE_DIRECTORY
        try:
            os.chdir(request.directory)
            stage = wire.STAGE_SHELL
            self._shell = os.posix_spawnp(
                request.shell,
                [request.shell, "-c", request.command],
                {
                    **os.environ,
                    **dict(entry.split("=", 1) for entry in request.environment),
                    MARKER: request.marker,
                    "PWD": request.directory,
                },
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, given[0], 0) if given else no_input,
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_DUP2, err, 2),
                    *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in (*streams, self._control.fileno())),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=_DEFAULTED,
            )
        except OSError as error:
            self._say(f"{wire.FAILED} {error.errno} {stage}")
            return False
        self._say(f"{wire.STARTED} {self._shell}")
        return True

    def _obey(self) -> bool:
        """Take the agent's orders; False when the agent is gone."""
        try:
            orders = self._control.recv(64)
        except ConnectionResetError:  # it died with lines of ours unread
            orders = b""
        if not orders:
            self._agent_lost = True
            self._start_ladder(self._orphan_grace)
            return False
        if wire.LIST in orders:
            self._say_processes(wire.RUNNING, self._members())
        if wire.KILL in orders and self._ladder is None:
            self._start_ladder(self._grace)
        return True

    def _start_ladder(self, grace: float) -> None:
        self._due = time.monotonic()
        self._ladder = KillLadder(self._members, group=self._shell, grace=grace, now=self._due)

    def _advance_ladder(self) -> bool:
        """Do what the ladder has due; False when none is running any more."""
        if self._ladder is not None and self._due is not None and time.monotonic() >= self._due:
            self._due = self._ladder.advance(time.monotonic())
            if self._due is None:
                self._say_processes(wire.SURVIVORS, self._ladder.survivors)
                self._ladder = None
        return self._ladder is not None

    def _reap(self) -> bool:
        """Collect what has ended; False when no process of the command is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._portable and bool(self._members())
            if pid == 0:
                return True
            if pid == self._shell:
                self._shell_ended = True
                self._say(f"{wire.EXITED} {os.waitstatus_to_exitcode(status)}")

    def _members(self) -> list[Process]:
        # the group is a second net where orphans leave us; where they do not, its number may be another's by now
        return members(self._read_table(), below=os.getpid(), group=self._shell if self._portable else 0)

    def _timeout_ms(self) -> int | None:
        if self._due is not None:
            return max(0, round((self._due - time.monotonic()) * 1000))
        # without a subreaper nobody tells us that an orphan has ended
        return round(_PORTABLE_POLL * 1000) if self._portable and self._shell_ended else None

    def _say_processes(self, word: str, processes: list[Process]) -> None:
        self._say(wire.encode_processes(word, [(process.pid, describe(process)) for process in processes]))

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # an agent that is gone is noticed by the next poll
            self._control.sendall(line.encode() + b"\n")
