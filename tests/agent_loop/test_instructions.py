"""`AGENTS.md`: which files, how much of them, and what becomes of one that cannot be used."""

import os
import stat

import pytest

from agent_loop.instructions import LIMIT, Place, install_instructions, read_instructions
from tests.support.agent_world import agent_world
from tests.support.scripted_adapter import calls, says
from tests.support.scripted_tool import ScriptedTool, outcome


def project(root, *below):
    """A git repository at `root`; returns the directory `below` in it."""
    (root / ".git").mkdir()
    here = root.joinpath(*below)
    here.mkdir(parents=True, exist_ok=True)
    return here


def test_the_files_up_to_the_root_of_the_repository_are_read_the_nearest_last(tmp_path):
    (tmp_path / "AGENTS.md").write_text("above the repository")
    root = tmp_path / "repo"
    root.mkdir()
    here = project(root, "a", "b")
    (root / "AGENTS.md").write_text("root\n")
    (root / "a" / "AGENTS.md").write_text("  \n")
    (here / "AGENTS.md").write_text("near ä")
    found = read_instructions(Place(str(here)))
    assert found.problems == {}
    assert found.text is not None
    assert found.text.split("\n\n")[1:] == [
        "--- ../../AGENTS.md ---\nroot",
        "--- AGENTS.md ---\nnear ä",
    ]


def test_outside_of_a_repository_only_the_directory_itself_counts(tmp_path):
    (tmp_path / "AGENTS.md").write_text("above")
    here = tmp_path / "x"
    here.mkdir()
    assert read_instructions(Place(str(here))).text is None
    (here / "AGENTS.md").write_text("here")
    found = read_instructions(Place(str(here))).text
    assert found is not None
    assert found.endswith("--- AGENTS.md ---\nhere")


def test_the_nearest_file_has_what_it_needs_and_a_cut_is_told(tmp_path):
    here = project(tmp_path, "a")
    (here / "AGENTS.md").write_text("n" * 100)
    (tmp_path / "AGENTS.md").write_text("ä" * LIMIT)
    found = read_instructions(Place(str(here)))
    assert found.text is not None
    assert found.text.endswith("n" * 100)
    assert found.text.count("ä") == (LIMIT - 100) // 2
    assert found.problems == {
        "../AGENTS.md": f"only {LIMIT - 100} of its {2 * LIMIT} bytes are used: 32 KiB are read in all"
    }
    (here / "AGENTS.md").write_text("n" * LIMIT)
    assert read_instructions(Place(str(here))).problems["../AGENTS.md"].startswith("only 0 of")


def test_a_link_inside_the_project_is_followed_and_one_out_of_it_is_not(tmp_path):
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "repo"
    root.mkdir()
    here = project(root, "a")
    (root / "AGENTS.md").symlink_to(tmp_path / "secret")
    (root / "real.md").write_text("inside")
    (here / "AGENTS.md").symlink_to(root / "real.md")
    found = read_instructions(Place(str(here)))
    assert found.problems == {"../AGENTS.md": "it is a link to a file outside the project"}
    assert found.text is not None
    assert found.text.endswith("inside")
    assert "secret" not in found.text


def test_a_link_to_nothing_is_no_file(tmp_path):
    (tmp_path / "AGENTS.md").symlink_to(tmp_path / "gone.md")
    found = read_instructions(Place(str(tmp_path)))
    assert (found.text, found.problems) == (None, {})


def test_what_was_moved_put_in_its_place_or_made_a_repository_is_seen(tmp_path):
    one, other = tmp_path / "above" / "one", tmp_path / "other"
    for directory, text in ((one, "first"), (other, "second"), (one.parent, "above")):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "AGENTS.md").write_text(text)
    link = tmp_path / "link"
    link.symlink_to(one)
    place = Place(str(link))
    assert "first" in read_instructions(place).text
    (one.parent / ".git").mkdir()
    assert "above" in read_instructions(place).text
    moved = tmp_path / "moved"
    one.rename(moved)
    link.unlink()
    link.symlink_to(moved)
    assert place.project() == [str(moved)]
    link.unlink()
    assert read_instructions(place).text is None
    link.symlink_to(other)
    assert "second" in read_instructions(place).text


def test_a_directory_that_is_reached_by_a_link_is_the_one_that_it_is(tmp_path):
    (tmp_path / "repo").mkdir()
    here = project(tmp_path / "repo", "a")
    (here / "AGENTS.md").write_text("here")
    (tmp_path / "link").symlink_to(here)
    found = read_instructions(Place(str(tmp_path / "link")))
    assert found.problems == {}
    assert found.text is not None


@pytest.mark.parametrize("kind", ["directory", "pipe", "binary", "loop", "socket"])
def test_what_cannot_be_used_is_told_and_never_waited_for(tmp_path, kind):
    path = tmp_path / "AGENTS.md"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "binary":
        path.write_bytes(b"a\0b")
    else:
        path.symlink_to(path)
    found = read_instructions(Place(str(tmp_path)))
    assert found.text is None
    assert list(found.problems) == ["AGENTS.md"]


async def test_an_edit_counts_from_the_next_turn_on_and_not_before(tmp_path):
    path = tmp_path / "AGENTS.md"
    path.write_text("first")

    async def edit(_arguments, _context):
        path.write_text("second")
        return outcome("edited")

    answers = calls(("c", "edit", {})), says("a"), says("b")
    async with agent_world(*answers) as world:
        install_instructions(world.hooks)
        world.tools.register(ScriptedTool("edit", edit))
        agent = world.agent(cwd=str(tmp_path))
        await world.prompt(agent)
        await world.prompt(agent)
        systems = [request.system or "" for request in world.adapter.requests]
    assert ["first" in system for system in systems] == [True, True, False]
    assert systems[2].endswith("second")
    assert systems[0].startswith("You are a test.")


async def test_a_problem_is_told_once_at_the_start_of_a_turn(tmp_path):
    path = tmp_path / "AGENTS.md"
    path.mkdir()
    async with agent_world(fallback=says("a")) as world:
        install_instructions(world.hooks)
        agent = world.agent(cwd=str(tmp_path))
        for _ in range(2):
            await world.prompt(agent)
        assert world.of(agent, "session/notice") == [
            {"severity": "warning", "title": "AGENTS.md is not used as it is", "description": "it is no text file."}
        ]
        assert world.types(agent)[:2] == ["turn/start", "session/notice"]
        path.rmdir()
        path.write_text("x" * (LIMIT + 1))
        await world.prompt(agent)
        assert len(world.of(agent, "session/notice")) == 2
