"""The command line of `sessions`."""

import pytest

from acp_bridge.cli.arguments import (
    DeleteSessions,
    ExportSession,
    ImportSession,
    ListSessions,
    RepairSession,
    ShowSession,
    parse_arguments,
)
from acp_bridge.command_line import parse_flags


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("list", ListSessions(None, None, json=False)),
        ("list --cwd . --limit 3 --json", ListSessions(".", 3, json=True)),
        ("show a", ShowSession("a", thoughts=True, full=False)),
        ("show a --no-thoughts --full", ShowSession("a", thoughts=False, full=True)),
        ("export a", ExportSession("a", "md", None, force=False)),
        ("export a --format jsonl -o -", ExportSession("a", "jsonl", None, force=False)),
        ("export a -o x.html --force", ExportSession("a", "html", "x.html", force=True)),
        ("export a -o x.txt", ExportSession("a", "md", "x.txt", force=False)),
        ("export a -o x.html --format md", ExportSession("a", "md", "x.html", force=False)),
        ("import f", ImportSession("f", None)),
        ("import f --cwd . --map /a=/b --map /c=/d", ImportSession("f", ".", ("/a=/b", "/c=/d"))),
        ("repair a", RepairSession("a")),
        ("delete a b --yes", DeleteSessions(("a", "b"), yes=True)),
    ],
)
def test_a_line_is_read(line, command):
    assert parse_arguments(line.split()).command == command


@pytest.mark.parametrize("line", ["--config f list", "list --config f"])
def test_the_configuration_file_may_be_named_before_and_behind_the_command(line):
    assert parse_arguments(line.split()).config == "f"
    assert parse_arguments(["list"]).config is None


@pytest.mark.parametrize(
    "line", ["", "look", "show", "show a b", "list --limit 0", "list --limit x", "export a --format pdf", "delete"]
)
def test_a_line_that_cannot_be_meant_ends_with_code_2_and_says_why(line, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(line.split())
    assert ended.value.code == 2
    assert "dsh-acp-agent sessions" in capsys.readouterr().err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("list", "show", "export", "import", "repair", "delete"))


def test_the_help_of_the_agent_names_the_sessions_command(capsys):
    with pytest.raises(SystemExit):
        parse_flags(["--help"])
    assert "\n  sessions " in capsys.readouterr().out
