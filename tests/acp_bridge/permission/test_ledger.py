"""The rules saved for a project: on the disk, outside of the project, read anew when they change."""

import json
import os
import stat
import threading

import pytest

from acp_bridge.permission.ledger import Ledger, Saved
from acp_bridge.permission.rules import PrefixRule, Rule, ToolRule

GIT, LS = Rule("allow", PrefixRule(("git",)), "project"), Rule("deny", PrefixRule(("ls",)), "project")


def test_saved_rules_are_there_for_the_next_reader_and_for_this_project_alone(tmp_path):
    ledger = Ledger(tmp_path / "state" / "permissions")
    assert ledger.saved("/p") == Saved()
    ledger.add("/p", (GIT,))
    ledger.add("/p", (GIT, LS))
    assert ledger.saved("/p") == Ledger(tmp_path / "state" / "permissions").saved("/p") == Saved((GIT, LS))
    assert ledger.saved("/q") == Saved()
    ledger.remove("/p", (GIT,))
    assert ledger.saved("/p") == Saved((LS,))


def test_nobody_else_can_read_them(tmp_path):
    ledger = Ledger(tmp_path / "permissions")
    ledger.add("/p", (GIT,))
    assert stat.S_IMODE(os.stat(tmp_path / "permissions").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(ledger.path("/p")).st_mode) == 0o600
    assert os.listdir(tmp_path / "permissions") == [ledger.path("/p").name]


def test_what_another_process_saves_holds_at_once(tmp_path):
    one, two = Ledger(tmp_path), Ledger(tmp_path)
    one.add("/p", (GIT,))
    assert two.saved("/p").rules == (GIT,)
    one.remove("/p", (GIT,))
    assert two.saved("/p").rules == ()


def test_two_writers_at_once_lose_nothing(tmp_path):
    def write(name):
        # as another process would: with a ledger, and a lock, of its own
        ledger = Ledger(tmp_path)
        for number in range(20):
            ledger.add("/p", (Rule("allow", ToolRule(f"{name}{number}"), "project"),))

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    tools = {rule.target.tool for rule in Ledger(tmp_path).saved("/p").rules}
    assert tools == {f"{name}{number}" for name in "ab" for number in range(20)}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "Expecting"),
        ("\xff", "decode"),
        ("[]", "not a list of this project's rules"),
        ('{"version": 2, "project": "/p", "rules": []}', "not a list"),
        ('{"version": 1, "project": "/other", "rules": []}', "not a list"),
        ('{"version": 1, "project": "/p", "rules": {}}', "not a list"),
        ('{"version": 1, "project": "/p", "rules": [{"effect": "allow", "kind": "future"}]}', "does not know"),
        ('{"version": 1, "project": "/p", "rules": [{"effect": "?", "kind": "tool", "tool": "x"}]}', "does not know"),
        ('{"version": 1, "project": "/p", "rules": ["x"]}', "does not know"),
    ],
)  # fmt: skip
def test_a_damaged_file_gives_no_rule_and_is_put_aside_by_the_next_save(tmp_path, content, problem):
    ledger = Ledger(tmp_path)
    path = ledger.path("/p")
    path.write_bytes(content.encode("latin-1"))
    saved = ledger.saved("/p")
    assert saved.rules == ()
    assert problem in str(saved.problem)
    ledger.add("/p", (GIT,))
    assert ledger.saved("/p") == Saved((GIT,))
    assert path.with_suffix(".damaged").read_bytes() == content.encode("latin-1")


def test_a_file_that_cannot_be_read_is_a_problem_not_an_empty_list(tmp_path):
    (tmp_path / "file").write_text("")
    saved = Ledger(tmp_path / "file").saved("/p")
    assert saved.rules == ()
    assert "Not a directory" in str(saved.problem)


def test_a_save_that_fails_leaves_what_was_there_and_no_rubbish(tmp_path):
    ledger = Ledger(tmp_path)
    # what shall be replaced is a directory: the rename fails after everything was written
    ledger.path("/p").mkdir()
    (ledger.path("/p") / "inside").write_text("")
    with pytest.raises(OSError, match=r"json"):
        ledger._write("/p", (GIT,))
    assert os.listdir(tmp_path) == [ledger.path("/p").name]


def test_the_file_is_readable_for_people(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.add("/p", (Rule("allow", ToolRule("x"), "project"),))
    assert json.loads(ledger.path("/p").read_text()) == {
        "version": 1,
        "project": "/p",
        "rules": [{"effect": "allow", "kind": "tool", "tool": "x"}],
    }
