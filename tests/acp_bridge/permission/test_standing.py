"""Standing rules through the wire: made by an answer, held against calls, saved, listed, revoked."""

import json

import anyio
import pytest

from agent_loop.tools.bash import BashTool
from agent_loop.tools.seam import DiffCard, GenericCard, Subject, Tool, ToolOutcome
from agent_loop.vocabulary import text_block
from bash_exec.fake import FakeCommand
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import calls, says
from tests.support.scripted_tool import ScriptedTool, outcome

SHELL = {
    line: FakeCommand(((0, b"ran\n"),)) for line in ("git status", "git status -s", "git push", "make", "a `b`", "a $x")
}
DENIED = "the user has forbidden `git push`; it did not run."


def bash(line, number=1):
    return calls((f"c{number}", "bash", {"command": line, "description": "runs it"}))


class FileTool(Tool):
    """Notes what it was allowed to touch."""

    description = "A tool of a test."

    def __init__(self, name, effect):
        self.name, self.effect, self.permitted = name, effect, []
        self.parameters = {"type": "object", "properties": {"path": {"type": "string"}}}

    def subject(self, arguments, cwd):
        return Subject(paths=(arguments["path"],))

    async def run(self, arguments, context):
        self.permitted.append(context.permitted)
        return ToolOutcome([text_block("done")])

    def present_call(self, arguments, cwd, preview=None):
        return GenericCard(self.name)

    def present_result(self, arguments, content, meta):
        return None


class Story:
    """Prompts of one session; each question is answered by the kind of an option."""

    def __init__(self, world, session):
        self.world, self.session = world, session
        world.agents.tools.register(BashTool(world.executor, notify=lambda *_: None))

    async def run(self, *kinds):
        """One prompt; returns the options of each question, by kind."""
        prompt = await self.world.send_prompt(self.session)
        asked = []
        for kind in kinds:
            request = await self.world.request("session/request_permission")
            asked.append({option["kind"]: option["name"] for option in request["params"]["options"]})
            answer = {"outcome": {"outcome": "selected", "optionId": kind}}
            await self.world.send_frames({"id": request["id"], "result": answer})
        before = len(self.world.requests)
        assert (await self.world.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert len(self.world.requests) == before, "another question came"
        return asked

    def decisions(self):
        return [
            (event.data["outcome"], event.data["by"], event.data.get("grant"))
            for event in self.world.agents.events[self.session]
            if event.type == "permission/decision"
        ]

    def results(self):
        events = self.world.agents.events[self.session]
        return [event.data["content"][0]["text"] for event in events if event.type == "tool/result"]


async def test_always_is_saved_for_the_project_and_holds_in_its_next_session(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    turns = [bash("git status -s"), says("ok"), bash("git status", 2), says("ok")]
    async with bridge_world(*turns, cwd=work, shell=SHELL) as world:
        story = Story(world, await world.new_session())
        [asked] = await story.run("allow_always")
        assert list(asked) == ["allow_once", "allow_always", "reject_once", "reject_always"]
        assert asked["allow_always"] == "Always allow `git status …` in this project"
        await story.run()
        rule = {"scope": "project", "kind": "prefix", "words": ["git", "status"]}
        grant = {"effect": "allow", "rules": [rule]}
        assert story.decisions() == [("allow", "user", grant), ("allow", "rule", grant)]
    async with bridge_world(bash("git status"), says("ok"), cwd=work, shell=SHELL) as world:
        await Story(world, await world.new_session()).run()


async def test_never_wins_over_full_access_and_over_what_is_allowed(tmp_path):
    turns = [bash("git push"), says("ok"), bash("git push", 2), says("ok")]
    async with bridge_world(*turns, cwd=tmp_path, shell=SHELL, allow=["git push"]) as world:
        story = Story(world, await world.new_session())
        await world.call("session/set_mode", sessionId=story.session, modeId="read-only")
        [asked] = await story.run("reject_always")
        assert list(asked) == ["allow_once", "reject_once", "reject_always"], "nothing is allowed for ever in read-only"
        await world.call("session/set_mode", sessionId=story.session, modeId="full")
        await story.run()
        assert [outcome for outcome, *_ in story.decisions()] == ["reject", "reject"]
        assert DENIED in story.results()[1]


async def test_an_exact_rule_in_the_session_ends_with_it(tmp_path):
    tool = ScriptedTool()
    call = calls(("c1", "echo", {"value": "x"}))
    async with bridge_world(
        call, says("ok"), calls(("c2", "echo", {})), says("ok"), call, says("ok"), cwd=tmp_path
    ) as world:
        world.agents.tools.register(tool)
        story = Story(world, await world.new_session())
        [asked] = await story.run("allow_always")
        assert asked["allow_always"] == "Always allow every call of `echo` for this session"
        await story.run()
        await world.call("session/close", sessionId=story.session)
        story.session = await world.new_session()
        assert len(await story.run("allow_once")) == 1
    assert len(tool.ran) == 3


async def test_the_configuration_allows_and_forbids(tmp_path):
    turns = [bash("git status"), says("ok"), bash("git push", 2), says("ok")]
    async with bridge_world(*turns, cwd=tmp_path, shell=SHELL, allow=["git status"], deny=["git push"]) as world:
        story = Story(world, await world.new_session())
        await story.run()
        await story.run()
        assert [row[:2] for row in story.decisions()] == [("allow", "rule"), ("reject", "rule")]


async def test_in_full_access_a_line_that_nobody_can_read_is_a_question_once_something_is_forbidden(tmp_path):
    turns = [bash("a $x"), says("ok"), bash("a 'b", 2), says("ok"), bash("a 'b", 3), says("ok")]
    async with bridge_world(*turns, cwd=tmp_path, shell=SHELL, mode="full") as world:
        story = Story(world, await world.new_session())
        await story.run()
    async with bridge_world(*turns[2:], cwd=tmp_path, shell=SHELL, mode="full", deny=["git push"]) as world:
        story = Story(world, await world.new_session())
        await story.run("reject_once")
        prompt = await world.send_prompt(story.session)
        await world.request("session/request_permission")
        # no mode would take the doubt away
        await world.call("session/set_mode", sessionId=story.session, modeId="full")
        await world.notify("session/cancel", sessionId=story.session)
        assert (await world.answer(prompt))["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(
    ("mode", "effect", "path", "asked"),
    [
        ("read-only", "read", "in/a", False),
        ("read-only", "edit", "in/a", True),
        ("ask", "read", "in/a", False),
        ("ask", "read", "out/a", True),
        ("ask", "edit", "in/a", True),
        ("auto-edit", "edit", "in/a", False),
        ("auto-edit", "edit", "more/a", False),
        ("auto-edit", "edit", "out/a", True),
        ("auto-edit", "edit", "in/.git/hooks/pre-commit", True),
        ("auto-edit", "edit", "in/.dsh-acp-agent.toml", True),
        ("auto-edit", "read", "out/a", True),
        ("full", "edit", "out/a", False),
        ("full", "read", "out/a", False),
        ("read-only", "none", "out/a", False),
    ],
)
async def test_the_ladder(tmp_path, mode, effect, path, asked):
    for name in ("in", "more"):
        (tmp_path / name).mkdir()
    full = str(tmp_path / path)
    async with bridge_world(
        calls(("c1", "touch", {"path": full})), says("ok"), cwd=tmp_path / "in", mode=mode
    ) as world:
        tool = FileTool("touch", effect)
        world.agents.tools.register(tool)
        story = Story(world, await world.new_session(additionalDirectories=[str(tmp_path / "more")]))
        await story.run(*(["allow_once"] if asked else []))
        assert tool.permitted == [(full,)]


async def test_a_command_with_a_secret_in_it_is_never_remembered_in_words(tmp_path):
    secret = "s3cr3t-value-12345"
    turns = [bash(f"make {secret}"), says("ok"), bash(f"make {secret}", 2), says("ok"), bash("make", 3), says("ok")]
    async with bridge_world(*turns, cwd=tmp_path, shell=SHELL) as world:
        world.agents.secrets.add("KEY", secret)
        story = Story(world, await world.new_session())
        [asked] = await story.run("reject_always")
        assert list(asked) == ["allow_once", "reject_once", "reject_always"]
        assert asked["reject_always"] == "Never allow exactly this call for this session"
        await story.run()
        assert [row[:2] for row in story.decisions()] == [("reject", "user"), ("reject", "rule")]
        await story.run("reject_once")
        assert secret not in json.dumps(world.requests)


async def test_a_damaged_file_means_questions_in_every_mode_and_is_told_once(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    turns = [bash("git status"), says("ok"), bash("git status", 2), says("ok"), bash("git status", 3), says("ok")]
    async with bridge_world(*turns, cwd=work, shell=SHELL, mode="full") as world:
        story = Story(world, await world.new_session())
        path = world.policy._book._ledger.path(str(work))
        path.parent.mkdir()
        path.write_text("{")
        await story.run("allow_once")
        await story.run("allow_once")
        notices = [event.data for event in world.agents.events[story.session] if event.type == "session/notice"]
        assert [notice["title"] for notice in notices] == ["The saved permissions of this project cannot be read"]
        assert str(path) in notices[0]["description"]
        assert "There was nothing to revoke." in await command(world, story.session, "/permissions revoke all")
        await story.run()


async def test_what_cannot_be_saved_holds_for_the_session(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "work-permissions").write_text("a file where the directory should be")
    turns = [bash("git status"), says("ok")]
    async with bridge_world(*turns, cwd=work, shell=SHELL) as world:
        story = Story(world, await world.new_session())
        await story.run("allow_always")
        [(_, _, grant)] = story.decisions()
        assert grant["rules"][0]["scope"] == "session"
        notices = [
            event.data["title"] for event in world.agents.events[story.session] if event.type == "session/notice"
        ]
        assert "The permission could not be saved" in notices
        listed = await command(world, story.session, "/permissions")
        assert "1. Always allow `git status …` (this session)" in listed
        assert "could not be changed" in await command(world, story.session, "/permissions revoke 1")


async def command(world, session, line):
    """Run a command; returns what it answers."""
    before = len(world.updates)
    await world.prompt(session, line)
    return "".join(
        update["content"]["text"]
        for _, update in world.updates[before:]
        if update["sessionUpdate"] == "agent_message_chunk"
    )


async def test_permissions_lists_and_revokes(tmp_path):
    tool = ScriptedTool()
    turns = [bash("git status"), says("ok"), calls(("c2", "echo", {})), says("ok"), bash("git status", 3), says("ok")]
    async with bridge_world(*turns, cwd=tmp_path, shell=SHELL, deny=["git push"]) as world:
        world.agents.tools.register(tool)
        story = Story(world, await world.new_session())
        listed = await command(world, story.session, "/permissions")
        assert listed.splitlines()[2:3] == ["1. Never allow `git push …` (your configuration)"]
        await story.run("allow_always")
        await story.run("reject_always")
        listed = await command(world, story.session, "/permissions")
        assert listed.splitlines()[2:5] == [
            "1. Never allow every call of `echo` (this session)",
            "2. Always allow `git status …` (this project)",
            "3. Never allow `git push …` (your configuration)",
        ]
        assert "stands in your configuration" in await command(world, story.session, "/permissions revoke 3")
        assert "There is no number 4" in await command(world, story.session, "/permissions revoke 4")
        assert "There is no number 0" in await command(world, story.session, "/permissions revoke 0")
        assert "Use `/permissions`" in await command(world, story.session, "/permissions forget")
        revoked = await command(world, story.session, "/permissions revoke 2")
        assert revoked == "Revoked:\n\n- Always allow `git status …` (this project)"
        assert len(await story.run("reject_once")) == 1
        assert "every call of `echo`" in await command(world, story.session, "/permissions revoke all")


async def test_no_rules_are_said_to_be_none(tmp_path):
    async with bridge_world(cwd=tmp_path) as world:
        listed = await command(world, await world.new_session(), "/permissions")
        assert listed == "Mode: ask. Nothing is always allowed, and nothing forbidden, besides."


async def test_a_rejected_edit_leaves_the_file_and_a_rejected_command_starts_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"as it\r\nwas\x00")
    ran = []

    async def overwrite(arguments, context):
        ran.append(arguments)
        await anyio.Path(path).write_bytes(b"changed")
        return outcome("ok")

    turns = [calls(("c1", "edit", {})), bash("make", 2), says("ok")]
    async with bridge_world(*turns, cwd=tmp_path, shell=SHELL) as world:
        tool = ScriptedTool("edit", overwrite)
        tool.effect = "edit"
        world.agents.tools.register(tool)
        story = Story(world, await world.new_session())
        await story.run("reject_once", "reject_always")
        assert (ran, path.read_bytes()) == ([], b"as it\r\nwas\x00")
        assert [row[0] for row in story.decisions()] == ["reject", "reject"]
        assert ["the user refused this call; it did not run" in text for text in story.results()] == [True, True]


class PreviewedTool(FileTool):
    """Shows a diff whose old text changes with every look."""

    def __init__(self, name, effect, *texts):
        super().__init__(name, effect)
        self.texts = list(texts)

    async def prepare(self, arguments, context):
        old = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return {"path": arguments["path"], "oldText": old, "newText": "new"}

    def present_call(self, arguments, cwd, preview=None):
        return DiffCard(self.name, [preview] if preview else [])


async def test_a_file_that_changes_while_the_question_is_open_is_asked_about_again(tmp_path):
    path = str(tmp_path / "a")
    async with bridge_world(calls(("c1", "change", {"path": path})), says("ok"), cwd=tmp_path) as world:
        tool = PreviewedTool("change", "edit", "one", "two")
        world.agents.tools.register(tool)
        story = Story(world, await world.new_session())
        await story.run("allow_once", "allow_once")
    shown = [request["params"]["toolCall"]["content"] for request in world.requests]
    assert [content[0] for content in shown] == [
        {"type": "diff", "path": path, "oldText": old, "newText": "new"} for old in ("one", "two")
    ]
    card = [update for _, update in world.updates if update.get("toolCallId") == "c1"]
    assert [update.get("status") for update in card] == ["pending", None, "in_progress", "completed"]
    assert card[1]["content"] == shown[1], "the card shows what the second question is about"
    assert tool.permitted == [(path,)]
    assert [row[:2] for row in story.decisions()] == [("outdated", "user"), ("allow", "user")]


@pytest.mark.parametrize(("effect", "settled"), [("edit", True), ("execute", False)])
async def test_a_mode_settles_only_the_question_that_it_would_not_make(tmp_path, effect, settled):
    path = str(tmp_path / "a")
    async with bridge_world(calls(("c1", "touch", {"path": path})), says("ok"), cwd=tmp_path) as world:
        world.agents.tools.register(FileTool("touch", effect))
        session = await world.new_session()
        prompt = await world.send_prompt(session)
        await world.request("session/request_permission")
        for mode in ("read-only", "ask", "auto-edit"):
            await world.call("session/set_mode", sessionId=session, modeId=mode)
        if not settled:
            await world.call("session/set_mode", sessionId=session, modeId="full")
        assert (await world.answer(prompt))["result"]["stopReason"] == "end_turn"
        modes = [event.data["modeId"] for event in world.agents.events[session] if event.type == "mode/change"]
        assert modes[-1] == ("auto-edit" if settled else "full")
