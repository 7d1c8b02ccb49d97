"""Where the agent says at once that it cannot run, and what it knows of its own start."""

import sys

import pytest

from acp_bridge.command_line import COMMANDS, own_command, parse_flags, refuse_platform, sign_in_place, told_environment


def test_windows_is_refused_with_the_way_out():
    with pytest.raises(SystemExit, match="WSL"):
        refuse_platform("win32")


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_other_systems_are_not(platform):
    refuse_platform(platform)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ([], None),
        (["login"], 1),
        (["logout", "--all"], 1),
        (["--model", "local/big", "login", "--status"], 3),
        (["--model=login", "logout"], 2),
        (["--model", "login"], None),
        (["--model", "login", "login"], 3),
    ],
)
def test_login_may_stand_behind_the_flags_of_the_agent(words, place):
    assert sign_in_place(["login", *words]) == place


def test_the_agent_knows_how_it_is_started_again(tmp_path):
    program = tmp_path / "agent"
    program.touch(0o755)
    assert own_command([str(program), "--model", "m"]) == (str(program), "--model", "m")
    program.chmod(0o644)
    assert own_command([str(program)]) == (sys.executable, str(program))


def test_what_a_login_in_a_terminal_is_told_holds_no_secret():
    told = {"DSH_CONFIG": "/c", "DEEPSEEK_BASE_URL": "https://me:pw@host", "DSH_MODEL": "", "DEEPSEEK_API_KEY": "k"}
    assert told_environment(told) == {"DSH_CONFIG": "/c"}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("sesions", "there is no command 'sesions'; did you mean 'sessions'?"),
        ("xyzzy", "there is no command 'xyzzy'\n"),
    ],
)
def test_a_command_that_there_is_not_names_the_nearest(word, says, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_flags([word])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_the_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        parse_flags(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMMANDS)
