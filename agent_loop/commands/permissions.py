"""`/permissions`: what was allowed and forbidden once and for all.

May not know: what a rule is, where rules are kept. Invariant: a number means the rule that the list shows under it;
what stands in the user's configuration is listed and not touched.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agent_loop.commands.seam import Command, CommandContext, CommandResult

_WHERE: Final = {"session": "this session", "project": "this project", "config": "your configuration"}


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule as a person reads it: `what` it covers in words (Markdown)."""

    effect: Literal["allow", "deny"]
    what: str
    scope: Literal["session", "project", "config"]
    revocable: bool


class PermissionRules(ABC):
    """The rules that hold for a session; implemented by the editor's side."""

    @abstractmethod
    def listed(self, session_id: str, cwd: str) -> tuple[ShownRule, ...]:
        """All of them, in a stable order."""

    @abstractmethod
    def revoke(self, session_id: str, cwd: str, numbers: Iterable[int]) -> str | None:
        """Revoke the rules at these places of the list, from 0; why it failed, None when it did not."""


class PermissionsCommand(Command):
    """Lists the rules of the session, its project and the configuration; revokes one or all."""

    name = "permissions"
    description = "Show what is always allowed or never, or revoke it"
    hint = "revoke <number> | revoke all"

    def __init__(self, rules: PermissionRules) -> None:
        self._rules = rules

    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """The list, or what was revoked."""
        match argument.split():
            case []:
                return CommandResult(ok=True, text=self._list(context))
            case ["revoke", "all"]:
                shown = self._shown(context)
                return self._revoke(context, [number for number, rule in enumerate(shown) if rule.revocable])
            case ["revoke", number] if number.isascii() and number.isdigit():
                return self._revoke_one(context, int(number) - 1)
            case _:
                usage = "Use `/permissions`, `/permissions revoke <number>` or `/permissions revoke all`."
                return CommandResult(ok=False, text=usage)

    def _shown(self, context: CommandContext) -> tuple[ShownRule, ...]:
        return self._rules.listed(context.facts.session_id, context.facts.cwd)

    def _list(self, context: CommandContext) -> str:
        mode = f"Mode: {context.facts.mode}."
        rows = [f"{number}. {_row(rule)}" for number, rule in enumerate(self._shown(context), 1)]
        if not rows:
            return f"{mode} Nothing is always allowed, and nothing forbidden, besides."
        return "\n".join([f"{mode} Besides:", "", *rows, "", "`/permissions revoke <number>` takes one back."])

    def _revoke_one(self, context: CommandContext, number: int) -> CommandResult:
        shown = self._shown(context)
        if not 0 <= number < len(shown):
            return CommandResult(ok=False, text=f"There is no number {number + 1}; `/permissions` lists what there is.")
        if not shown[number].revocable:
            return CommandResult(ok=False, text=f"It stands in your configuration: {_row(shown[number])}")
        return self._revoke(context, [number])

    def _revoke(self, context: CommandContext, numbers: list[int]) -> CommandResult:
        shown = self._shown(context)
        if problem := self._rules.revoke(context.facts.session_id, context.facts.cwd, numbers):
            return CommandResult(ok=False, text=f"The project's permissions could not be changed: {problem}")
        rows = "\n".join(f"- {_row(shown[number])}" for number in numbers)
        return CommandResult(ok=True, text=f"Revoked:\n\n{rows}" if rows else "There was nothing to revoke.")


def _row(rule: ShownRule) -> str:
    return f"{'Always allow' if rule.effect == 'allow' else 'Never allow'} {rule.what} ({_WHERE[rule.scope]})"
