"""Where file tools may go: the roots, what was permitted, and no link out of them."""

import os
from pathlib import Path

import pytest

from agent_loop.tools.files.opening import directory_of, open_file
from agent_loop.tools.files.places import is_inside, place_of, shown_path
from agent_loop.tools.files.seam import FileProblem, Place
from tests.support.file_tools import FileTools


def test_a_place_is_named_as_people_know_it_and_judged_without_links(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    context = FileTools(tmp_path).context
    assert place_of("link/a", context) == Place(f"{tmp_path}/link/a", f"{tmp_path}/real/a")
    assert place_of("./real/../b", context) == Place(f"{tmp_path}/b", f"{tmp_path}/b")
    assert place_of(".", context) == Place(str(tmp_path), str(tmp_path))


def test_a_way_back_over_a_link_is_named_by_where_it_leads(tmp_path: Path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    assert place_of("link/../x", FileTools(tmp_path).context) == Place(f"{tmp_path}/a/x", f"{tmp_path}/a/x")


async def test_a_link_that_leads_out_is_refused_before_anything_is_read_or_written(tmp_path: Path):
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    (outside / "secret").write_text("keep out")
    (work / "file").symlink_to(outside / "secret")
    (work / "dir").symlink_to(outside)
    tools = FileTools(work)
    for path in ("file", "dir/secret", "../outside/secret"):
        code, said = await tools.error("read", file_path=path)
        assert code == "OUTSIDE"
        assert f"outside the workspace ({work})" in said.replace("$", str(work))
    for path in ("file", "dir/new", "../outside/new"):
        assert (await tools.error("write", file_path=path, content="x"))[0] == "OUTSIDE"
    assert (outside / "secret").read_text() == "keep out"
    assert os.listdir(outside) == ["secret"]


async def test_further_roots_and_permitted_paths_are_open(tmp_path: Path):
    work, lib, other = (tmp_path / name for name in ("work", "lib", "other"))
    for directory in (work, lib, other):
        directory.mkdir()
        (directory / "a").write_text(directory.name)
        (directory / "b").touch()
    tools = FileTools(work, roots=(lib,), permitted=(other / "a",))
    assert await tools.text("read", file_path="../lib/a") == "     1\tlib"
    assert await tools.text("read", file_path=str(other / "a")) == "     1\tother"
    assert place_of(str(other / "a"), tools.context).inside is False
    assert (await tools.error("read", file_path="../other/b"))[0] == "OUTSIDE"
    assert (await tools.error("read", file_path="../other/aa"))[0] == "OUTSIDE"
    permitted_only = await tools.run("read", file_path=str(other / "a" / "none"))
    assert permitted_only.is_error


async def test_of_a_file_outside_no_neighbour_is_told(tmp_path: Path):
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (other / "abc").touch()
    said = (await FileTools(work, permitted=(other / "abd",)).error("read", file_path="../other/abd"))[1]
    assert said.endswith("does not exist; look for it with glob or list")


def test_the_root_of_everything_and_a_name_that_only_begins_alike():
    assert is_inside("/etc", ("/",))
    assert not is_inside("/srv/app-else", ("/srv/app",))
    assert shown_path("a", None) == "/a"


async def test_a_directory_that_became_a_link_after_the_check_is_not_followed(tmp_path: Path):
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "dir").mkdir(parents=True)
    outside.mkdir()
    (work / "dir/a").write_text("mine")
    (outside / "a").write_text("theirs")
    tools = FileTools(work)
    place, file = place_of("dir/a", tools.context), place_of("dir", tools.context)
    (work / "dir").rename(work / "was")
    (work / "dir").symlink_to(outside)
    with pytest.raises(FileProblem) as refused:
        await tools.files.read(place, signal=tools.abort)
    assert refused.value.code == "NOT_A_DIRECTORY"
    with pytest.raises(FileProblem):
        await tools.files.write(place, "x", signal=tools.abort)
    with pytest.raises(FileProblem) as refused:
        await tools.files.read(file, signal=tools.abort)
    assert refused.value.code == "OUTSIDE"
    with pytest.raises(FileProblem) as refused:
        await tools.files.write(file, "x", signal=tools.abort)
    assert refused.value.code == "NOT_A_FILE"
    assert (outside / "a").read_text() == "theirs"


def test_directories_are_made_on_the_way_only_where_that_is_wanted(tmp_path: Path):
    with pytest.raises(FileNotFoundError), directory_of(str(tmp_path / "a/b/c")):
        pass
    with directory_of(str(tmp_path / "a/b/c"), create=True) as (directory, name):
        assert name == "c"
        assert os.listdir(f"/proc/self/fd/{directory}") == []
    assert (tmp_path / "a/b").is_dir()
    root = open_file("/")
    assert os.path.samestat(os.fstat(root), os.stat("/"))
    os.close(root)


async def test_what_was_read_when_the_turn_ended_is_dropped(tmp_path: Path, monkeypatch):
    (tmp_path / "a").write_text("x")
    tools = FileTools(tmp_path)
    read = os.pread

    def read_and_abort(*arguments: int) -> bytes:
        tools.abort.abort("cancel")
        return read(*arguments)

    monkeypatch.setattr(os, "pread", read_and_abort)
    assert (await tools.error("read", file_path="a"))[0] == "aborted"


async def test_a_directory_is_no_file_to_write(tmp_path: Path):
    tools = FileTools(tmp_path)
    with pytest.raises(FileProblem) as refused:
        await tools.files.write(Place(str(tmp_path), str(tmp_path)), "x", signal=tools.abort)
    assert refused.value.code == "NOT_A_FILE"
