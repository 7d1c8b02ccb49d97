"""`/model`, `/mode`, `/thinking`: what the session has of an option, and another value of it.

May not know: what an option does, how it is shown beside. Invariant: without an argument nothing changes; only what is
offered can be chosen, and what is not names the nearest that is.
"""

from abc import abstractmethod
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

from agent_loop.commands.seam import Command, CommandContext, CommandResult


@dataclass(frozen=True, slots=True)
class Choosable:
    """An option: its present value, and what it can be set to as (value, name, description or "")."""

    current: str
    values: tuple[tuple[str, str, str], ...]


class Chooser(Protocol):
    """Who knows the options of the sessions."""

    @abstractmethod
    def choosable(self, session_id: str, config_id: str) -> Choosable | None:
        """The option of a session; None when it has no such option."""

    @abstractmethod
    def choose_for(self, session_id: str, config_id: str, value: str) -> None:
        """Set it to one of its values."""


class ChoiceCommand(Command):
    """One option of a session. `effect` says in a sentence when a change counts."""

    def __init__(self, chooser: Chooser, *, name: str, config_id: str, what: str, effect: str) -> None:
        self.name = name
        self.description = f"Show the {what} of this session, or choose another"
        self.hint = what
        self._chooser = chooser
        self._config_id = config_id
        self._what = what
        self._effect = effect

    async def run(self, context: CommandContext, argument: str) -> CommandResult:
        """The values as a list; or the value that it now has."""
        option = self._chooser.choosable(context.facts.session_id, self._config_id)
        if option is None:
            return CommandResult(ok=False, text=f"The model of this session has no {self._what} to choose.")
        if not argument:
            return CommandResult(ok=True, text=self._listed(option))
        value = _meant(option, argument)
        if value is None:
            return CommandResult(
                ok=False, text=f"There is no {self._what} `{_plain(argument)}`. {_near(option, argument)}"
            )
        self._chooser.choose_for(context.facts.session_id, self._config_id, value)
        return CommandResult(ok=True, text=f"{self._what.capitalize()}: `{value}`. {self._effect}")

    def _listed(self, option: Choosable) -> str:
        rows = "\n".join(_row(option, *row) for row in option.values)
        return f"**{self._what.capitalize()}**\n\n{rows}\n\nChoose with `/{self.name}` and one of them."


def choice_commands(chooser: Chooser) -> tuple[ChoiceCommand, ...]:
    """The commands of every option."""
    later = "It takes effect with the next prompt."
    return (
        ChoiceCommand(chooser, name="model", config_id="model", what="model", effect=later),
        ChoiceCommand(chooser, name="mode", config_id="mode", what="mode", effect="It holds from now on."),
        ChoiceCommand(chooser, name="thinking", config_id="reasoning_effort", what="thinking level", effect=later),
    )


def _row(option: Choosable, value: str, name: str, description: str) -> str:
    # a name that only repeats the value says nothing
    known_as = "" if name.lower() in (value.lower(), _short(value)) else f" {name}"
    explained = f" — {description}" if description else ""
    return f"- `{value}`{known_as}{explained}{' **(now)**' if value == option.current else ''}"


def _short(value: str) -> str:
    return value.partition("/")[2].lower() or value.lower()


def _names(option: Choosable) -> dict[str, str]:
    """What a person may write, and the value that is meant; of two with one short name, the first."""
    names: dict[str, str] = {}
    for value, name, _description in option.values:
        for written in (_short(value), name.lower()):
            names.setdefault(written, value)
    return names | {value.lower(): value for value, *_rest in option.values}


def _meant(option: Choosable, argument: str) -> str | None:
    """The value with that name, else the only one whose name has it as a part."""
    names, wanted = _names(option), argument.lower()
    if wanted in names:
        return names[wanted]
    partly = {value for name, value in names.items() if wanted in name}
    return partly.pop() if len(partly) == 1 else None


def _near(option: Choosable, argument: str) -> str:
    names = _names(option)
    found = get_close_matches(argument.lower(), list(names), n=1)
    if found:
        return f"Did you mean `{names[found[0]]}`?"
    return f"There are {', '.join(f'`{value}`' for value, *_rest in option.values)}."


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:60]
