"""The tools `list`, `glob` and `grep`: what is found, in which order, and what is left out."""

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

from agent_loop.tools.files import glob, listing, searching
from agent_loop.tools.files.ignoring import Ignored
from agent_loop.tools.files.search_main import main
from agent_loop.tools.files.walking import read_file, walk
from agent_loop.tools.seam import Subject
from tests.support.file_tools import TOOLS, FileTools


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with two ignored things, a link out of it and a hidden file."""
    for name, text in {
        ".git/config": "hello",
        ".gitignore": "*.log\nbuild/\n",
        ".github/ci.yml": "hello: ci\n",
        "README.md": "hello\n",
        "build/out.py": "hello\n",
        "src/a.py": "one\r\nhello, a\r\n",
        "src/deep/b.py": "hello, b\nhello again\n",
        "src/deep/.gitignore": "!kept.log\n/c.py\n",
        "src/deep/c.py": "hello\n",
        "src/deep/kept.log": "hello, log\n",
        "x.log": "hello, x\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "src/bin").write_bytes(b"hello\x00")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to("..")
    return tmp_path


async def test_a_directory_is_listed_with_what_its_entries_are(tree: Path):
    os.mkfifo(tree / "pipe")
    tools = FileTools(tree)
    outcome = await tools.run("list")
    assert outcome.content[0]["text"].splitlines() == [
        ".git/",
        ".github/",
        ".gitignore",
        "README.md",
        "build/  (ignored by git)",
        "passwd -> /etc/passwd",
        "pipe",
        "src/",
        "up -> ..",
        "x.log  (ignored by git)",
    ]
    assert outcome.meta == {"entries": 10}
    assert (await tools.text("list", path="src/deep")).splitlines() == [
        ".gitignore",
        "b.py",
        "c.py  (ignored by git)",
        "kept.log",
    ]


async def test_an_empty_directory_says_so_and_a_large_one_is_cut(tmp_path: Path, monkeypatch):
    (tmp_path / "empty").mkdir()
    for number in range(4):
        (tmp_path / f"f{number}").touch()
    tools = FileTools(tmp_path)
    assert await tools.text("list", path="empty") == "[the directory is empty]"
    monkeypatch.setattr(listing, "ENTRIES", 3)
    assert await tools.text("list") == "empty/\nf0\nf1\n[2 more entries]"


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        (("list", {"path": "README.md"}), "NOT_A_DIRECTORY", "$/README.md is a file, not a directory; use read"),
        (("list", {"path": "none"}), "NOT_FOUND", "$/none does not exist; look for it with glob or list"),
        (("list", {"path": "up"}), "OUTSIDE", "it leads to"),
        (("glob", {"pattern": "../*"}), "OUTSIDE", "and nobody has allowed it"),
        (("glob", {"pattern": "README.md/*"}), "NOT_A_DIRECTORY", "$/README.md is not a directory"),
        (("glob", {"pattern": "src/"}), "INVALID_ARGS", "'src/' names no file"),
        (("grep", {"pattern": "x", "path": "none"}), "NOT_FOUND", "$/none does not exist"),
        (("grep", {"pattern": "x", "path": "passwd"}), "OUTSIDE", "it leads to /etc/passwd"),
        (("grep", {"pattern": "("}), "INVALID_ARGS", "the search failed: "),
    ],
)
async def test_where_nothing_can_be_looked_for_it_is_said(tree: Path, call, code, said):
    found_code, found = await FileTools(tree).error(call[0], **call[1])
    assert found_code == code
    assert said in found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/a.py", "src/deep/b.py"]),
        ("src/*.py", ["src/a.py"]),
        ("**/*.{py,yml}", [".github/ci.yml", "src/a.py", "src/deep/b.py"]),
        ("*.log", ["src/deep/kept.log"]),
        ("pass??", ["passwd"]),
        ("up/*", None),
        ("{src,nothing}/[!b].py", ["src/a.py"]),
        ("build/*.py", ["build/out.py"]),
        ("*.rs", []),
    ],
)
async def test_files_are_found_by_their_path(tree: Path, pattern, found):
    tools = FileTools(tree)
    if found is None:
        assert (await tools.error("glob", pattern=pattern))[0] == "OUTSIDE"
        return
    outcome = await tools.run("glob", pattern=pattern)
    assert outcome.content[0]["text"] == ("\n".join(found) or "[no file matches]")
    assert outcome.meta == {"files": len(found)}
    whole = await tools.text("glob", pattern=f"{tree}/{pattern}")
    if "/" in pattern:
        assert whole == ("\n".join(found) or "[no file matches]")


async def test_too_many_files_are_cut(tree: Path, monkeypatch):
    monkeypatch.setattr(glob, "PATHS", 1)
    outcome = await FileTools(tree).run("glob", pattern="*.py")
    assert outcome.content[0]["text"] == "src/a.py\n[only the first 1 are shown; narrow the pattern]"
    assert outcome.meta == {"files": 1, "more": True}


async def test_directories_that_cannot_be_opened_are_left_out(tree: Path):
    top = os.open(tree, os.O_RDONLY)
    found: list[str] = []
    for file in walk(top, Ignored(str(tree))):
        found.append(file.path)
        if file.path == "src/a.py":
            (tree / "src/deep").rename(tree / "gone")
            (tree / "src/deep").symlink_to(tree / "gone")
    os.close(top)
    assert [path for path in found if path.startswith("src")] == ["src/a.py", "src/bin"]
    closed = os.open(tree, os.O_PATH)
    assert list(walk(closed, Ignored(str(tree)))) == [], "not readable"
    os.close(closed)


class Ripgrep:
    """A ripgrep on PATH that writes what a test says, and its arguments into a file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def says(self, script: str) -> None:
        path = self._folder / "rg"
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{self._folder}/arguments'\n{script}\n")
        path.chmod(0o755)

    def arguments(self) -> list[str]:
        return (self._folder / "arguments").read_text().splitlines()


@pytest.fixture
def ripgrep(tmp_path_factory, monkeypatch) -> Ripgrep:
    return Ripgrep(tmp_path_factory.mktemp("bin"), monkeypatch)


@pytest.fixture
def no_ripgrep(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.usefixtures("no_ripgrep")
async def test_lines_are_found_without_ripgrep(tree: Path):
    outcome = await FileTools(tree).run("grep", pattern="^hello")
    assert outcome.content[0]["text"].splitlines() == [
        ".github/ci.yml:1:hello: ci",
        "README.md:1:hello",
        "src/a.py:2:hello, a",
        "src/deep/b.py:1:hello, b",
        "src/deep/b.py:2:hello again",
        "src/deep/kept.log:1:hello, log",
    ]
    assert outcome.meta == {"matches": 6}


async def test_the_search_process_looks_into_one_file_or_where_the_glob_says(tree: Path, capsys):
    def found(*arguments: str) -> tuple[int, str]:
        out = BytesIO()
        return main(arguments, out), out.getvalue().decode()

    assert found("a$", str(tree / "src"), "a.py", "") == (0, "a.py\x002:hello, a\n")
    assert found("zzz", str(tree / "src"), "a.py", "") == (1, "")
    assert found("hello", str(tree / "src"), "bin", "") == (1, ""), "binary"
    assert found("hello", str(tree / "src"), "none", "") == (1, "")
    assert found("hello", str(tree / "src"), "deep", "") == (1, ""), "a directory"
    assert found("x*", str(tree / "build"), "", "") == (0, "out.py\x001:hello\n"), "no line behind the last"
    assert found("hello", str(tree), "", "*.log") == (0, "src/deep/kept.log\x001:hello, log\nx.log\x001:hello, x\n")
    (tree / "src/deep/.gitignore").unlink()
    (tree / "src/deep/.gitignore").mkdir()
    assert found("hello, b", str(tree / "src"), "", "") == (0, "deep/b.py\x001:hello, b\n")
    (tree / "empty").touch()
    assert found("^", str(tree), "empty", "") == (1, "")
    assert found("(", str(tree), "", "")[0] == 2
    assert "unterminated" in capsys.readouterr().err


def test_a_file_above_the_limit_is_not_read(tree: Path):
    directory = os.open(tree, os.O_RDONLY)
    assert read_file(directory, "README.md", limit=5) is None
    assert read_file(directory, "README.md", limit=6) == b"hello\n"
    os.close(directory)


async def test_ripgrep_is_asked_where_there_is_one(tree: Path, ripgrep: Ripgrep):
    ripgrep.says("printf './a.py\\0003:hello\\r\\n./b:c.py\\00012:x:y\\nbinary file matches\\n'")
    tools = FileTools(tree)
    outcome = await tools.run("grep", pattern="-hel", path="src", glob="*.py")
    assert outcome.content[0]["text"] == "src/a.py:3:hello\nsrc/b:c.py:12:x:y"
    given = ripgrep.arguments()
    assert given[-5:] == ["--glob=*.py", "--glob=!.git", "--regexp=-hel", "--", "."]
    assert "--no-config" in given
    ripgrep.says("exit 1")
    assert await tools.text("grep", pattern="x", path="src/a.py") == "[no line matches]"
    assert ripgrep.arguments()[-1] == "a.py"
    ripgrep.says("echo 'regex parse error' >&2; exit 2")
    assert await tools.error("grep", pattern="x") == ("INVALID_ARGS", "the search failed: regex parse error")


async def test_the_search_process_gets_nothing_of_the_environment(tree: Path, ripgrep: Ripgrep, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "very-secret-value")
    ripgrep.says("printf 'env\\0001:'; env | grep -c MY_TOKEN")
    assert await FileTools(tree).text("grep", pattern="x") == "env:1:0"


async def test_a_flood_of_lines_is_cut_and_its_process_ended(tree: Path, ripgrep: Ripgrep):
    long_line = "y" * 1000
    ripgrep.says(f"while :; do printf 'a.py\\0007:{long_line}\\n'; done")
    outcome = await FileTools(tree).run("grep", pattern="x")
    lines = outcome.content[0]["text"].splitlines()
    assert len(lines) == searching.MATCHES + 1
    assert lines[0] == f"a.py:7:{'y' * 300}… [line cut]"
    assert lines[-1] == "[only the first 200 lines are shown; narrow the pattern, the path or the glob]"
    assert outcome.meta == {"matches": 200, "more": True}


async def test_the_end_of_the_turn_ends_the_search(tree: Path, ripgrep: Ripgrep):
    ripgrep.says("while :; do :; done")
    tools = FileTools(tree)
    tools.abort.abort("cancel")
    assert await tools.error("grep", pattern="x") == ("aborted", "the turn ended before the search did")


async def test_a_program_that_cannot_be_started_is_an_error_of_the_call(tree: Path, ripgrep: Ripgrep):
    ripgrep.says("")
    (ripgrep._folder / "rg").write_bytes(b"\x7fELF nothing")
    code, said = await FileTools(tree).error("grep", pattern="x")
    assert code == "TOOL_FAILED"
    assert "Exec format error" in said


@pytest.mark.parametrize(
    ("name", "arguments", "title", "kind", "path"),
    [
        ("list", {}, "List .", "read", "/p"),
        ("list", {"path": "src"}, "List src", "read", "/p/src"),
        ("glob", {"pattern": "src/**/*.py"}, "Find `src/**/*.py`", "search", "/p/src"),
        ("glob", {"pattern": "*.py"}, "Find `*.py`", "search", "/p"),
        ("grep", {"pattern": "a|b"}, "Search for `a|b`", "search", "/p"),
        ("grep", {"pattern": "a", "path": "src", "glob": "*.py"}, "Search for `a` in src (`*.py`)", "search", "/p/src"),
    ],
)
def test_the_cards_say_what_is_looked_for_and_where(name, arguments, title, kind, path):
    card = TOOLS[name].present_call(arguments, "/p")
    assert (card.title, card.kind, card.locations) == (title, kind, [{"path": path}])
    assert TOOLS[name].subject(arguments, "/p") == Subject(paths=(path,))
    assert (TOOLS[name].effect, TOOLS[name].concurrency_safe) == ("read", True)


def test_the_search_process_imports_nothing_but_the_standard_library():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from agent_loop.tools.files.search_main import BAD_PATTERN; "
        "print(BAD_PATTERN)"
    )
    root = Path(__file__).parents[4]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(root)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "2\n"
