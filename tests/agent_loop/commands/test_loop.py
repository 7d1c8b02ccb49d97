"""The forms of `/loop`, what they call, and what a person reads."""

import dataclasses

import pytest

from agent_loop.commands.loop import USAGE, LoopCommand
from agent_loop.commands.seam import CommandContext
from tests.agent_loop.commands.test_help_and_status import FACTS
from tests.support.loop_world import loop_world
from tests.support.no_compaction import compact
from tests.support.spy_agent import spied


class Line:
    """Runs lines in the session of an agent."""

    def __init__(self, world):
        self.world = world
        self.agent = spied(world.agents.agent())
        self.command = LoopCommand(world.agents.tools, world.agents.runtime)

    async def run(self, argument, *blocks):
        facts = dataclasses.replace(FACTS, session_id=self.agent.id)
        context = CommandContext(facts, lambda _title: None, compact, blocks=blocks)
        return await self.command.run(context, argument)

    async def loops(self):
        return await self.world.listed(self.agent)


@pytest.mark.parametrize(
    ("argument", "seconds", "prompt"),
    [
        ("60 check the build", 60, "check the build"),
        ("060 check", 60, "check"),
        ("1\tlist", 1, "list"),
        ("5 delete\nall of it /loop <&>", 5, "delete\nall of it /loop <&>"),
        ("90  ünïcode ✓ `code` | pipe", 90, "ünïcode ✓ `code` | pipe"),
    ],
)
async def test_a_number_and_a_prompt_make_a_loop(argument, seconds, prompt):
    async with loop_world() as world:
        line = Line(world)
        result = await line.run(argument)
        [loop] = await line.loops()
        assert result.ok
        assert (loop["time_in_seconds"], loop["prompt"]) == (seconds, prompt)
        assert f"`/loop delete {loop['id']}` ends it" in result.text


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "60",
        "0 nothing",
        "000 nothing",
        "-5 nothing",
        "+5 nothing",
        "1.5 nothing",
        "5s nothing",
        "٥ nothing",
        "５ nothing",
        "99999999999999999 nothing",
        "check 60",
        "list all",
        "LIST",
        "delete",
        "delete a b",
        "remove a",
    ],
)
async def test_every_other_line_is_answered_with_the_three_forms_and_changes_nothing(argument):
    async with loop_world() as world:
        line = Line(world)
        result = await line.run(argument)
        assert (result.ok, result.text) == (False, USAGE)
        assert world.changes(line.agent) == []
    for form in ("/loop <seconds> <prompt>", "/loop list", "/loop delete <id>"):
        assert form in USAGE


async def test_an_interval_beyond_time_is_refused_by_the_tool():
    async with loop_world() as world:
        line = Line(world)
        result = await line.run("9999999999999999 x")
        assert (result.ok, result.text) == (False, "that interval is too long")
        assert world.changes(line.agent) == []


async def test_mentions_stay_where_they_were_written_and_pictures_are_refused():
    async with loop_world() as world:
        line = Line(world)
        link = {"type": "resource-link", "name": "a.py", "uri": "file:///a.py"}
        await line.run("60 check", link, {"type": "text", "text": "and tell me"})
        [loop] = await line.loops()
        assert loop["prompt"] == "check file:///a.py and tell me"
        result = await line.run("60 look", {"type": "image", "ref": "x"})
        assert (result.ok, result.text) == (False, "A loop takes text and links only. Nothing was done.")
        assert len(await line.loops()) == 1


async def test_a_table_shows_the_loops_by_their_next_time():
    async with loop_world() as world:
        line = Line(world)
        assert (await line.run("list")).text == "No loops yet. `/loop <seconds> <prompt>` makes one."
        await line.run("90061 once a day | or so\nand more")
        await line.run(f"60 {'long ' * 20}")
        daily, minute = await line.loops()
        result = await line.run("list")
        assert result.ok
        assert result.text.splitlines() == [
            "| Loop | Every | Next | Prompt |",
            "|---|---|---|---|",
            f"| `{minute['id']}` | 1 m | in 1 m | {('long ' * 20)[:77]}… |",
            f"| `{daily['id']}` | 1 d 1 h | in 1 d 1 h | once a day \\| or so |",
        ]
        line.agent.refuses = ZeroDivisionError()
        await world.advance(59_500)
        assert "| in 1 s |" in (await line.run("list")).text
        await world.advance(500)
        assert "| overdue |" in (await line.run("list")).text
        assert line.agent.id not in result.text


async def test_a_loop_is_deleted_by_its_id():
    async with loop_world() as world:
        line = Line(world)
        await line.run("60 look")
        [loop] = await line.loops()
        result = await line.run(f"delete {loop['id']}")
        assert (result.ok, result.text) == (True, f"Deleted `{loop['id']}`.")
        again = await line.run(f"delete {loop['id']}")
        assert (again.ok, again.text) == (False, f"there is no loop {loop['id']!r} in this session")


async def test_what_the_tool_cannot_do_the_command_cannot():
    async with loop_world() as world:
        line = Line(world)
        line.agent.session.append("loop/change", {"version": 2})
        for argument in ("list", "delete loop_a"):
            result = await line.run(argument)
            assert not result.ok
            assert result.text.startswith("the loops of this session cannot be read")
        await world.loops.stop(line.agent.id)
        assert not (await line.run("60 look")).ok


def test_its_hint_names_the_forms():
    assert LoopCommand.hint == "<seconds> <prompt> | list | delete <id>"
