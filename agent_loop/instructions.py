"""The project's own instructions to agents, `AGENTS.md`, as a part of the system prompt.

May not know: models, editors. Invariant: read anew for each turn and then the same for all its steps, so that an edit
counts from the next prompt on and a step is never asked something else than the one before; the prompt names no path of
this machine; nothing is read from outside the project, whatever a link says; what cannot be used is said once.
"""

import errno
import os
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from agent_loop.agent import Agent
from agent_loop.hooks import Hooks, Scope
from agent_loop.prompt import PromptSection, Sections

FILE_NAME: Final = "AGENTS.md"
LIMIT: Final = 32 * 1024
"""Bytes of all files together; the nearest file has what it needs first."""
ORDER: Final = 500
# whatever lies there must not be waited for
_HOW: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
Next = Callable[[Sections], Awaitable[Sections]]
_INTRODUCTION: Final = (
    "This project has instructions for agents. Follow them, except where the user says otherwise; "
    "where two of them differ, the later one counts."
)


class _OutsideError(Exception):
    """A link leads out of the project."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """`text` for the system prompt, None when there is nothing; `problems` by file, in words."""

    text: str | None
    problems: dict[str, str]


class Place:
    """Where the instructions for work in `cwd` may lie.

    The way up is kept until `cwd` is another directory: to resolve a path looks at every part of it.
    """

    __slots__ = ("_cwd", "_identity", "_marks", "_upwards")

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._identity: tuple[int, int] | None = None
        self._upwards: list[str] = []
        self._marks: list[str] = []

    def project(self) -> list[str]:
        """The real `cwd` and what is above it up to the root of its git repository; outside of one, itself alone."""
        identity = _identity(self._cwd)
        if identity is None or identity != self._identity or _identity(self._upwards[0]) != identity:
            self._identity = identity
            self._upwards = _upwards(os.path.realpath(self._cwd))
            self._marks = [f"{directory}/.git" for directory in self._upwards]
        for length, mark in enumerate(self._marks, 1):
            if os.access(mark, os.F_OK):
                return self._upwards[:length]
        return self._upwards[:1]


def read_instructions(place: Place, *, limit: int = LIMIT) -> Instructions:
    """`AGENTS.md` of the directories of the project, the nearest last."""
    directories = place.project()
    problems: dict[str, str] = {}
    found: list[str] = []
    left = limit
    name = FILE_NAME
    for directory in directories:
        data = _contents(f"{directory}/{FILE_NAME}", directories[-1], left, name, problems)
        text = data.decode(errors="ignore").strip()
        left -= len(data)
        if text:
            found.append(f"--- {name} ---\n{text}")
        name = f"../{name}"
    if not found:
        return Instructions(None, problems)
    return Instructions("\n\n".join([_INTRODUCTION, *reversed(found)]), problems)


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        found = os.stat(directory)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _upwards(here: str) -> list[str]:
    directories = [here]
    while (above := os.path.dirname(directories[-1])) != directories[-1]:
        directories.append(above)
    return directories


def _contents(path: str, root: str, left: int, name: str, problems: dict[str, str]) -> bytes:
    """What is used of a file; nothing of one that is not there, or that cannot be used."""
    # mostly there is none, and an exception that says so takes five times as long
    if not os.access(path, os.F_OK, follow_symlinks=False):
        return b""
    try:
        descriptor = _open(path, root)
        try:
            found = os.fstat(descriptor)
            data = os.read(descriptor, left) if stat.S_ISREG(found.st_mode) else None
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return b""
    except _OutsideError:
        problems[name] = "it is a link to a file outside the project"
        return b""
    except OSError as error:
        problems[name] = f"it cannot be read: {error.strerror}"
        return b""
    if data is None or b"\0" in data:
        problems[name] = "it is no text file"
        return b""
    if found.st_size > len(data):
        problems[name] = f"only {len(data)} of its {found.st_size} bytes are used: {LIMIT // 1024} KiB are read in all"
    return data


def _open(path: str, root: str) -> int:
    """A descriptor of the file. `path` is that of a real directory. Raises `_OutsideError`, `OSError`."""
    try:
        # what is no link lies in its directory
        return os.open(path, _HOW | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    real = os.path.realpath(path, strict=True)
    if os.path.commonpath((real, root)) != root:
        raise _OutsideError
    return os.open(real, _HOW)


def install_instructions(hooks: Hooks) -> None:
    """For every agent: read at the start of a turn, a section of each of its system prompts."""
    scopes: dict[str, Scope] = {}

    def created(agent: Agent) -> None:
        scope = scopes[agent.id] = Scope()
        known = _ForAgent(agent)
        hooks.on("agent/turn-start", known.turn_started, agent=agent.id, scope=scope)
        hooks.wrap("system-prompt/assemble", known.assemble, agent=agent.id, scope=scope)

    def disposed(agent: Agent) -> None:
        scopes.pop(agent.id).dispose()

    hooks.on("agent/created", created)
    hooks.on("agent/disposed", disposed)


class _ForAgent:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._place = Place(agent.cwd)
        self._told: dict[str, str] = {}
        self._own: Sections = ()

    def turn_started(self, _agent: Agent, _turn: int) -> None:
        instructions = read_instructions(self._place)
        text = instructions.text
        self._own = () if text is None else (PromptSection("instructions", ORDER, text),)
        for name, problem in instructions.problems.items():
            if self._told.get(name) != problem:
                notice = {"severity": "warning", "title": f"{name} is not used as it is", "description": f"{problem}."}
                self._agent.session.append("session/notice", notice)
        self._told = instructions.problems

    async def assemble(self, sections: Sections, following: Next) -> Sections:
        return await following((*sections, *self._own))
