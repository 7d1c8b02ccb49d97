"""Where the agents of a benchmark live: private directories, one model, their clients.

May not know: metrics. Invariant: nothing outside `root` is written, an agent sees nothing of the user's own, and what
was started is ended when its block is left.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, cast

from acp_bridge.testing.bench_client import BenchError, Client, NotOfferedError
from acp_bridge.testing.json_values import as_object
from acp_bridge.testing.model_thread import addresses

# what a program needs to start at all; nothing that tells one machine from another
_PASSED: Final = ("PATH", "LANG", "LC_ALL")
_FOLDERS: Final = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
    "XDG_DATA_HOME": "data",
    "XDG_CACHE_HOME": "cache",
}
_CWD: Final = "work"


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent that is measured. `name` holds no path; `scenarios` is the folder of its snapshot suite, if any."""

    name: str
    command: tuple[str, ...]
    scenarios: Path | None = None


@dataclass(slots=True)
class World:
    """The directories below `root`, and how long to wait, in seconds: `settle` before memory is read, `limit` for an
    answer, `grace` for an end.

    `kept` holds what a metric made once for all rounds. `env` is added to that of every agent.
    """

    root: Path
    model_url: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    settle: float = 0.7
    limit: float = 120.0
    grace: float = 3.0
    kept: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _clients: int = 0

    def home(self, contender: Contender, purpose: str = "") -> Path:
        """The directory that holds all of an agent's; another `purpose` is another directory."""
        home = self.root / (re.sub(r"[^\w.]+", "-", contender.name) + purpose)
        for name in (*_FOLDERS.values(), _CWD):
            (home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        return home

    @contextlib.contextmanager
    def started(self, contender: Contender, purpose: str = "") -> Generator[Client]:
        """A fresh process. Left in order it may save what it has; after a failure it is ended at once."""
        home = self.home(contender, purpose)
        self._clients += 1
        env = {name: os.environ[name] for name in _PASSED if name in os.environ}
        env |= {name: str(home / folder) for name, folder in _FOLDERS.items()}
        env |= {**addresses(self.model_url), **self.env}
        client = Client(
            contender.command, env=env, cwd=home / _CWD, stderr=home / f"stderr-{self._clients}", seconds=self.limit
        )
        grace = 0.0
        try:
            yield client
            grace = self.grace
        finally:
            client.close(grace)

    @contextlib.contextmanager
    def session(self, contender: Contender) -> Generator[tuple[Client, str]]:
        """A fresh process with a session."""
        with self.started(contender) as client:
            client.initialize()
            yield client, client.new_session(self.cwd(contender))

    def cwd(self, contender: Contender, purpose: str = "") -> Path:
        """The working directory of its sessions."""
        return self.home(contender, purpose) / _CWD

    def rest(self) -> None:
        """Let an agent come to rest: what it does behind its answer belongs to the figure, too."""
        time.sleep(self.settle)  # no event tells that another process has come to rest


def require(client: Client, capability: str) -> None:
    """Raise `NotOfferedError` unless the agent advertises the dotted name."""
    value: object = client.capabilities
    for key in capability.split("."):
        value = (as_object(value) or {}).get(key)
    # an empty object advertises, too
    if value is None or value is False:
        raise NotOfferedError(f"the agent does not advertise {capability}")


@contextlib.contextmanager
def served_model(command: Sequence[str] = (sys.executable, "-m", "acp_bridge.testing.bench_model")) -> Generator[str]:
    """The address of a model in a process of its own while the block runs. Raises `BenchError`."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        line = cast("IO[bytes]", process.stdout).readline()
        if not line:
            raise BenchError("the model of the benchmark does not start")
        try:
            yield json.loads(line)["base_url"]
        finally:
            cast("IO[bytes]", process.stdin).close()
            process.wait()
