"""`sessions list`."""

import json
import re

import pytest

from tests.support.session_commands import NOW, CommandWorld
from tests.support.session_turns import text_turn

TITLE = ("session/title", {"title": "Count the lines\x1b[31m", "by": "prompt"})


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    world = CommandWorld(tmp_path / "sessions", {"HOME": "/home/me"})
    world.write("aaaaaaaa-1", [TITLE, *text_turn(1)], cwd="/home/me/app", time=NOW - 3 * 3600_000 - 100)
    world.write("aaaaaaaa-2", text_turn(1), cwd=None, time=NOW - 86400_000 - 100)
    world.write("bbbbbbbb-3", text_turn(1), cwd="/srv/app", time=NOW - 2 * 86400_000 - 100)
    return world


def test_sessions_are_a_table_last_used_first(world):
    ran = world.run("list")
    assert (ran.code, ran.err) == (0, "")
    head, *rows = ran.out.splitlines()
    assert head.split() == ["ID", "TITLE", "DIRECTORY", "UPDATED", "EVENTS", "SIZE"]
    assert [re.split(r"  +", row)[:3] for row in rows] == [
        ["aaaaaaaa-1", "Count the lines␛[31m", "~/app"],
        ["aaaaaaaa-2", "–", "–"],
        ["bbbbbbbb", "–", "/srv/app"],
    ]
    assert [re.search(r"\((.*)\)", row)[1] for row in rows] == ["3 h ago", "1 d ago", "2 d ago"]
    assert len({len(row) for row in (head, *rows)}) == 1


def test_only_those_of_a_directory_and_at_most_so_many(world):
    assert world.run("list", "--cwd", "/srv/app").out.count("\n") == 2
    assert world.run("list", "--limit", "2").out.count("\n") == 3


def test_programs_get_exact_values(world):
    (row,) = json.loads(world.run("list", "--json", "--limit", "1").out)
    assert row == {
        "id": "aaaaaaaa-1",
        "title": "Count the lines\x1b[31m",
        "cwd": "/home/me/app",
        "createdAt": "2023-11-14T19:13:19.900Z",
        "updatedAt": "2023-11-14T19:13:19.907Z",
        "events": 8,
        "size": row["size"],
    }
    assert world.run("list", "--json", "--cwd", "/nowhere").out == "[]\n"


def test_where_there_is_nothing_a_sentence_says_so(world, tmp_path):
    assert world.run("list", "--cwd", "/home/me/none").out == "no sessions are stored for ~/none\n"
    assert CommandWorld(tmp_path / "none").run("list").out == "no sessions are stored\n"


def plain(text):
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_a_terminal_gets_colours_and_no_line_is_longer_than_it_is_wide(world, monkeypatch):
    world.write(
        "cccccccc-4", [("session/title", {"title": "漢字 " * 30, "by": "prompt"}), *text_turn(1)], cwd="/x" * 40
    )
    wide = world.run("list", tty=True).out
    assert "\x1b[36maaaaaaaa-1" in wide
    assert "…x/x/x" in plain(wide)
    for columns in (120, 100, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = plain(world.run("list", tty=True).out).splitlines()
        assert len(lines) == 5
        # a wide character takes two columns
        assert all(len(line) + sum(char in "漢字" for char in line) <= columns for line in lines)
        assert all(re.search(r"(SIZE|[BM])$", line) for line in lines)
    assert "(" not in plain(world.run("list", tty=True).out)


def test_a_wide_terminal_shows_everything(world, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "…" not in world.run("list", tty=True).out
    assert "(3 h ago)" in world.run("list", tty=True).out


def test_colours_can_be_forced_into_a_pipe(world, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    world.environment["FORCE_COLOR"] = "1"
    assert "\x1b[36m" in world.run("list").out


def test_a_root_that_cannot_be_read_never_reads_as_no_sessions(tmp_path):
    (tmp_path / "file").write_text("")
    ran = CommandWorld(tmp_path / "file").run("list")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith("dsh-acp-agent sessions: the sessions cannot be listed")
    assert ran.err.count("\n") == 1
