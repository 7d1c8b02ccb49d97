"""The demo: the real agent on a recorded session, printed; and a reload that is compared, not claimed."""

import io
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from rich.console import Console

from acp_bridge.testing import demo
from acp_bridge.testing.demo import Screen, play
from tests.support.measuring import UNMEASURED
from tests.support.official import agent_command

DEMO = Path(__file__).parents[3] / "snapshots" / "demo"


@pytest.fixture(autouse=True)
def _unmeasured_agents(monkeypatch):
    for name in UNMEASURED:
        monkeypatch.delenv(name)


def screen():
    console = Console(file=io.StringIO(), width=80)
    return Screen(console), console


def test_a_person_sees_prompt_thoughts_card_answer_and_a_reload_that_is_the_same():
    console, paused = Console(file=io.StringIO(), width=80), []
    assert play(DEMO, agent_command(), console, pause=lambda: paused.append(1))
    shown = console.file.getvalue()
    for part in (
        "› The greeting in greet.py",
        "I will look at the file before",
        "$ cat -n greet.py",
        "Show greet.py with line numbers",
        "[Allow this call]",
        "│ Hello, Ada!",
        "└ exit 0",
        "Fixed. `greet.py:3`",
        "the same transcript, from the log",
    ):
        assert part in shown
    assert len(paused) > 50


def test_the_command_ends_well_and_leaves_the_recorded_workspace_alone(monkeypatch, capsys):
    before = (DEMO / "workspace" / "greet.py").read_bytes()
    monkeypatch.setattr(sys, "argv", ["demo", str(DEMO)])
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(demo.__file__, run_name="__main__")
    assert (ended.value.code, capsys.readouterr().err) == (0, "")
    assert (DEMO / "workspace" / "greet.py").read_bytes() == before


def test_a_reload_that_shows_something_else_is_called_so(tmp_path):
    scenario = shutil.copytree(DEMO, tmp_path / "demo")
    agent = tmp_path / "agent"
    # an agent that shows less of a stored session than it said: the log is cut before it is loaded
    agent.write_text(
        f"""#!{sys.executable}
import os, pathlib, sys
for log in pathlib.Path(os.environ["DSH_SNAPSHOT_SESSIONS_ROOT"]).rglob("*.jsonl"):
    log.write_bytes(log.read_bytes().replace(b"Fixed", b"Broken"))
os.execv({agent_command()[0]!r}, ["dsh-acp-agent"])
"""
    )
    agent.chmod(0o755)
    console = Console(file=io.StringIO(), width=80)
    assert not play(scenario, [str(agent)], console, pause=lambda: None)
    assert "the reloaded transcript differs" in console.file.getvalue()


def test_a_signal_is_named_and_unknown_frames_are_silent():
    shown, console = screen()
    shown.show({"method": "session/update", "params": {"update": {"sessionUpdate": "plan", "entries": []}}})
    shown.show({"method": "something/else"})
    meta = {"terminal_exit": {"terminal_id": "c", "exit_code": None, "signal": "SIGTERM"}}
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": meta}
    shown.show({"method": "session/update", "params": {"update": update}})
    card = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "content": [{"type": "terminal"}]}
    shown.show({"method": "session/update", "params": {"update": card}})
    assert console.file.getvalue() == "  └ exit SIGTERM\n  $ ls\n"
