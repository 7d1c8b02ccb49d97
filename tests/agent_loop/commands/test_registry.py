"""Which lines are commands (contract acp.md §5)."""

import pytest

from agent_loop.commands.registry import CommandRegistry
from agent_loop.commands.seam import Command, CommandResult
from agent_loop.errors import DuplicateError, HarnessError
from agent_loop.hooks import Hooks


class SayCommand(Command):
    description = "Say it"

    def __init__(self, name="say", hint=None):
        self.name = name
        self.hint = hint

    async def run(self, context, argument):
        return CommandResult(ok=True, text=argument)


def make_registry(*commands):
    hooks = Hooks(lambda name, error: None)
    changes = []
    hooks.on("commands/change", lambda: changes.append(True))
    registry = CommandRegistry(hooks)
    for command in commands:
        registry.register(command)
    return registry, changes


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("/say", ""),
        ("/say ", ""),
        ("/say\n", ""),
        ("/say hello there ", "hello there"),
        ("/say\tone\ntwo\n", "one\ntwo"),
    ],
)
def test_a_line_that_names_a_command_is_split_into_name_and_argument(text, argument):
    registry, _ = make_registry(SayCommand())
    assert registry.parse_line(text) == ("say", argument)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "say",
        " /say",
        "/says",
        "/Say",
        "/say/it",
        "/say!",
        "/etc/hosts is wrong",
        "//say",
        "/1say",
        "tell /say",
    ],
)
def test_every_other_line_is_a_sentence(text):
    registry, _ = make_registry(SayCommand())
    assert registry.parse_line(text) is None


def test_commands_are_advertised_in_order_of_registration():
    registry, _ = make_registry(SayCommand(), SayCommand("ask", "question"))
    assert registry.advertised() == [
        {"name": "say", "description": "Say it", "hint": None},
        {"name": "ask", "description": "Say it", "hint": "question"},
    ]


def test_a_command_is_found_by_name():
    command = SayCommand()
    registry, _ = make_registry(command)
    assert registry.get("say") is command
    assert registry.get("nope") is None


def test_a_name_registered_twice_is_refused():
    registry, changes = make_registry(SayCommand())
    with pytest.raises(DuplicateError):
        registry.register(SayCommand())
    assert len(changes) == 1


@pytest.mark.parametrize("name", ["", "/say", "Say", "two words", "9lives", "a\n"])
def test_a_name_that_no_line_could_call_is_refused(name):
    registry, _ = make_registry()
    with pytest.raises(HarnessError, match="cannot be named"):
        registry.register(SayCommand(name))


def test_every_change_is_announced_and_a_remover_works_once():
    registry, changes = make_registry()
    remove = registry.register(SayCommand())
    remove()
    remove()
    assert registry.advertised() == []
    assert len(changes) == 2


def test_an_old_remover_leaves_a_new_registration_alone():
    registry, _ = make_registry()
    remove = registry.register(SayCommand())
    remove()
    again = SayCommand()
    registry.register(again)
    remove()
    assert registry.get("say") is again


def test_a_command_runs_at_once_unless_it_says_otherwise():
    assert SayCommand().needs_idle is False
