"""`dsh-acp-agent sessions …` in this process: real files, real cards, streams that remember."""

import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from acp_bridge.cli.parts import Streams
from acp_bridge.cli.sessions import run
from acp_bridge.composition.toolset import shown_tools
from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionHeader
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.session.store import SessionStore
from tests.support.session_turns import Pair, events_of

NOW = 1_700_000_000_000


@functools.cache
def tools() -> Mapping[str, Any]:
    """The tools of the product, for their cards."""
    return shown_tools()


class Stream(io.TextIOWrapper):
    """A text stream in memory; `tty`: it says that a person is there."""

    def __init__(self, text: str = "", *, tty: bool = False) -> None:
        self.memory = io.BytesIO(text.encode())
        super().__init__(self.memory, encoding="utf-8", newline="\n", write_through=True)
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty

    @property
    def text(self) -> str:
        return self.memory.getvalue().decode()


@dataclass
class Ran:
    code: int
    out: str
    err: str


@dataclass
class CommandWorld:
    """`root` is where the sessions lie. The clock stands at `NOW`."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    runtime: VirtualRuntime = field(default_factory=lambda: VirtualRuntime(NOW))

    def __post_init__(self) -> None:
        self.environment = {
            "DSH_SNAPSHOT_SESSIONS_ROOT": str(self.root),
            "DSH_CONFIG": str(self.root / "config.toml"),
            **self.environment,
        }

    def store(self, root: Path) -> SessionStore:
        return JsonlSessionStore(root, self.runtime)

    def run(self, *argv: str, answer: str | None = None, tty: bool = False, err_tty: bool = False) -> Ran:
        """Carry out a command. `answer`: a person sits at the terminal and types it; `tty`: and looks at the output."""
        out, err = Stream(tty=tty), Stream(tty=err_tty)
        source = Stream(answer or "", tty=answer is not None)
        code = run(
            argv,
            self.environment,
            Streams(out, err, source),
            open_store=self.store,
            find_tool=tools().get,
            runtime=self.runtime,
        )
        return Ran(code, out.text, err.text)

    def write(
        self, session_id: str, pairs: list[Pair], *, cwd: str | None = "/srv/app", time: int = 1000, **header: Any
    ) -> Path:
        """Store a log; each event a millisecond after the one before."""
        path = log_path(self.root, session_id, cwd)
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(log_bytes(SessionHeader(session_id, time, cwd=cwd, **header), pairs, time=time))
        return path


def log_bytes(header: SessionHeader, pairs: list[Pair], *, time: int = 1000) -> bytes:
    """A whole log file."""
    return b"".join([encode_header(header), *map(encode_event, events_of(pairs, time=time))])


__all__ = ["NOW", "UTC", "CommandWorld", "Ran", "Stream", "log_bytes", "tools"]
