"""`sessions show`, `export`, `import`, `repair`, `delete`: from the command line to what is there afterwards."""

import json
import os
import stat

import pytest

from acp_bridge.cli.progress import LONG
from agent_loop.session.events import SessionHeader
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.store import SessionLockedError
from tests.support.session_commands import CommandWorld, log_bytes
from tests.support.session_turns import call, delta, step_start, text_turn, turn_start, user

ID = "5b6d0a3e-4f0f-4f57-9f0e-2f5a1b6c7d8e"
KEY = "value-of-the-key-42"
TITLE = ("session/title", {"title": "Say hello", "by": "prompt"})


@pytest.fixture
def world(tmp_path):
    return CommandWorld(tmp_path / "sessions", {"DEEPSEEK_API_KEY": KEY, "HOME": str(tmp_path)})


def stored(world):
    """The bytes of every log."""
    return {path.stem: path.read_bytes() for path in world.root.rglob("*.jsonl")}


# show


def test_show_prints_plain_text_where_nobody_looks(world):
    world.write(ID, [TITLE, *text_turn(1)])
    ran = world.run("show", "5b6d")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.split("\n")
    assert lines[:3] == ["Say hello", f"session      {ID}", "directory    /srv/app"]
    assert lines[5].startswith("log          8 events, ")
    assert [line for line in lines[6:] if line][1:] == ["› hello", "hi"]
    assert "\x1b" not in ran.out


def test_show_prints_colours_on_a_terminal(world, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    world.write(ID, text_turn(1, reply="**bold**"), parent_session="parent")
    ran = world.run("show", "5b6d", tty=True)
    assert "\x1b[1mbold\x1b[0m" in ran.out
    assert "forked from" in ran.out
    assert "untitled session" in ran.out


def test_show_says_what_the_log_breaks_off_in(world):
    world.write(ID, [turn_start(1), step_start(1, 1), call(1, 1, "c")])
    assert "no result is known" in world.run("show", ID).out


def test_a_damaged_log_is_shown_up_to_the_damage_and_the_fix_is_named(world):
    path = world.write(ID, [*text_turn(1), *text_turn(2, "again")])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:9], b"\0\0\n", *lines[10:]]))
    ran = world.run("show", ID)
    assert ran.code == 1
    assert "› hello" in ran.out
    assert ran.err == (
        f"dsh-acp-agent sessions: the log of session {ID} is damaged at line 10 (byte {len(b''.join(lines[:9]))}): "
        f"it is no JSON; it was left untouched; `dsh-acp-agent sessions repair {ID}` keeps what can be kept\n"
    )


@pytest.mark.parametrize("command", [["show"], ["export"], ["repair"], ["delete", "--yes"]])
def test_a_session_that_is_not_there_is_said_in_a_line(world, command):
    ran = world.run(*command, "nope")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "dsh-acp-agent sessions: no session 'nope' is stored; `dsh-acp-agent sessions list` shows what there is\n"
    )


def test_a_session_whose_header_is_lost_is_named_by_its_whole_id(world):
    world.write(ID, text_turn(1)).write_bytes(b"\0\n" + b"".join(b"{}\n" for _ in range(3)))
    ran = world.run("export", ID)
    assert ran.code == 1
    assert "damaged at line 1 (byte 0)" in ran.err


# export


def test_export_writes_to_standard_output_without_secrets_and_says_what_was_taken_out(world):
    world.write(
        ID, [("session/title", {"title": f"about {KEY}", "by": "prompt"}), *text_turn(1, reply=f"it is {KEY}.")]
    )
    ran = world.run("export", ID)
    assert ran.code == 0
    assert ran.out.startswith("# about \\[redacted:DEEPSEEK\\_API\\_KEY\\]\n")
    assert "it is [redacted:DEEPSEEK_API_KEY]." in ran.out
    assert KEY not in ran.out
    assert ran.err == "taken out: DEEPSEEK_API_KEY (4×)\n"


def test_export_of_a_log_without_secrets_says_so_and_its_jsonl_is_the_log(world):
    path = world.write(ID, [TITLE, *text_turn(1)])
    ran = world.run("export", ID, "--format", "jsonl")
    assert ran.out.encode() == path.read_bytes()
    assert ran.err == "nothing was taken out: no secret was found\n"


def test_export_of_a_log_that_breaks_off_in_a_message_is_whole(world):
    path = world.write(ID, [turn_start(1), user("x"), step_start(1, 1), delta(1, 1, "half")])
    assert world.run("export", ID, "--format", "jsonl").out.encode() == path.read_bytes()
    assert world.run("export", ID).out.endswith("\nhalf\n")


def test_export_to_a_file_is_private_and_replaces_nothing_unless_forced(world, tmp_path):
    world.write(ID, text_turn(1))
    target = tmp_path / "out.html"
    ran = world.run("export", ID, "-o", str(target))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith(f"written: {target}\n")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.read_text().endswith("</html>\n")
    ran = world.run("export", ID, "-o", str(target), "--format", "md")
    assert (ran.code, ran.err) == (1, f"dsh-acp-agent sessions: {target} exists; --force replaces it\n")
    assert target.read_text().endswith("</html>\n")
    assert world.run("export", ID, "-o", str(target), "--format", "md", "--force").code == 0
    assert target.read_text().startswith("# untitled session")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "sessions"]
    ran = world.run("export", ID, "-o", str(tmp_path), "--force")
    assert (ran.code, ran.err) == (1, f"dsh-acp-agent sessions: {tmp_path} is no file that could be replaced\n")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_export_that_fails_leaves_nothing_behind_and_the_old_file_as_it_was(world, tmp_path, force):
    path = world.write(ID, [*text_turn(1), *text_turn(2)])
    path.write_bytes(path.read_bytes().replace(b'"seq":3,', b'"seq":4,'))
    target = tmp_path / "out.md"
    if force:
        target.write_text("old")
    ran = world.run("export", ID, "-o", str(target), *force)
    assert ran.code == 1
    assert "damaged at line 5" in ran.err
    assert [name for name in os.listdir(tmp_path) if name.startswith("out")] == (["out.md"] if force else [])
    assert not force or target.read_text() == "old"


def test_export_into_a_directory_that_is_not_there_names_it(world, tmp_path):
    world.write(ID, text_turn(1))
    ran = world.run("export", ID, "-o", str(tmp_path / "none" / "x.md"))
    assert (ran.code, ran.err) == (
        1,
        f"dsh-acp-agent sessions: No such file or directory: {tmp_path}/none/x.md\n",
    )


def test_a_long_export_shows_a_bar_to_a_person_only(world, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    world.write(ID, text_turn(1, "x" * LONG))
    assert "exporting" in world.run("export", ID, err_tty=True).err
    assert "exporting" not in world.run("export", ID).err


# import


@pytest.fixture
def exported(world, tmp_path):
    """A file from a machine where the project lies in /there."""
    file = tmp_path / "exported.jsonl"
    header = SessionHeader(ID, 1000, cwd="/there")
    turn = text_turn(1, "look at /there/a.py and /data/x", "/there/a.py is fine")
    file.write_bytes(log_bytes(header, [TITLE, *turn]))
    return file


def test_import_keeps_the_id_when_it_is_free_and_every_byte(world, exported):
    ran = world.run("import", str(exported))
    assert (ran.code, ran.out) == (0, f"imported {ID} for /there\n")
    assert ran.err == "its directory /there is not here; delete it and import it with --cwd DIR to move it\n"
    assert stored(world) == {ID: exported.read_bytes()}
    (path,) = world.root.rglob("*.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "› look at /there/a.py" in world.run("show", ID).out


def test_import_never_replaces_a_session_it_takes_a_new_id_and_says_so(world, exported):
    world.write(ID, text_turn(1), cwd="/elsewhere")
    before = stored(world)
    ran = world.run("import", str(exported))
    assert ran.code == 0
    assert f"its id is new: a session {ID} is stored already\n" in ran.err
    after = stored(world)
    assert before.items() < after.items()
    assert len(after) == 2


def test_import_puts_the_paths_of_this_machine_in(world, exported, tmp_path):
    here = tmp_path / "mine"
    here.mkdir()
    ran = world.run("import", str(exported), "--cwd", str(here), "--map", "/data=/big/data")
    assert (ran.code, ran.out) == (0, f"imported {ID} for ~/mine\n")
    assert ran.err == "/data was replaced (1×)\n/there was replaced (4×)\n"
    header, *events = map(json.loads, stored(world)[ID].splitlines())
    assert header["cwd"] == str(here)
    assert events[2]["data"]["content"][0]["text"] == f"look at {here}/a.py and /big/data/x"
    assert json.loads(world.run("list", "--json", "--cwd", str(here)).out)[0]["id"] == ID


@pytest.mark.parametrize("recorded", [None, "/", "relative"])
def test_a_directory_that_cannot_be_told_from_other_text_is_replaced_in_the_header_alone(world, tmp_path, recorded):
    file = tmp_path / "x.jsonl"
    file.write_bytes(log_bytes(SessionHeader(ID, 1, cwd=recorded), text_turn(1, "a / b relative")))
    ran = world.run("import", str(file), "--cwd", str(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    header, *events = map(json.loads, stored(world)[ID].splitlines())
    assert header["cwd"] == str(tmp_path)
    assert events[1]["data"]["content"][0]["text"] == "a / b relative"


def test_a_session_without_a_directory_stays_without(world, tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(log_bytes(SessionHeader(ID, 1), text_turn(1)))
    assert world.run("import", str(file)).out == f"imported {ID}\n"


def test_a_log_that_breaks_off_in_a_message_is_taken_in_whole(world, tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(log_bytes(SessionHeader(ID, 1), [turn_start(1), user("x"), step_start(1, 1), delta(1, 1, "half")]))
    assert world.run("import", str(file)).code == 0
    assert stored(world) == {ID: file.read_bytes()}


def test_a_log_that_was_cut_off_is_taken_in_up_to_there(world, exported):
    whole = exported.read_bytes()
    exported.write_bytes(whole[:-20])
    ran = world.run("import", str(exported))
    assert ran.code == 0
    assert "its last line was not complete and was left out\n" in ran.err
    assert "its last turn was cut off; it is closed when the session is opened\n" in ran.err
    assert whole.startswith(stored(world)[ID])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda lines: [*lines[:3], b"\0\n", *lines[4:]], "line 4 (byte {3})"),
        (lambda lines: [*lines[:-1], b"half\n"], "line 9 (byte {8})"),
        (lambda lines: [lines[0], lines[2]], "line 2 (byte {1})"),
        (lambda lines: [b'{"type":"other"}\n'], "line 1 (byte 0)"),
        (lambda lines: [], "line 1 (byte 0)"),
        (lambda lines: [lines[0].replace(b'"version":1', b'"version":99'), *lines[1:]], "log format 99"),
        (lambda lines: lines[:1], "holds no event"),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_nothing_is_written(world, exported, damage, says):
    lines = exported.read_bytes().splitlines(keepends=True)
    exported.write_bytes(b"".join(damage(lines)))
    ran = world.run("import", str(exported))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("dsh-acp-agent sessions: nothing was imported: ")
    assert says.format(*(sum(map(len, lines[:count])) for count in range(9))) in ran.err
    assert stored(world) == {}
    assert not list(world.root.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--cwd", "none"], "none is no directory; --cwd names where the session belongs on this machine"),
        (["--map", "a=b"], "'a' is no absolute path, and where it was relative to is not known"),
    ],
)
def test_a_directory_that_makes_no_sense_is_refused(world, exported, monkeypatch, argv, says):
    monkeypatch.chdir(exported.parent)
    ran = world.run("import", str(exported), *argv)
    assert ran.code == 1
    assert ran.err.endswith(f"{says}\n")


def test_a_file_that_is_not_there_is_named(world):
    assert world.run("import", "/none.jsonl").err == "dsh-acp-agent sessions: No such file or directory: /none.jsonl\n"


def test_a_long_import_shows_a_bar_to_a_person(world, exported, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    exported.write_bytes(log_bytes(SessionHeader(ID, 1000), text_turn(1, "x" * LONG)))
    assert "importing" in world.run("import", str(exported), err_tty=True).err


# repair


def test_repair_says_that_a_healthy_session_is_healthy(world):
    path = world.write(ID, text_turn(1))
    before = path.read_bytes()
    ran = world.run("repair", "5b6d")
    assert (ran.code, ran.out) == (0, f"session {ID} is healthy: 7 events, nothing was changed\n")
    assert path.read_bytes() == before


def test_repair_names_every_line_that_was_put_aside(world):
    path = world.write(ID, text_turn(1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"x\n", *lines[3:]]))
    assert world.run("repair", ID).out.splitlines() == [
        f"session {ID} was mended: 7 events were kept",
        f"line 4 (byte {len(b''.join(lines[:3]))}): it is no JSON",
        f"what was put aside lies in {path}.damaged",
    ]


def test_repair_of_very_much_tells_the_beginning_of_it(world):
    path = world.write(ID, [*text_turn(1), *text_turn(2)])
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b"\x1b[2J%d\n" % number for number in range(25)]
    path.write_bytes(b"".join([*lines[:8], *bad, *lines[8:]]))
    ran = world.run("repair", "5b6d")
    first, *rows, more, where = ran.out.splitlines()
    assert ran.code == 0
    assert first == f"session {ID} was mended: 14 events were kept"
    assert rows[0] == f"line 9 (byte {len(b''.join(lines[:8]))}): it is no JSON"
    assert (len(rows), more) == (20, "and 5 more")
    assert where.startswith(f"what was put aside lies in {path}.damaged")
    assert world.run("show", ID).code == 0


# delete


def test_delete_asks_and_deletes_what_was_named(world):
    world.write(ID, [TITLE, *text_turn(1)])
    world.write("other", text_turn(1))
    world.write("third", text_turn(1))
    ran = world.run("delete", "5b6d", "oth", ID, answer="y\n")
    assert (ran.code, ran.out) == (0, f"deleted: {ID} Say hello\ndeleted: other\n")
    assert ran.err == f"{ID} Say hello\nother\ndelete these 2 sessions for good? [y/N] "
    assert list(stored(world)) == ["third"]


@pytest.mark.parametrize("answer", ["\n", "no\n", ""])
def test_without_a_yes_nothing_is_deleted(world, answer):
    world.write(ID, text_turn(1))
    ran = world.run("delete", ID, answer=answer)
    assert ran.code == 1
    assert ran.err.endswith("delete this session for good? [y/N] dsh-acp-agent sessions: nothing was deleted\n")
    assert list(stored(world)) == [ID]


def test_where_nobody_can_be_asked_yes_must_be_said(world):
    world.write(ID, text_turn(1))
    ran = world.run("delete", ID)
    assert (ran.code, ran.err) == (
        1,
        "dsh-acp-agent sessions: nobody can be asked here: --yes deletes without asking\n",
    )
    assert world.run("delete", ID, "--yes").code == 0
    assert stored(world) == {}


class Contended(JsonlSessionStore):
    """One session is open in another process, and one is gone before its turn comes."""

    async def delete(self, session_id):
        if session_id == "held":
            raise SessionLockedError(session_id, 4711)
        return await super().delete(session_id) and session_id != "fast"


class ContendedWorld(CommandWorld):
    def store(self, root):
        return Contended(root, self.runtime)


def test_a_session_that_is_open_elsewhere_is_said_and_keeps_none_of_the_others(tmp_path):
    world = ContendedWorld(tmp_path)
    for session_id in ("held", "fast", "other"):
        world.write(session_id, text_turn(1))
    ran = world.run("delete", "held", "fast", "other", "--yes")
    assert (ran.code, ran.out) == (1, "gone already: fast\ndeleted: other\n")
    assert ran.err == (
        "dsh-acp-agent sessions: session held is open in another process (pid 4711); close it there first\n"
    )
    assert list(stored(world)) == ["held"]
