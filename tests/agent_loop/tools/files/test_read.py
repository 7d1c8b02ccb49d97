"""The tool `read`: what the model sees of a file, and why it sees nothing."""

import os
import socket
from pathlib import Path

import pytest

from agent_loop.tools.files.numbering import LINES, TEXT_BYTES
from agent_loop.tools.files.seam import WHOLE_LIMIT
from tests.support.file_tools import TOOLS, FileTools


async def test_lines_come_numbered_from_one(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\nthree")
    outcome = await FileTools(tmp_path).run("read", file_path="a.txt")
    assert outcome.content[0]["text"] == "     1\tone\n     2\t\n     3\tthree"
    assert outcome.meta == {"line": 1, "lines": 3, "total": 3}


async def test_a_part_is_read_and_the_rest_is_named(tmp_path: Path):
    (tmp_path / "a.txt").write_text("1\n2\n3\n4\n")
    tools = FileTools(tmp_path)
    text = await tools.text("read", file_path=str(tmp_path / "a.txt"), offset=2, limit=2)
    assert text == "     2\t2\n     3\t3\n[lines 2-3 of 4 shown; read on with offset=4]"
    assert await tools.text("read", file_path="a.txt", offset=4) == "     4\t4"


async def test_an_empty_file_says_so(tmp_path: Path):
    (tmp_path / "a.txt").touch()
    assert await FileTools(tmp_path).text("read", file_path="a.txt") == "[the file is empty]"


async def test_a_long_file_is_cut_by_lines_and_by_bytes_and_a_long_line_by_characters(tmp_path: Path):
    (tmp_path / "lines").write_text("x\n" * (LINES + 1))
    (tmp_path / "bytes").write_text(("y" * 1000 + "\n") * 100)
    (tmp_path / "line").write_text("z" * 5000)
    tools = FileTools(tmp_path)
    assert (await tools.text("read", file_path="lines")).endswith(
        "\n[lines 1-2000 of 2001 shown; read on with offset=2001]"
    )
    assert (await tools.text("read", file_path="lines", limit=9999)).endswith("read on with offset=2001]")
    text = await tools.text("read", file_path="bytes")
    assert text.endswith("\n[lines 1-50 of 100 shown; read on with offset=51]")
    assert len(text) < TEXT_BYTES + 100
    assert (await tools.text("read", file_path="line")).endswith("zzz… [line cut after 2000 characters]")


async def test_a_file_that_is_too_large_to_hold_is_read_in_passing(tmp_path: Path):
    with (tmp_path / "big").open("wb") as file:
        file.write(b"first\r\n" + b"a" * 20_000 + b"\nthird\n")
        file.truncate(WHOLE_LIMIT)
        file.seek(WHOLE_LIMIT)
        file.write(b"\nlast \xff")
    tools = FileTools(tmp_path)
    text = await tools.text("read", file_path="big", limit=2)
    assert text.startswith("     1\tfirst\n     2\taaaa")
    assert text.endswith("… [line cut after 2000 characters]\n[lines 1-2 shown; read on with offset=3]")
    end = await tools.run("read", file_path="big", offset=5)
    assert end.content[0]["text"] == "     5\tlast \N{REPLACEMENT CHARACTER}"
    assert end.meta == {"line": 5, "lines": 1, "total": 5}
    code, said = await tools.error("edit", file_path="big", old_string="a", new_string="b")
    assert (code, said) == ("TOO_LARGE", "$/big is larger than 16 MiB; change it with a command")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"file_path": "a.txt", "offset": 9}, "INVALID_ARGS", "offset 9 is behind the end: $/a.txt has 2 lines"),
        ({"file_path": "a.txt", "offset": 0}, "INVALID_ARGS", "offset and limit count from 1"),
        ({"file_path": "a.txt", "limit": 0}, "INVALID_ARGS", "offset and limit count from 1"),
        ({"file_path": "b.txt"}, "NOT_FOUND", "$/b.txt does not exist; did you mean $/a.txt?"),
        (
            {"file_path": "nothing/like/it"},
            "NOT_FOUND",
            "$/nothing/like/it does not exist; look for it with glob or list",
        ),
        (
            {"file_path": "a.txt/below"},
            "NOT_A_DIRECTORY",
            "cannot read $/a.txt/below: a part of that path is not a directory",
        ),
        ({"file_path": "."}, "NOT_A_FILE", "$ is a directory; use list to see what is in it"),
        ({"file_path": "pipe"}, "NOT_A_FILE", "$/pipe is a device, a pipe or a socket, not a file"),
        ({"file_path": " "}, "NOT_FOUND", "' ' is not a path"),
        ({"file_path": "a\0b"}, "NOT_FOUND", "'a\\x00b' is not a path"),
        ({"file_path": "n" * 300}, "IO", f"cannot read $/{'n' * 300}: File name too long"),
    ],
)
async def test_what_cannot_be_read_is_said_with_the_way_round(tmp_path: Path, arguments, code, said):
    (tmp_path / "a.txt").write_text("1\n2\n")
    os.mkfifo(tmp_path / "pipe")
    assert await FileTools(tmp_path).error("read", **arguments) == (code, said)


async def test_a_socket_cannot_be_opened(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("door")  # relative: such a path must be short
        code, said = await FileTools(tmp_path).error("read", file_path="door")
    assert code == "IO"
    assert said.startswith("cannot read $/door: ")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "a PNG image"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a WebP image"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xff\xfeh\x00i\x00", "UTF-16 text"),
        (b"some\x00thing", "binary data"),
    ],
)
async def test_what_is_no_text_is_named(tmp_path: Path, data, kind):
    (tmp_path / "a").write_bytes(data)
    code, said = await FileTools(tmp_path).error("read", file_path="a")
    assert code == "NOT_TEXT"
    assert said == f"$/a is not text but {kind} ({len(data)} bytes); use a command that understands it"


async def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path):
    (tmp_path / "a").write_bytes("Stra\N{LATIN SMALL LETTER SHARP S}e".encode("latin-1"))
    assert await FileTools(tmp_path).text("read", file_path="a") == "     1\tStra\N{REPLACEMENT CHARACTER}e"


async def test_nothing_is_read_once_the_turn_has_ended(tmp_path: Path):
    (tmp_path / "a").write_text("x")
    tools = FileTools(tmp_path)
    tools.abort.abort("cancel")
    assert await tools.error("read", file_path="a") == ("aborted", "the turn ended before it could read $/a")


@pytest.mark.parametrize(
    ("arguments", "title", "line"),
    [
        ({}, "Read src/a.py", 1),
        ({"offset": 5}, "Read src/a.py (from line 5)", 5),
        ({"limit": 20}, "Read src/a.py (1 - 20)", 1),
        ({"offset": 11, "limit": 10}, "Read src/a.py (11 - 20)", 11),
    ],
)
def test_the_card_names_file_and_lines(arguments, title, line):
    card = TOOLS["read"].present_call({"file_path": "/p/src/a.py", **arguments}, "/p")
    assert (card.title, card.kind) == (title, "read")
    assert card.locations == [{"path": "/p/src/a.py", "line": line}]


def test_a_file_elsewhere_is_named_whole():
    assert TOOLS["read"].present_call({"file_path": "../b.py"}, "/p/q").title == "Read /p/b.py"


def test_the_lines_are_fenced_and_an_error_is_as_it_is():
    content = [{"type": "text", "text": "a ``` b"}]
    shown = TOOLS["read"].present_result({}, content, {"line": 1})
    assert shown.content == [{"type": "text", "text": "````\na ``` b\n````"}]
    assert TOOLS["read"].present_result({}, content, None) is None
