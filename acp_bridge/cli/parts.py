"""What the commands work with.

May not know: commands. Invariant: what is said is one line of visible text at a time.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from io import TextIOWrapper
from typing import TextIO, cast

from acp_bridge.cli import times
from acp_bridge.cli.visible import one_line
from acp_bridge.translate.v1.cards import FindTool
from agent_loop.runtime import Runtime
from agent_loop.session.store import SessionStore
from bash_exec.secrets import SecretRegistry


@dataclass(frozen=True, slots=True)
class Streams:
    """`out` for what was asked for, `err` for what is said about it, `source` for answers."""

    out: TextIO
    err: TextIO
    source: TextIO

    @classmethod
    def standard(cls) -> "Streams":
        """Those of the process; one that is closed leads nowhere. What a locale cannot write is written as `\\xNN`."""
        return cls(_forgiving(sys.stdout), _forgiving(sys.stderr), _forgiving(sys.stdin))

    def tell(self, text: str) -> None:
        """A line of the result."""
        self.out.write(f"{one_line(text)}\n")

    def say(self, text: str) -> None:
        """A line beside the result."""
        self.err.write(f"{one_line(text)}\n")
        self.err.flush()


@dataclass(frozen=True, slots=True)
class Parts:
    """`zone` None: where this machine is."""

    store: SessionStore
    find_tool: FindTool
    secrets: SecretRegistry
    runtime: Runtime
    environment: Mapping[str, str]
    streams: Streams
    zone: tzinfo | None = None

    def local_time(self, ms: int) -> str:
        """Epoch ms as `2026-11-30 14:05`."""
        return times.local(ms, self.zone)

    @property
    def coloured(self) -> bool:
        """A person looks at the result; FORCE_COLOR says so of a pipe (into `less -R`)."""
        return self.streams.out.isatty() or bool(self.environment.get("FORCE_COLOR"))

    def short_path(self, path: str) -> str:
        """`~` for the home directory."""
        home = self.environment.get("HOME", "").rstrip("/")
        return f"~{path[len(home) :]}" if home and (path + "/").startswith(home + "/") else path


def same_text(path: str) -> str:
    """An absolute path of what was written on the command line; links are not followed."""
    return os.path.abspath(os.path.expanduser(path))


def _forgiving(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "r+", encoding="utf-8")
    cast("TextIOWrapper", stream).reconfigure(errors="backslashreplace")
    return stream
