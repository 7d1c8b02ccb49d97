"""The project's own instructions to agents, `AGENTS.md`, as a part of the system prompt.

May not know: models, editors. Invariant: read anew for each turn and then the same for all its steps, so that an edit
counts from the next prompt on and a step is never asked something else than the one before; the prompt names no path of
this machine; nothing is read from outside the project, whatever a link says; what cannot be used is said once.
"""

import os
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_loop.agent import Agent
from agent_loop.hooks import Hooks, Scope
from agent_loop.prompt import PromptSection, Sections

FILE_NAME: Final = "AGENTS.md"
LIMIT: Final = 32 * 1024
"""Bytes of all files together; the nearest file has what it needs first."""
ORDER: Final = 500
Next = Callable[[Sections], Awaitable[Sections]]
_INTRODUCTION: Final = (
    "This project has instructions for agents. Follow them, except where the user says otherwise; "
    "where two of them differ, the later one counts."
)


@dataclass(frozen=True, slots=True)
class Instructions:
    """`text` for the system prompt, None when there is nothing; `problems` by file, in words."""

    text: str | None
    problems: dict[str, str]


def read_instructions(cwd: str, *, limit: int = LIMIT) -> Instructions:
    """`AGENTS.md` of `cwd` and of the directories above it, up to the root of its git repository; the nearest last."""
    here = Path(os.path.realpath(cwd))
    root = _project_root(here)
    problems: dict[str, str] = {}
    found: list[str] = []
    left = limit
    for directory in _upwards(here, root):
        name = os.path.join(os.path.relpath(directory, here), FILE_NAME).removeprefix("./")
        data = _contents(directory / FILE_NAME, root, left, name, problems)
        text = data.decode(errors="ignore").strip()
        left -= len(data)
        if text:
            found.append(f"--- {name} ---\n{text}")
    if not found:
        return Instructions(None, problems)
    return Instructions("\n\n".join([_INTRODUCTION, *reversed(found)]), problems)


def _project_root(cwd: Path) -> Path:
    """The root of the git repository that `cwd` is in; outside of one, `cwd` itself."""
    return next((directory for directory in (cwd, *cwd.parents) if (directory / ".git").exists()), cwd)


def _upwards(cwd: Path, root: Path) -> list[Path]:
    directories = [cwd, *cwd.parents]
    return directories[: directories.index(root) + 1]


def _contents(path: Path, root: Path, left: int, name: str, problems: dict[str, str]) -> bytes:
    """What is used of a file; nothing of one that is not there, or that cannot be used."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        if not real.is_relative_to(root):
            problems[name] = "it is a link to a file outside the project"
            return b""
        # whatever lies there must not be waited for
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            data = os.read(descriptor, left) if stat.S_ISREG(found.st_mode) else None
        finally:
            os.close(descriptor)
    except FileNotFoundError:
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
        self._told: dict[str, str] = {}
        self._text: str | None = None

    def turn_started(self, _agent: Agent, _turn: int) -> None:
        instructions = read_instructions(self._agent.cwd)
        self._text = instructions.text
        for name, problem in instructions.problems.items():
            if self._told.get(name) != problem:
                notice = {"severity": "warning", "title": f"{name} is not used as it is", "description": f"{problem}."}
                self._agent.session.append("session/notice", notice)
        self._told = instructions.problems

    async def assemble(self, sections: Sections, following: Next) -> Sections:
        own = () if self._text is None else (PromptSection("instructions", ORDER, self._text),)
        return await following((*sections, *own))
