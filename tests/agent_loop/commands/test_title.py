"""What `/title` answers and does."""

import dataclasses

import pytest

from agent_loop.commands.seam import CommandContext
from agent_loop.commands.title import TitleCommand
from tests.agent_loop.commands.test_help_and_status import FACTS
from tests.support.no_compaction import compact


async def run(argument, title=None):
    """(result, the new titles)."""
    renamed = []
    context = CommandContext(dataclasses.replace(FACTS, title=title), renamed.append, compact)
    return await TitleCommand().run(context, argument), renamed


async def test_without_an_argument_it_shows_the_title_and_changes_nothing():
    result, renamed = await run("", title="Fix the build")
    assert (result.ok, result.text, renamed) == (True, "Title: Fix the build", [])


async def test_without_a_title_it_says_where_one_comes_from():
    result, renamed = await run("")
    assert result.ok
    assert "no title yet" in result.text
    assert renamed == []


@pytest.mark.parametrize(
    ("argument", "title"), [("Ship it", "Ship it"), ("two\nlines  here", "two lines here"), ("x" * 90, "x" * 59 + "…")]
)
async def test_an_argument_is_the_new_title_as_a_title_may_be(argument, title):
    result, renamed = await run(argument, title="Fix the build")
    assert (result.ok, result.text, renamed) == (True, f"Title: {title}", [title])


async def test_nothing_visible_is_no_title():
    result, renamed = await run("\u200b\u202e", title="Fix the build")
    assert not result.ok
    assert renamed == []


def test_it_says_that_it_takes_a_title():
    assert TitleCommand.hint == "new title"
