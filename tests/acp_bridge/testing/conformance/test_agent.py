import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from acp_bridge.testing.conformance.lab import laboratory
from acp_bridge.testing.conformance.verdicts import Broken, NotProvoked
from acp_bridge.testing.editor import EditorError
from tests.support import puppet_agent

PUPPET = (sys.executable, "-S", puppet_agent.__file__)


@contextmanager
def puppet(code="", *, seconds=10.0, **options):
    with laboratory([*PUPPET, code], seconds=seconds) as lab, lab.agent(**options) as agent:
        yield agent


ASK = """
def ask(frame):
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in frame["params"]["prompt"][0]["text"].split()]
    write({"id": "q", "method": "session/request_permission", "params": {"sessionId": "s", "options": options}})
    update("s", "agent_message_chunk", content={"type": "text", "text": "asked"})
    reply(frame, {"stopReason": "end_turn", "heard": read()})
on["session/prompt"] = ask
"""


@pytest.mark.parametrize(
    ("policy", "offered", "chosen"),
    [
        ("allow", "reject_once allow_always allow_once", "allow_once"),
        ("allow", "allow_always", "allow_always"),
        ("reject", "allow_once reject_once", "reject_once"),
        ("reject", "allow_once", None),
        ("cancel", "allow_once", None),
    ],
)
def test_a_policy_answers_every_permission(policy, offered, chosen):
    with puppet(ASK, answers=policy) as agent:
        heard = agent.prompt("s", offered)["result"]["heard"]
    outcome = {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
    assert heard == {"jsonrpc": "2.0", "id": "q", "result": {"outcome": outcome}}


def test_a_policy_of_never_leaves_a_permission_open_and_a_callable_decides_itself():
    with puppet(ASK, answers="never") as agent:
        prompt = agent.send_prompt("s", "allow_once")
        assert agent.wait_request("session/request_permission")["id"] == "q"
        agent.notify("anything", {})
        assert agent.response(prompt)["result"]["heard"]["method"] == "anything"
    with puppet(ASK, answers=lambda request: {"error": {"code": 7, "message": request["method"]}}) as agent:
        error = agent.prompt("s", "allow_once")["result"]["heard"]["error"]
        assert error == {"code": 7, "message": "session/request_permission"}


def test_any_other_request_of_the_agent_is_an_unknown_method():
    code = """
def ask(frame):
    write({"id": 1, "method": "fs/read_text_file", "params": {}})
    reply(frame, {"heard": read()})
on["session/prompt"] = ask
"""
    with puppet(code) as agent:
        assert agent.prompt("s")["result"]["heard"]["error"]["code"] == -32601


def test_what_is_no_object_is_noise_and_disturbs_nothing():
    code = """
def noisy(frame):
    sys.stdout.write('print\\n[1]\\n{"a":NaN}\\n' + '[' * 100000 + '\\n')
    reply(frame, {"sessionId": "s" * 200000})
on["session/new"] = noisy
"""
    with puppet(code) as agent:
        assert len(agent.new_session()) == 200_000
        assert agent.longest_line() > 200_000
        assert [line[:5] for line in agent.noise] == [b"print", b"[1]", b'{"a":', b"[[[[["]


def test_half_a_line_at_the_end_is_noise():
    with puppet('on["end"] = lambda frame: (sys.stdout.write("{"), sys.stdout.flush(), sys.exit(0))') as agent:
        agent.notify("end", {})
        with pytest.raises(EditorError, match="ended before its update"):
            agent.wait_update()
        assert agent.noise == [b"{"]
        assert agent.is_idle()


def test_half_a_line_of_an_agent_that_was_killed_is_nobodys_fault():
    code = 'on["half"] = lambda frame: (sys.stdout.write("{"), sys.stdout.flush(), open("written", "w").close())'
    with puppet(code) as agent:
        agent.notify("half", {})
        while not (agent.directory / "written").exists():
            agent.quiet(0.01)
        agent.signal(signal.SIGKILL)
        with pytest.raises(EditorError, match="ended before its update"):
            agent.wait_update()
        assert agent.noise == []


def test_raw_bytes_are_recorded_as_frames_where_they_make_some():
    with puppet() as agent:
        before = len(agent.entries)
        agent.write(b'{"jsonrpc":"2.0","id":"x",')
        agent.write(b'"method":"nobody"}\n[]\n{"id')
        assert agent.response("x")["error"]["code"] == -32601
        assert [entry.frame.get("id") for entry in agent.entries[before:]] == ["x", "x"]
        agent.send({"jsonrpc": "2.0", "method": "behind the rest of a line"})
        assert agent.frames[-1]["id"] == "x"


def test_updates_are_chosen_by_session_kind_and_place():
    code = """
def two(frame):
    update("a", "plan", entries=[])
    update("b", "plan", entries=[1])
    reply(frame, {})
on["go"] = two
"""
    with puppet(code) as agent:
        agent.call("go")
        assert len(agent.updates()) == 2
        assert agent.updates("b", "plan") == [{"sessionUpdate": "plan", "entries": [1]}]
        assert agent.updates("a", "tool_call") == []
        assert agent.updates(since=len(agent.entries)) == []
        assert agent.wait_update("b", matches=lambda update: bool(update["entries"]))["entries"] == [1]


def test_a_call_needs_a_result_and_an_error_an_error():
    with puppet('on["yes"] = lambda frame: reply(frame, {})') as agent:
        assert agent.call("yes") == {}
        assert agent.error("no")["code"] == -32601
        with pytest.raises(Broken, match=r'no \{"long":"x+…: expected a result, got \{"error"'):
            agent.call("no", {"long": "x" * 400})
        with pytest.raises(Broken, match=r'yes null: expected an error, got \{"result":\{\}\}'):
            agent.error("yes")


def test_an_answer_that_never_comes_is_waited_for_as_long_as_was_said():
    expected = pytest.raises(EditorError, match=r"no response to silent \(id 2\) within 0.01 s")
    with puppet('on["silent"] = lambda frame: None', seconds=5.0) as agent, expected:
        agent.call("silent", seconds=0.01)


AUTH = """
on["initialize"] = lambda frame: reply(frame, {"protocolVersion": 1, "authMethods": [
    {"id": "t", "name": "t", "type": "terminal"}, {"id": "key", "name": "key"}]})
wanted = on["session/new"]
on["session/new"] = lambda frame: fail(frame, -32000)
def authenticate(frame):
    reply(frame, {})
    on["session/new"] = wanted
"""


def test_a_session_that_wants_authentication_gets_it_once():
    with puppet(AUTH + 'on["authenticate"] = authenticate') as agent:
        assert agent.new_session()


@pytest.mark.parametrize("code", [AUTH, 'on["session/new"] = lambda frame: fail(frame, -32000)'])
def test_a_session_that_cannot_be_authenticated_is_not_provoked(code):
    with puppet(code) as agent, pytest.raises(NotProvoked, match="authentication"):
        agent.new_session()


def test_a_session_without_an_id_is_broken():
    expected = pytest.raises(Broken, match="expected a session id")
    with puppet('on["session/new"] = lambda frame: reply(frame, {})') as agent, expected:
        agent.new_session()


def test_quiet_returns_what_came_meanwhile():
    with puppet('on["go"] = lambda frame: update("s", "plan")') as agent:
        assert agent.quiet(0) == []
        agent.notify("go", {})
        agent.wait_update()
        assert agent.frames_since(2)[0]["params"]["update"] == {"sessionUpdate": "plan"}


def test_an_agent_is_idle_when_its_prompts_are_answered():
    code = 'held = []\non["session/prompt"] = held.append\non["session/cancel"] = lambda _: reply(held.pop(), {})'
    with puppet(code) as agent:
        assert agent.is_idle()
        prompt = agent.send_prompt("s", [{"type": "text", "text": "x"}])
        assert not agent.is_idle()
        agent.cancel("s")
        agent.response(prompt)
        assert agent.is_idle()


def test_capabilities_are_found_by_their_dotted_names():
    code = 'advertise(loadSession=True, sessionCapabilities={"list": {}, "close": None}, x=False)'
    with puppet(code) as agent:
        assert agent.advertises("loadSession")
        assert agent.advertises("sessionCapabilities.list")
        assert not agent.advertises("sessionCapabilities.close")
        assert not agent.advertises("x")
        assert not agent.advertises("loadSession.more")


CHILD = """
import subprocess
def go(frame):
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    reply(frame, {"child": child.pid, "at": __import__("os").getcwd()})
on["go"] = go
"""


def test_children_are_known_when_their_parent_has_gone_and_do_not_outlive_the_block():
    with puppet(CHILD) as agent:
        child = agent.call("go")["child"]
        assert agent.children() == {child}
        agent.signal(signal.SIGKILL)
        assert agent.exit(10) == -signal.SIGKILL
        assert agent.children() == {child}
        pid = agent.pid
    assert not Path(f"/proc/{child}/cwd").exists()
    with pytest.raises(EditorError, match="not running"):
        _ = agent.pid
    assert agent.exits == [-signal.SIGKILL]
    agent.kill()
    agent.end_now()
    assert pid != os.getpid()


def test_the_end_of_its_input_ends_the_agent_and_writing_on_is_harmless():
    with puppet() as agent:
        assert agent.directory.name == "cwd"
        agent.close_stdin()
        assert agent.exit(10) == 0
        agent.write(b"{}\n")
        agent.notify("late", {})


def test_a_process_that_does_not_end_is_broken():
    with puppet() as agent, pytest.raises(Broken, match=r"still alive after 0.01 s"):
        agent.exit(0.01)


def test_a_client_that_pauses_gets_everything_when_it_reads_on():
    code = 'on["flood"] = lambda frame: [update("s", "plan", n="x" * 1000) for _ in range(300)] and reply(frame, {})'
    with puppet(code) as agent:
        agent.pause_reading()
        request = agent.request("flood")
        agent.quiet(0.05)
        assert len(agent.updates()) < 300
        agent.resume_reading()
        agent.response(request)
        assert len(agent.updates()) == 300


def test_a_closed_stdout_is_felt_by_the_agent():
    code = """
def flood(frame):
    try:
        while True:
            update("s", "plan", n="x" * 10000)
    except BrokenPipeError:
        import os
        os._exit(9)
on["flood"] = flood
"""
    with puppet(code) as agent:
        agent.close_stdout()
        agent.notify("flood", {})
        assert agent.exit(10) == 9
