"""The three bash tools over the scripted executor, and a few commands over the real one."""

import os
from contextlib import asynccontextmanager

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.hooks import Hooks
from agent_loop.tools.bash import BashKillTool, BashOutputTool, BashTool
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import GenericCard, TerminalCard, TerminalResult, ToolCall, ToolContext, ToolOutcome
from agent_loop.vocabulary import text_block
from bash_exec.errors import SpawnFailed
from bash_exec.fake import FakeBashExecutor, FakeCommand
from bash_exec.local import LocalBashExecutor
from bash_exec.seam import Survivor

SCRIPTS = {
    "echo SNAPSHOT_OK": FakeCommand.printing(b"SNAPSHOT_OK\n"),
    "both": FakeCommand(((0, b"one\n"), (1, b"\x1b[31mtwo\x1b[0m\n"), (0, b"\x1b]0;t\x07three\n")), exit_code=3),
    "hang": FakeCommand(((0, b"before\n"),), hangs=True),
    "flood": FakeCommand.printing(b"x" * 100_000),
    "leave": FakeCommand(((0, b"done\n"),), background=(Survivor(42, "sleep 60"),)),
    "unspawnable": FakeCommand(error=SpawnFailed("the directory /gone does not exist: choose another workdir")),
}


class Session:
    """One session's tools and what happened to it."""

    def __init__(self, executor):
        self.executor = executor
        self.registry = ToolRegistry(Hooks(lambda name, error: None))
        self.notices = []
        self.noticed = anyio.Event()
        self.abort = AbortController()
        self.live = bytearray()
        self.printed = anyio.Event()
        bash = BashTool(executor, notify=self.notify)
        for tool in (bash, BashOutputTool(executor), BashKillTool(executor)):
            self.registry.register(tool)
        bash.register_completion()

    def notify(self, session_id, text):
        self.notices.append((session_id, text))
        self.noticed.set()

    def output(self, data):
        self.live += data
        self.printed.set()

    async def call(self, name, *, session="s1", cwd="/there", **arguments):
        context = ToolContext(session, cwd, self.abort, self.output)
        return await self.registry.execute(ToolCall("c1", name, arguments, "{}"), context, agent=session)

    async def bash(self, command, **arguments):
        return await self.call("bash", command=command, description="Do it", **arguments)


@asynccontextmanager
async def scripted():
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            executor = FakeBashExecutor(SCRIPTS, task_group=tasks)
            yield Session(executor)
            await executor.dispose()


@asynccontextmanager
async def real(tmp_path):
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            environment = {name: value for name, value in os.environ.items() if name == "PATH" or "COV" in name}
            executor = LocalBashExecutor(task_group=tasks, environment=environment, spill_root=tmp_path / "spill")
            try:
                yield Session(executor)
            finally:
                with anyio.CancelScope(shield=True):
                    await executor.dispose()


def text_of(outcome):
    (block,) = outcome.content
    return block["text"]


def present(tool, arguments, outcome):
    return tool.present_result(arguments, outcome.content, outcome.meta)


async def test_a_command_answers_with_its_output_and_exit_code():
    async with scripted() as session:
        outcome = await session.bash("echo SNAPSHOT_OK")
        assert outcome == ToolOutcome([text_block("SNAPSHOT_OK\n")], meta={"exitCode": 0, "output": "SNAPSHOT_OK\n"})


async def test_a_non_zero_exit_is_not_an_error():
    async with scripted() as session:
        outcome = await session.bash("both")
        assert not outcome.is_error
        assert text_of(outcome).endswith("[exit code: 3]")


async def test_the_stored_output_is_the_live_output_with_its_colour():
    async with scripted() as session:
        outcome = await session.bash("both")
        assert bytes(session.live) == b"one\n\x1b[31mtwo\x1b[0m\n\x1b]0;t\x07three\n"
        assert outcome.meta == {"exitCode": 3, "output": "one\n\x1b[31mtwo\x1b[0m\nthree\n"}


async def test_output_that_is_stored_with_a_gap_says_so():
    async with scripted() as session:
        outcome = await session.bash("flood")
        assert outcome.meta["outputDropped"] == 100_000 - 64 * 1024
        assert f"[{outcome.meta['outputDropped']} bytes not shown]" in outcome.meta["output"]


async def test_the_description_never_reaches_the_executor():
    async with scripted() as session:
        await session.bash("leave", workdir="sub", timeoutMs=1500.0)
        (spec,) = session.executor.specs
        assert (spec.command, spec.cwd, spec.owner, spec.timeout_ms) == ("leave", "/there/sub", "s1", 1500)


async def test_what_still_runs_is_in_text_and_meta():
    async with scripted() as session:
        outcome = await session.bash("leave")
        assert text_of(outcome) == "done\n[still running in background: 42 (sleep 60)]"
        assert outcome.meta == {"exitCode": 0, "background": [42], "output": "done\n"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"command": " ", "description": "x"}, "command is blank"),
        ({"command": "ls", "description": " "}, "description is blank"),
        ({"command": "ls", "description": "x", "timeoutMs": 0}, "not positive"),
        ({"command": "ls", "description": "x", "timeoutMs": -5, "run_in_background": True}, "not positive"),
        ({"command": "ls"}, '"description" is required'),
        ({"command": "ls", "description": "x", "timeoutMs": "1"}, '"timeoutMs" must be an integer'),
    ],
)
async def test_arguments_that_make_no_sense_are_errors_and_nothing_runs(arguments, complaint):
    async with scripted() as session:
        outcome = await session.call("bash", **arguments)
        assert outcome.error == {"name": "InvalidArgumentsError", "code": "INVALID_ARGS"}
        assert complaint in text_of(outcome)
        assert session.executor.specs == []


@pytest.mark.parametrize("tool", ["bash_output", "bash_kill"])
async def test_an_empty_task_id_is_an_error(tool):
    async with scripted() as session:
        outcome = await session.call(tool, task_id=" ")
        assert outcome.error == {"name": "InvalidArgumentsError", "code": "INVALID_ARGS"}


async def test_a_command_that_cannot_be_started_is_an_error_that_says_why():
    async with scripted() as session:
        outcome = await session.bash("unspawnable")
        assert outcome == ToolOutcome.failed(
            "the directory /gone does not exist: choose another workdir", name="SpawnFailed", code="EXECUTOR"
        )


async def test_an_abort_while_it_runs_is_an_error_that_keeps_the_output():
    async with scripted() as session:
        outcomes = []

        async def run():
            outcomes.append(await session.bash("hang"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await session.printed.wait()
            session.abort.abort("session/cancel")
        (outcome,) = outcomes
        assert outcome.is_error
        assert outcome.error == {"name": "AbortError", "code": "aborted"}
        assert text_of(outcome) == "before\n[aborted]\n[killed by signal: SIGTERM]"
        assert outcome.meta == {"signal": "SIGTERM", "aborted": True, "output": "before\n"}


async def test_an_abort_before_the_start_is_the_same_error():
    async with scripted() as session:
        session.abort.abort("session/cancel")
        outcome = await session.bash("hang")
        assert outcome.error == {"name": "AbortError", "code": "aborted"}
        assert session.executor.specs == []


async def test_a_background_command_gives_its_id_at_once_and_is_read_later():
    async with scripted() as session:
        outcome = await session.bash("hang", run_in_background=True)
        assert outcome.meta == {"taskId": "bash-1"}
        assert "bash-1" in text_of(outcome)
        first = await session.call("bash_output", task_id="bash-1")
        assert text_of(first) == "before\n[status: running]"
        assert first.meta == {"status": "running", "offset": 0, "nextOffset": 7}
        again = await session.call("bash_output", task_id="bash-1")
        assert text_of(again) == "(no new output)\n[status: running]"
        assert again.meta == {"status": "running", "offset": 7, "nextOffset": 7}
        assert session.live == b""


async def test_killing_a_background_command_ends_it_without_a_notice():
    async with scripted() as session:
        await session.bash("hang", run_in_background=True)
        killed = await session.call("bash_kill", task_id="bash-1")
        assert text_of(killed) == "bash-1 has ended [status: killed, signal: SIGTERM]"
        assert killed.meta == {"status": "killed", "signal": "SIGTERM"}
        assert await session.call("bash_kill", task_id="bash-1") == killed
        assert session.notices == []


async def test_a_background_command_that_ends_tells_its_session_once():
    async with scripted() as session:
        await session.bash("both", run_in_background=True)
        await session.noticed.wait()
        await session.call("bash_output", task_id="bash-1")
        assert session.notices == [
            ("s1", "background command bash-1 (both) has ended: exited, exit code: 3; bash_output reads the rest")
        ]


@pytest.mark.parametrize("tool", ["bash_output", "bash_kill"])
async def test_the_task_of_another_session_is_refused_like_an_unknown_one(tool):
    async with scripted() as session:
        await session.bash("hang", run_in_background=True)
        foreign = await session.call(tool, task_id="bash-1", session="s2")
        assert foreign == ToolOutcome.failed(
            "this session has no background task 'bash-1'; it has none", name="UnknownTaskError", code="UNKNOWN_TASK"
        )
        unknown = await session.call(tool, task_id="bash-9")
        assert unknown.error == foreign.error
        assert session.executor.get("bash-1").status == "running"


@pytest.mark.parametrize("tool", ["bash_output", "bash_kill"])
@pytest.mark.parametrize("task_id", ["", "bash-9"])
async def test_a_call_that_names_no_task_of_the_session_lists_those_that_it_has(tool, task_id):
    async with scripted() as session:
        await session.bash("hang", run_in_background=True)
        await session.bash("both", run_in_background=True)
        await session.call("bash", command="hang", description="x", run_in_background=True, session="s2")
        await session.noticed.wait()
        listed = await session.call(tool, task_id=task_id)
        assert listed.is_error
        assert text_of(listed).endswith(
            "it has:\nbash-1 [status: running] hang\nbash-2 [status: exited, exit code: 3] both"
        )


async def test_after_removal_no_notice_is_given():
    async with scripted() as session:
        notices = []
        tool = BashTool(session.executor, notify=lambda *notice: notices.append(notice))
        tool.register_completion()()
        await session.bash("both", run_in_background=True)
        await session.noticed.wait()
        assert notices == []


async def test_a_foreground_call_is_a_terminal_card_titled_with_the_bare_command():
    async with scripted() as session:
        tool = session.registry.get("bash", "s1")
        arguments = {"command": "echo `date`", "description": "Show the date"}
        assert tool.present_call(arguments, "/there") == TerminalCard("echo `date`", "Show the date", "/there")


@pytest.mark.parametrize(
    ("cwd", "workdir", "shown"),
    [
        ("/there", "sub/../other", "/there/other"),
        ("/there", "/tmp", "/tmp"),
        (None, "/tmp", "/tmp"),
        (None, "sub", None),
        (None, None, None),
    ],
)
async def test_a_card_shows_an_absolute_directory_or_none(cwd, workdir, shown):
    async with scripted() as session:
        tool = session.registry.get("bash", "s1")
        card = tool.present_call({"command": "ls", "description": "x", "workdir": workdir}, cwd)
        assert card.cwd == shown


async def test_the_end_of_a_terminal_card_is_the_stored_output_and_how_it_ended():
    async with scripted() as session:
        tool = session.registry.get("bash", "s1")
        arguments = {"command": "both", "description": "x"}
        outcome = await session.bash("both")
        assert present(tool, arguments, outcome) == TerminalResult(
            "one\n\x1b[31mtwo\x1b[0m\nthree\n", exit_code=3, text=text_of(outcome)
        )


async def test_a_terminal_card_whose_command_never_ran_says_why():
    async with scripted() as session:
        tool = session.registry.get("bash", "s1")
        arguments = {"command": "unspawnable", "description": "x"}
        outcome = await session.bash("unspawnable")
        assert present(tool, arguments, outcome) == TerminalResult("", text=text_of(outcome))
        assert tool.present_result(arguments, outcome.content, {"other": 1}) == TerminalResult(
            "", text=text_of(outcome)
        )


async def test_a_background_call_is_a_generic_card():
    async with scripted() as session:
        tool = session.registry.get("bash", "s1")
        arguments = {"command": "npm run dev", "description": "Serve", "run_in_background": True}
        assert tool.present_call(arguments, "/there") == GenericCard("npm run dev", "execute", [text_block("Serve")])
        assert tool.present_result(arguments, [text_block("started")], {"taskId": "bash-1"}) is None


@pytest.mark.parametrize(
    ("name", "title", "kind"), [("bash_output", "Output of bash-1", "read"), ("bash_kill", "End bash-1", "execute")]
)
async def test_the_cards_about_a_task_name_it_and_fence_the_answer(name, title, kind):
    async with scripted() as session:
        tool = session.registry.get(name, "s1")
        arguments = {"task_id": "bash-1"}
        assert tool.present_call(arguments, "/there") == GenericCard(title, kind)
        content = [text_block("a ``` b\n"), {"type": "image", "data": ""}, text_block("[status: running]")]
        assert tool.present_result(arguments, content, {"status": "running"}) == GenericCard(
            title, kind, [text_block("````console\na ``` b\n[status: running]\n````")]
        )
        assert tool.present_result(arguments, [text_block("Error: no")], None) is None


async def test_the_tools_say_what_they_do_to_the_world():
    async with scripted() as session:
        rows = {row["name"]: row["parameters"] for row in session.registry.schemas("s1")}
        assert rows["bash"]["required"] == ["command", "description"]
        assert rows["bash_output"]["required"] == rows["bash_kill"]["required"] == ["task_id"]
        effects = [session.registry.get(name, "s1").effect for name in rows]
        assert effects == ["execute", "none", "none"]


async def test_without_a_listener_live_output_goes_nowhere():
    async with scripted() as session:
        call = ToolCall("c1", "bash", {"command": "both", "description": "x"}, "{}")
        outcome = await session.registry.execute(call, ToolContext("s1", "/there", AbortController()), agent="s1")
        assert outcome.meta["exitCode"] == 3


async def test_a_real_command_runs_in_the_session_directory(tmp_path):
    async with real(tmp_path) as session:
        outcome = await session.call("bash", cwd=str(tmp_path), command="pwd; echo no >&2; exit 4", description="x")
        assert text_of(outcome) == f"{tmp_path}\n[stderr]\nno\n[exit code: 4]"
        assert outcome.meta["exitCode"] == 4
        assert sorted(outcome.meta["output"].splitlines()) == sorted([str(tmp_path), "no"])


async def test_a_real_command_in_a_missing_directory_is_an_error(tmp_path):
    async with real(tmp_path) as session:
        outcome = await session.call("bash", cwd=str(tmp_path), command="pwd", description="x", workdir="gone")
        assert outcome.is_error
        assert "gone" in text_of(outcome)


async def test_a_real_command_that_asks_gets_a_hint(tmp_path):
    async with real(tmp_path) as session:
        command = "python3 -c 'input()'"
        outcome = await session.call("bash", cwd=str(tmp_path), command=command, description="x")
        assert "[hint: commands have no terminal and no standard input" in text_of(outcome)


async def test_a_real_background_command_tells_its_session_when_it_ends(tmp_path):
    async with real(tmp_path) as session:
        arguments = {"command": "echo hi", "description": "x", "run_in_background": True}
        outcome = await session.call("bash", cwd=str(tmp_path), **arguments)
        await session.noticed.wait()
        read = await session.call("bash_output", task_id=outcome.meta["taskId"])
        assert text_of(read) == "hi\n[status: exited, exit code: 0]"
        assert [owner for owner, _ in session.notices] == ["s1"]
