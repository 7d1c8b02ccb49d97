"""Which slash commands exist, and which lines are commands.

May not know: any concrete command. Invariant: only a line that names a registered command is one; everything else is
a sentence for the model, verbatim (`/etc/hosts is wrong`). Source: contract acp.md §5.
"""

import re
from typing import Final, TypedDict

from agent_loop.commands.seam import Command
from agent_loop.errors import DuplicateError, HarnessError
from agent_loop.hooks import Hooks, Remover

_LINE: Final = re.compile(r"/([a-z][a-z0-9_-]*)(?:\s|$)")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class AdvertisedCommand(TypedDict):
    """What an editor lists: `name` without slash, `hint` None when the command takes no argument."""

    name: str
    description: str
    hint: str | None


class CommandRegistry:
    """Explicit registration, in the order in which people read them. Emits `commands/change` after every change."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._commands: dict[str, Command] = {}

    def register(self, command: Command) -> Remover:
        """Offer `command`. Raises `DuplicateError`, and `HarnessError` for a name that no line could call."""
        if not _NAME.fullmatch(command.name):
            raise HarnessError(
                f"a command cannot be named {command.name!r}: lower-case letters, digits, - and _ only, a letter first",
                "INVALID_COMMAND_NAME",
            )
        if command.name in self._commands:
            raise DuplicateError("command", command.name)
        self._commands[command.name] = command
        self._hooks.emit("commands/change")

        def remove() -> None:
            # the name may have been registered anew since; only our own entry is ours to remove
            if self._commands.get(command.name) is command:
                del self._commands[command.name]
                self._hooks.emit("commands/change")

        return remove

    def get(self, name: str) -> Command | None:
        """The command of that name."""
        return self._commands.get(name)

    def parse_line(self, text: str) -> tuple[str, str] | None:
        """`(name, argument)` when `text` calls a registered command; the argument may span lines and is stripped."""
        found = _LINE.match(text)
        if found is None or found[1] not in self._commands:
            return None
        return found[1], text[found.end() :].strip()

    def advertised(self) -> list[AdvertisedCommand]:
        """All commands, in order of registration."""
        return [
            {"name": command.name, "description": command.description, "hint": command.hint}
            for command in self._commands.values()
        ]
