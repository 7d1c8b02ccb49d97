"""The tools `write` and `edit`: what is on the disk afterwards, what is refused, what is shown."""

import os
import stat
from pathlib import Path

import pytest

from agent_loop.tools.files import disk
from agent_loop.tools.seam import DiffCard, Subject, ToolOutcome
from tests.support.file_tools import TOOLS, FileTools


def stored(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


async def known(path: Path, data: bytes | str) -> FileTools:
    """A session that has read `path`."""
    tools = FileTools(stored(path, data).parent)
    await tools.text("read", file_path=path.name)
    return tools


async def test_a_new_file_is_made_with_its_directories_and_its_diff_has_no_old_text(tmp_path: Path):
    tools = FileTools(tmp_path)
    outcome = await tools.run("write", file_path="a/b/c.txt", content="one\ntwo")
    path = tmp_path / "a/b/c.txt"
    assert path.read_text() == "one\ntwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    assert outcome.content[0]["text"] == f"Created {path} (2 lines)."
    diff = {"path": str(path), "oldText": None, "newText": "one\ntwo"}
    assert outcome.meta == {"diffs": [diff], "line": 1, "added": 2, "removed": 0}
    assert os.listdir(path.parent) == ["c.txt"], "nothing is left beside it"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


async def test_what_was_written_is_known_and_may_be_replaced(tmp_path: Path):
    tools = FileTools(tmp_path)
    await tools.text("write", file_path="a", content="")
    assert await tools.text("write", file_path="a", content="x\n") == "Replaced $/a (1 line)."
    assert await tools.text("edit", file_path="a", old_string="x", new_string="y") == (
        "Edited $/a; it now reads:\n     1\ty"
    )
    assert (tmp_path / "a").read_text() == "y\n"


async def test_an_empty_file_has_nothing_to_lose(tmp_path: Path):
    (tmp_path / "a").touch()
    tools = FileTools(tmp_path)
    outcome = await tools.run("write", file_path="a", content="")
    assert outcome.meta == {
        "diffs": [{"path": str(tmp_path / "a"), "oldText": "", "newText": ""}],
        "added": 0,
        "removed": 0,
    }
    assert outcome.content[0]["text"] == f"Replaced {tmp_path / 'a'} (0 lines)."


@pytest.mark.parametrize("call", [("write", {"content": "new"}), ("edit", {"old_string": "old", "new_string": "new"})])
async def test_a_file_that_was_not_read_or_has_changed_is_not_changed(tmp_path: Path, call):
    name, arguments = call
    path = tmp_path / "a"
    path.write_text("old")
    tools = FileTools(tmp_path)
    code, said = await tools.error(name, file_path="a", **arguments)
    assert (code, said) == ("STALE", "$/a was not read in this session; read it, then change it")
    await tools.text("read", file_path="a")
    path.write_text("old, and more")
    code, said = await tools.error(name, file_path="a", **arguments)
    assert code == "STALE"
    assert said == "$/a has changed since it was read; read it again, then make the change that is still right"
    assert path.read_text() == "old, and more"
    await tools.text("read", file_path="a")
    await tools.text(name, file_path="a", **arguments)
    assert path.read_text() == ("new" if name == "write" else "new, and more")


async def test_line_ends_mark_and_mode_stay(tmp_path: Path):
    path = tmp_path / "run.cmd"
    tools = await known(path, b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o751)
    await tools.text("edit", file_path="run.cmd", old_string="one\ntwo", new_string="1\r\n2\n3")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n3\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    await tools.text("write", file_path="run.cmd", content="x\ny\n")
    assert path.read_bytes() == b"\xef\xbb\xbfx\r\ny\r\n"


async def test_what_is_not_touched_stays_byte_by_byte(tmp_path: Path):
    path = tmp_path / "mixed"
    tools = await known(path, b"a\r\nb\nc \xe9\r\nd\rd\n")
    await tools.text("edit", file_path="mixed", old_string="b\nc", new_string="B\nC")
    assert path.read_bytes() == b"a\r\nB\nC \xe9\r\nd\rd\n"
    await tools.text("write", file_path="mixed", content="\ufeffas\r\nit is\n")
    assert path.read_bytes() == b"as\r\nit is\n"


async def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path):
    tools = await known(tmp_path / "real", "x")
    (tmp_path / "link").symlink_to("real")
    await tools.text("edit", file_path="link", old_string="x", new_string="y")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "y"


async def test_the_owner_stays(tmp_path: Path, monkeypatch):
    tools = await known(tmp_path / "a", "x")
    given: list[tuple[int, int]] = []
    status = os.stat(tmp_path / "a")
    # the file of somebody else, as the system tells it
    theirs = os.stat_result((*status[:4], 4242, 4243, *status[6:]))
    monkeypatch.setattr(disk.os, "stat", lambda *_args, **_more: theirs)
    monkeypatch.setattr(disk.os, "fchown", lambda _file, user, group: given.append((user, group)))
    await tools.text("write", file_path="a", content="y")
    assert given == [(4242, 4243)]

    def refuse(*_ids: int) -> None:
        raise PermissionError

    monkeypatch.setattr(disk.os, "fchown", refuse)
    code, said = await tools.error("write", file_path="a", content="z")
    assert (code, said) == ("NO_ACCESS", "no permission to write $/a: it belongs to another user")
    assert os.listdir(tmp_path) == ["a"]


async def test_a_write_that_fails_leaves_the_old_text_and_nothing_else(tmp_path: Path, monkeypatch):
    tools = await known(tmp_path / "a", "old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "fsync", full)
    assert await tools.error("write", file_path="a", content="new") == (
        "IO",
        "cannot write $/a: No space left on device",
    )
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("dir", "NOT_A_FILE", "$/dir is a directory; use list to see what is in it"),
        ("a/below", "NOT_A_DIRECTORY", "cannot read $/a/below: a part of that path is not a directory"),
        (
            "locked",
            "NO_ACCESS",
            "$/locked is read-only (mode 0444); make it writable (chmod u+w) if it is meant to change",
        ),
    ],
)
async def test_what_cannot_be_written_is_said(tmp_path: Path, path, code, said):
    (tmp_path / "dir").mkdir()
    tools = await known(tmp_path / "a", "x")
    (tmp_path / "locked").touch()
    (tmp_path / "locked").chmod(0o444)
    assert await tools.error("write", file_path=path, content="y") == (code, said)


async def test_nothing_is_written_once_the_turn_has_ended(tmp_path: Path):
    tools = FileTools(tmp_path)
    tools.abort.abort("cancel")
    assert (await tools.error("write", file_path="a", content="y"))[0] == "aborted"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"old_string": "", "new_string": "x"}, "NO_MATCH", "old_string is empty"),
        ({"old_string": "a\r\n", "new_string": "a\n"}, "NO_MATCH", "old_string and new_string are the same"),
        ({"file_path": "none", "old_string": "a", "new_string": "b"}, "NOT_FOUND", "$/none does not exist"),
        (
            {"old_string": "go", "new_string": "x"},
            "NO_MATCH",
            "old_string stands 3 times in $/a (lines 1, 2, 3); add lines around it until it is unique",
        ),
        ({"old_string": "     1\tgo one", "new_string": "x"}, "NO_MATCH", "It begins with line numbers"),
        (
            {"old_string": "go two\ngo three", "new_string": "x"},
            "NO_MATCH",
            "The same words stand from line 2 on with other white space",
        ),
        ({"old_string": "\ngo tow", "new_string": "x"}, "NO_MATCH", "Closest is line 2: '  go two'."),
        ({"old_string": "entirely different", "new_string": "x"}, "NO_MATCH", "No line is like its first"),
        ({"old_string": "\n\n\n", "new_string": "x"}, "NO_MATCH", "It is blank"),
    ],
)
async def test_an_edit_that_does_not_fit_says_why(tmp_path: Path, arguments, code, said):
    tools = await known(tmp_path / "a", "go one\n  go two\n\tgo three\n")
    found_code, found = await tools.error("edit", **{"file_path": "a", **arguments})
    assert found_code == code
    assert said in found
    assert isinstance(await tools.preview("edit", **{"file_path": "a", **arguments}), ToolOutcome), "nobody is asked"


async def test_many_places_are_counted_and_some_named(tmp_path: Path):
    tools = await known(tmp_path / "a", "x\n" * 20)
    said = (await tools.error("edit", file_path="a", old_string="x", new_string="y"))[1]
    assert "stands 20 times in $/a (lines 1, 2, 3, 4, 5, 6, 7, 8, …)" in said
    assert await tools.text("edit", file_path="a", old_string="x", new_string="y", replace_all=True) == (
        "Edited $/a: 20 places, the first in line 1."
    )
    assert (tmp_path / "a").read_text() == "y\n" * 20


async def test_the_changed_lines_are_told_with_some_around_them(tmp_path: Path):
    tools = await known(tmp_path / "a", "".join(f"{number}\n" for number in range(1, 100)))
    told = await tools.text("edit", file_path="a", old_string="50\n51", new_string="fifty\nand\nmore")
    assert [row.split("\t")[1] for row in told.splitlines()[1:]] == [
        *("47", "48", "49", "fifty", "and", "more", "52", "53", "54")
    ]


async def test_the_mark_of_a_secret_never_takes_the_place_of_the_secret(tmp_path: Path):
    tools = await known(tmp_path / ".env", "KEY=the-value\nOTHER=1\n")
    mark = "[redacted:KEY]"
    code, said = await tools.error("write", file_path=".env", content=f"KEY={mark}\nOTHER=2\n")
    assert code == "NO_MATCH"
    assert said.startswith(f"{mark} is not what stands in $/.env")
    assert (tmp_path / ".env").read_text() == "KEY=the-value\nOTHER=1\n"
    await tools.text("edit", file_path=".env", old_string="OTHER=1", new_string="OTHER=2")
    documented = await known(tmp_path / "doc.md", f"It says {mark}.\n")
    await documented.text("write", file_path="doc.md", content=f"It is shown as {mark}.\n")


async def test_the_preview_is_what_the_result_says_and_changes_nothing(tmp_path: Path):
    tools = await known(tmp_path / "a", "x\n")
    preview = await tools.preview("edit", file_path="a", old_string="x", new_string="y")
    assert (tmp_path / "a").read_text() == "x\n"
    outcome = await tools.run("edit", file_path="a", old_string="x", new_string="y")
    diffs = [{"path": str(tmp_path / "a"), "oldText": "x\n", "newText": "y\n"}]
    assert preview == {"diffs": diffs, "line": 1}
    assert outcome.meta == {"diffs": diffs, "line": 1, "added": 1, "removed": 1}


def test_the_card_shows_the_preview_and_then_what_was_written():
    write, arguments = TOOLS["write"], {"file_path": "a.py", "content": "x"}
    path = [{"path": "/p/a.py"}]
    diffs = [{"path": "/p/a.py", "oldText": None, "newText": "x"}]
    assert write.present_call(arguments, "/p") == DiffCard("Write a.py", [], path)
    at = [{"path": "/p/a.py", "line": 3}]
    assert write.present_call(arguments, "/p", {"diffs": diffs, "line": 3}) == DiffCard("Write a.py", diffs, at)
    assert write.present_result(arguments, [], {"diffs": diffs, "line": 3}) == DiffCard("Write", diffs, at)
    assert write.present_result(arguments, [], {"diffs": []}) == DiffCard("Write")
    assert write.present_result(arguments, [], None) is None


def test_a_call_touches_its_file(tmp_path: Path):
    (tmp_path / "link").symlink_to("real")
    for name in ("read", "write", "edit"):
        assert TOOLS[name].subject({"file_path": "link"}, str(tmp_path)) == Subject(paths=(str(tmp_path / "real"),))
