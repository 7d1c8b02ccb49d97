"""The world of one rule: directories of its own, a scripted model, the agents that its check starts.

May not know: which rule it serves. Invariant: whatever happens, on leaving every process of the check is dead, the
model has stopped and the directories are gone.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.model import LabModel
from acp_bridge.testing.conformance.policy import Policy
from acp_bridge.testing.conformance.processes import inhabitants
from acp_bridge.testing.conformance.verdicts import Broken
from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject

# what a program needs to start at all, and what measures it; nothing that tells one machine from another
_PASSED = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_PASSED_PREFIX = "COVERAGE_"
_SAVING_SECONDS = 2.0
_KEY = "key-of-the-scripted-model"
_PROTOCOL = 1
_LINES_SHOWN = 12
_LINE_SHOWN = 300  # characters


@dataclass(frozen=True, slots=True)
class Wire:
    """What one process and its client said: the frames in their order, and the lines that were no frames."""

    entries: tuple[Entry, ...]
    noise: tuple[bytes, ...]


class Lab:
    """`root` holds `cwd`, `home` and `tmp` of every agent; `warn` notes what is wrong but breaks no MUST."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, seconds: float = 10.0) -> None:
        self.command = located(command)
        # resolved: a program asked for its directory answers with the real path
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="acp-lab-")))
        self.cwd = self.root / "cwd"
        self.home = self.root / "home"
        self.seconds = seconds
        self.warnings: list[str] = []
        self.model = LabModel(is_idle=self._is_idle, seconds=seconds)
        self._env = dict(env or {})
        self._agents: list[LabAgent] = []

    @property
    def wires(self) -> list[Wire]:
        """The wires of all agents so far."""
        return [Wire(tuple(agent.entries), tuple(agent.noise)) for agent in self._agents]

    def directory(self, name: str) -> Path:
        """A further directory beside `cwd`."""
        path = self.root / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def warn(self, text: str) -> None:
        """Note a shortcoming: the rule is reported as a warning unless it turns out broken."""
        self.warnings.append(text)

    @contextlib.contextmanager
    def agent(
        self,
        *,
        capabilities: JsonObject | None = None,
        initialize: bool = True,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        answers: Policy = "allow",
        arguments: Sequence[str] = (),
        command: Sequence[str] | None = None,
    ) -> Generator[LabAgent]:
        """A process of the agent; killed with everything it started when the block ends.

        `cwd` is the process's own directory and that of its sessions. A value of `env` that is `""` takes the name
        away. `arguments` follow the command; `command` replaces it.
        """
        place = cwd or self.cwd
        wanted = {name: value for name, value in (self.environment() | dict(env or {})).items() if value}
        agent = LabAgent(
            [*(command or self.command), *arguments],
            cwd=place,
            env=wanted,
            stderr=self.root / f"stderr-{len(self._agents) + 1}",
            policy=answers,
            seconds=self.seconds,
            root=self.root,
            others=lambda: {other.pid for other in self._agents if other is not agent and other.is_running},
        )
        self._agents.append(agent)
        try:
            agent.start()
            if initialize:
                agent.initialized = agent.call("initialize", initialize_params(capabilities))
                if not isinstance(agent.initialized.get("protocolVersion"), int):
                    raise Broken(f"initialize was answered without a protocolVersion: {agent.initialized}")
            yield agent
        finally:
            # one that is measured saves its figures when it ends by itself
            is_measured = any(name.startswith(_PASSED_PREFIX) for name in wanted)
            agent.leave(_SAVING_SECONDS if is_measured else 0.0)
            agent.kill()

    def environment(self) -> dict[str, str]:
        """What an agent is started with."""
        env = {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIX)}
        env |= {
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "OPENAI_BASE_URL": f"{self.model.url}/v1",
            "OPENAI_API_KEY": _KEY,
            "DEEPSEEK_BASE_URL": self.model.url,
            "DEEPSEEK_API_KEY": _KEY,
        }
        return env | {name: value.replace("{model_url}", self.model.url) for name, value in self._env.items()}

    def stderr(self) -> str:
        """The last lines that the last agent wrote there."""
        lines = self._agents[-1].stderr.splitlines() if self._agents else []
        return "\n".join(line[:_LINE_SHOWN] for line in lines[-_LINES_SHOWN:])

    def abort(self) -> None:
        """End every agent now: the waits of the check end, too. For another thread."""
        for agent in tuple(self._agents):
            agent.end_now()

    def close_processes(self) -> None:
        """End whoever lives in the lab's directories."""
        for pid in inhabitants(self.root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _is_idle(self) -> bool:
        return all(agent.is_idle() for agent in tuple(self._agents))


def located(command: Sequence[str]) -> tuple[str, ...]:
    """`command` as it can be started in any directory: words that name files from here become absolute.

    A program without a slash is looked up in PATH, whatever lies here.
    """
    words = [os.path.abspath(word) if os.path.isfile(word) else word for word in command]
    return (words[0] if "/" in command[0] else command[0], *words[1:])


def initialize_params(capabilities: JsonObject | None = None) -> JsonObject:
    """Those of a client that advertises `capabilities`, nothing by default."""
    client = {"name": "acp-conformance", "version": "1"}
    return {"protocolVersion": _PROTOCOL, "clientCapabilities": capabilities or {}, "clientInfo": client}


@contextlib.contextmanager
def laboratory(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, seconds: float = 10.0, limit: float = 90.0
) -> Generator[Lab]:
    """A `Lab`, open while the block runs. `seconds` bounds each wait, `limit` the whole block."""
    lab = Lab(command, env=env, seconds=seconds)
    watchdog = threading.Timer(limit, lab.abort)
    try:
        for name in ("cwd", "home", "tmp"):
            lab.directory(name)
        lab.model.start()
        watchdog.start()
        yield lab
    finally:
        watchdog.cancel()
        try:
            lab.close_processes()
            lab.model.stop()
        finally:
            shutil.rmtree(lab.root, ignore_errors=True)
