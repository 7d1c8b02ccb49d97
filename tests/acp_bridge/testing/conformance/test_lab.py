import subprocess
import sys

import pytest

from acp_bridge.testing.conformance.lab import laboratory, located
from acp_bridge.testing.conformance.verdicts import Broken, NotProvoked
from acp_bridge.testing.editor import EditorError
from tests.support import puppet_agent

PUPPET = (sys.executable, "-S", puppet_agent.__file__)
ENVIRONMENT = 'import os\non["env"] = lambda frame: reply(frame, {"env": dict(os.environ), "cwd": os.getcwd()})'


def test_an_agent_lives_in_directories_of_its_own_and_is_led_to_the_model():
    with laboratory([*PUPPET, ENVIRONMENT], env={"MY_URL": "{model_url}/v1"}) as lab:
        with lab.agent(env={"DEEPSEEK_API_KEY": "", "MORE": "1"}) as agent:
            result = agent.call("env")
        env = result["env"]
        assert result["cwd"] == str(lab.cwd)
        assert env["HOME"] == str(lab.home)
        assert env["MY_URL"] == env["OPENAI_BASE_URL"] == f"{lab.model.url}/v1"
        assert env["DEEPSEEK_BASE_URL"] == lab.model.url
        assert "DEEPSEEK_API_KEY" not in env
        assert env["MORE"] == "1"
        assert not {"USER", "PWD", "PYTEST_CURRENT_TEST"} & env.keys()
        other = lab.directory("other")
        with lab.agent(cwd=other, command=PUPPET, arguments=[ENVIRONMENT]) as second:
            assert second.call("env")["cwd"] == str(other)
        assert [len(wire.entries) for wire in lab.wires] == [4, 4]
    assert not lab.root.exists()


def test_a_command_with_relative_paths_starts_in_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("agent.py", "python"):
        (tmp_path / name).touch()
    here = str(tmp_path)
    assert located(["python", "agent.py", "--flag", "none.py"]) == ("python", f"{here}/agent.py", "--flag", "none.py")
    assert located(["./agent.py", "/etc/hosts"]) == (f"{here}/agent.py", "/etc/hosts")


def test_an_agent_that_cannot_be_started_leaves_nothing():
    expected = pytest.raises(EditorError, match="/nonexistent/agent")
    with laboratory(["/nonexistent/agent"]) as lab, expected, lab.agent():
        pass
    assert not lab.root.exists()


@pytest.mark.parametrize("version", ['"1"', "None"])
def test_an_initialize_without_a_version_is_broken(version):
    code = f'on["initialize"] = lambda frame: reply(frame, {{"protocolVersion": {version}}})'
    expected = pytest.raises(Broken, match="without a protocolVersion")
    with laboratory([*PUPPET, code]) as lab, expected, lab.agent():
        pass


CHILD = """
import subprocess
on["go"] = lambda frame: reply(frame, {"child": subprocess.Popen(["sleep", "300"]).pid})
"""


def test_agents_side_by_side_do_not_take_each_other_for_children():
    with laboratory([*PUPPET, CHILD]) as lab, lab.agent() as first:
        child = first.call("go")["child"]
        with lab.agent() as second:
            assert second.children() == set()
            assert first.children() == {child}
        assert first.children() == {child}
        assert first.error("nobody")["code"] == -32601
        first.kill()
        assert not first.is_running


def test_a_process_may_be_started_without_an_initialize():
    with laboratory(PUPPET) as lab, lab.agent(initialize=False) as agent:
        assert agent.initialized == {}
        assert agent.entries == []


def test_the_model_is_not_waited_for_when_no_prompt_of_any_agent_is_open():
    with laboratory(PUPPET) as lab, lab.agent() as agent:
        agent.prompt("s")
        with pytest.raises(NotProvoked):
            lab.model.called()


def test_a_check_that_takes_too_long_finds_its_agents_dead():
    expected = pytest.raises(EditorError, match="the agent ended")
    with laboratory([*PUPPET, 'on["silent"] = lambda frame: None'], limit=0.5) as lab, lab.agent() as agent, expected:
        agent.call("silent")


def test_who_moved_into_the_directories_is_ended_with_them():
    with laboratory(PUPPET) as lab, subprocess.Popen(["sleep", "300"], cwd=lab.cwd) as guest:
        assert guest.poll() is None
        lab.close_processes()
        assert guest.wait(10) < 0
    assert not lab.root.exists()


def test_the_last_words_of_the_last_agent_are_kept():
    code = 'sys.stderr.write("first\\n" * 20 + "last words " + "x" * 1000 + "\\n"); sys.exit(3)'
    with laboratory([*PUPPET, code]) as lab:
        assert lab.stderr() == ""
        with pytest.raises(EditorError), lab.agent():
            pass
        lines = lab.stderr().splitlines()
    assert len(lines) == 12
    assert lines[-1].startswith("last words")
    assert len(lines[-1]) == 300
