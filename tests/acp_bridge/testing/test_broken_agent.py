"""The broken agent without a fault is a whole agent: what its rules do not ask of it."""

import json
import signal
import sys
from contextlib import contextmanager

import pytest

from acp_bridge.testing import broken_agent
from acp_bridge.testing.conformance.lab import laboratory

COMMAND = (sys.executable, "-m", "acp_bridge.testing.broken_agent", "--fault")
DISPLAY = {"_meta": {"terminal_output": True}}
FORMS = {"elicitation": {"form": {}}}
SERVER = """
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame:
        print(json.dumps({"method": "notifications/message"}), flush=True)
        continue
    tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
    result = {"initialize": {}, "tools/list": {"tools": tools}}.get(frame["method"])
    if frame["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "echo " + frame["params"]["arguments"]["say"]}]}
    print(json.dumps({"id": frame["id"], "result": result}), flush=True)
"""


def calls(name: str, **arguments) -> dict:
    return {"tool_calls": [{"id": "call_0", "name": name, "arguments": [json.dumps(arguments)]}]}


def chosen(kind: str):
    return lambda _request: {"result": {"outcome": {"outcome": "selected", "optionId": kind}}}


@contextmanager
def world(fault: str = "none"):
    with laboratory((*COMMAND, fault)) as lab:
        yield lab


def results(lab) -> list[str]:
    return [row["content"] for row in lab.model.requests[-1].body["messages"] if row["role"] == "tool"]


def texts(updates) -> str:
    return "".join(row["content"]["text"] for row in updates if row["sessionUpdate"] == "agent_message_chunk")


def stop_reason(frame) -> str:
    return frame["result"]["stopReason"]


def test_what_was_rejected_for_the_session_is_not_asked_again():
    with world() as lab, lab.agent(answers=chosen("reject_always")) as agent:
        session = agent.new_session()
        lab.model.script(calls("bash", command="touch x"), calls("bash", command="touch x"))
        agent.prompt(session)
        asked = [frame for frame in agent.frames if frame.get("method") == "session/request_permission"]
        assert len(asked) == 1
        assert results(lab) == ["the user did not allow it"] * 2
        assert not (lab.cwd / "x").exists()


def test_a_write_that_is_rejected_leaves_the_file():
    with world() as lab, lab.agent(answers="reject") as agent:
        (lab.cwd / "a.txt").write_text("before")
        lab.model.script(calls("write", path="a.txt", content="after"))
        agent.prompt(agent.new_session())
        assert (lab.cwd / "a.txt").read_text() == "before"
        assert results(lab) == ["the user did not allow it"]


def test_in_full_mode_nothing_is_asked_and_the_mode_is_set_by_a_command():
    with world() as lab, lab.agent(answers="reject") as agent:
        session = agent.new_session()
        agent.prompt(session, "/mode full")
        lab.model.script(calls("bash", command="echo out; exit 3"))
        agent.prompt(session)
        assert results(lab) == ["out\n\n[exit code 3]"]


def test_a_long_output_keeps_its_head_and_its_tail():
    with world() as lab, lab.agent() as agent:
        lab.model.script(calls("bash", command="echo first; head -c 200000 /dev/zero | tr '\\0' x; echo; echo last"))
        agent.prompt(agent.new_session())
        text = results(lab)[0]
        assert text.startswith("first\n")
        assert "\n[…]\n" in text
        assert text.endswith("last\n\n[exit code 0]")


def test_a_call_that_cannot_be_made_gets_a_result():
    with world() as lab, lab.agent() as agent:
        broken = {"tool_calls": [{"id": "call_0", "name": "bash", "arguments": ["{"]}]}
        lab.model.script(broken, calls("bash"), calls("no_such_tool"), calls("read", path="missing"))
        agent.prompt(agent.new_session())
        assert results(lab)[0] == "needs 'arguments that are a JSON object'"
        assert results(lab)[1] == "needs 'command'"
        assert "needs 'a tool that exists, not no_such_tool'" in results(lab)[2]
        assert "No such file" in results(lab)[3]


def test_a_read_without_bounds_reads_the_whole_file():
    with world() as lab, lab.agent() as agent:
        (lab.cwd / "a.txt").write_text("one\ntwo\nthree\n")
        lab.model.script(calls("read", path="a.txt"), calls("read", path="a.txt", offset=2, limit=1))
        agent.prompt(agent.new_session())
        assert results(lab) == ["one\ntwo\nthree\n", "two\n"]


def test_a_form_that_is_filled_in_is_the_result():
    def answer(request):
        return {"result": {"action": "accept", "content": {"answer": f"yes to {request['params']['message']}"}}}

    with world() as lab, lab.agent(capabilities=FORMS, answers=answer) as agent:
        lab.model.script(calls("ask_user", question="really?"))
        agent.prompt(agent.new_session())
        assert results(lab) == ["yes to really?"]


@pytest.mark.parametrize(
    ("capabilities", "said"),
    [(FORMS, "the user gave no answer"), ({}, "the client has no forms")],
)
def test_a_question_without_an_answer_is_told(capabilities, said):
    with world() as lab, lab.agent(capabilities=capabilities) as agent:
        lab.model.script(calls("ask_user", question="really?"))
        agent.prompt(agent.new_session())
        assert results(lab) == [said]


@pytest.mark.parametrize(("policy", "said"), [("allow", "echo hi"), ("reject", "the user did not allow it")])
def test_a_tool_of_a_server_is_called(policy, said):
    server = {"name": "my server", "command": sys.executable, "args": ["-S", "-c", SERVER], "env": []}
    with world() as lab, lab.agent(answers=policy) as agent:
        session = agent.new_session(mcpServers=[server, {"name": "none", "command": "/no/such/program"}])
        lab.model.script(calls("mcp_my_server_echo", say="hi"))
        agent.prompt(session)
        assert results(lab) == [said]


def test_a_server_that_ends_gives_no_result():
    server = {
        "name": "s",
        "command": sys.executable,
        "args": ["-S", "-c", SERVER.replace("tools/call", "none")],
        "env": [],
    }
    with world() as lab, lab.agent() as agent:
        session = agent.new_session(mcpServers=[server])
        lab.model.script(calls("mcp_s_echo", say="hi"))
        agent.prompt(session)
        assert results(lab) == ["the server gave no result"]


def test_a_turn_that_never_stops_calling_is_stopped():
    with world() as lab, lab.agent() as agent:
        lab.model.script(*[calls("todo", entries=[])] * 40)
        assert stop_reason(agent.prompt(agent.new_session())) == "max_turn_requests"
        assert len(lab.model.requests) == 30


def test_a_refused_prompt_is_not_told_again():
    with world() as lab, lab.agent() as agent:
        session = agent.new_session()
        lab.model.script({"text": ["no"], "finish": "content_filter"})
        agent.prompt(session, "refused")
        agent.prompt(session, "second")
        assert [row["content"] for row in lab.model.requests[-1].body["messages"][1:]] == ["second"]


def test_a_refusal_is_forgotten_over_a_restart_and_what_was_cut_is_completed():
    with world() as lab:
        with lab.agent() as agent:
            session = agent.new_session()
            lab.model.script({"text": ["no"], "finish": "content_filter"}, calls("bash", command="touch on; sleep 300"))
            assert stop_reason(agent.prompt(session, "refused")) == "refusal"
            agent.send_prompt(session, "second")
            agent.wait_update(session, "tool_call_update")
            agent.kill()
        with lab.agent() as agent:
            agent.call("session/load", {"sessionId": session, "cwd": str(lab.cwd), "mcpServers": []})
            agent.prompt(session, "third")
        messages = lab.model.requests[-1].body["messages"]
        assert [row["content"] for row in messages[1:]] == ["second", "", "interrupted", "third"]


def test_a_display_terminal_is_shown_as_text_to_a_client_that_has_none():
    with world() as lab:
        with lab.agent(capabilities=DISPLAY) as agent:
            session = agent.new_session()
            lab.model.script(calls("bash", command="echo done"), {"text": ["ok"]}, calls("bash", command="sleep 300"))
            agent.prompt(session)
            since = len(agent.entries)
            agent.send_prompt(session)
            agent.wait_update(session, "tool_call_update", since=since)
            agent.kill()
        place = {"sessionId": session, "cwd": str(lab.cwd), "mcpServers": []}
        with lab.agent() as agent:
            agent.call("session/load", place)
            assert "terminal" not in json.dumps(agent.updates(session))
            ends = [row for row in agent.updates(session) if row.get("status") in {"completed", "failed"}]
            assert [row.get("content") for row in ends] == [
                [{"type": "content", "content": {"type": "text", "text": "done\n"}}],
                None,
            ]
        with lab.agent(capabilities=DISPLAY) as agent:
            agent.call("session/load", place)
            exits = [row["_meta"]["terminal_exit"] for row in agent.updates(session) if "terminal_exit" in str(row)]
            assert [(row["exit_code"], row["signal"]) for row in exits] == [(0, None), (None, "KILL")]


def test_a_command_that_died_of_a_signal_says_so_in_its_terminal():
    with world() as lab, lab.agent(capabilities=DISPLAY) as agent:
        lab.model.script(calls("bash", command="kill -9 $$"))
        session = agent.new_session()
        agent.prompt(session)
        ended = agent.wait_update(session, matches=lambda row: "terminal_exit" in row.get("_meta", {}))
        assert ended["_meta"]["terminal_exit"]["signal"] == "9"


def test_a_boolean_option_is_set_by_its_type():
    capabilities = {"session": {"configOptions": {"boolean": {}}}}
    with world() as lab, lab.agent(capabilities=capabilities) as agent:
        change = {"sessionId": agent.new_session(), "configId": "concise", "type": "boolean", "value": True}
        rows = agent.call("session/set_config_option", change)["configOptions"]
        assert rows[-1]["currentValue"] is True
        assert agent.error("session/set_config_option", {**change, "value": "yes"})["code"] == -32602


def test_requests_that_cannot_be_are_errors():
    with world() as lab, lab.agent(initialize=False) as agent:
        assert agent.error("session/new", {"cwd": str(lab.cwd)})["message"] == "Not initialized"
        assert agent.error("initialize", {"protocolVersion": True})["code"] == -32602
        agent.call("initialize", {"protocolVersion": 1})
        session = agent.new_session()
        assert agent.error("session/new", {"cwd": str(lab.cwd), "additionalDirectories": ["x"]})["code"] == -32602
        assert agent.error("session/prompt", {"sessionId": session, "prompt": []})["code"] == -32602
        assert agent.error("session/load", {"sessionId": "none", "cwd": str(lab.cwd)})["code"] == -32002
        assert agent.error("session/close", {"sessionId": "none"})["code"] == -32002
        assert agent.error("session/list", {"cursor": "none"})["code"] == -32602
        assert agent.error("session/set_mode", {"sessionId": session, "modeId": "none"})["code"] == -32602
        assert agent.call("session/delete", {"sessionId": "none"}) == {}
        agent.write(b'{"jsonrpc":"2.0","id":[],"method":"session/list"}\n\n{}\n')
        agent.response(None)
        assert agent.call("session/cancel", {"sessionId": session}) == {}


def test_a_session_is_not_opened_in_another_directory():
    with world() as lab, lab.agent() as agent:
        session = agent.new_session()
        agent.call("session/close", {"sessionId": session})
        place = {"sessionId": session, "cwd": str(lab.directory("elsewhere")), "mcpServers": []}
        assert agent.error("session/load", place)["code"] == -32603
        assert agent.call("session/delete", {"sessionId": session}) == {}
        assert agent.call("session/list") == {"sessions": []}


def test_a_line_above_the_limit_is_refused_and_the_next_one_read():
    with world("short-lines-only") as lab, lab.agent() as agent:
        agent.write(b'"' + b"x" * 200_000 + b'"\n')
        assert agent.response(None)["error"]["message"] == "the line is too long"
        agent.new_session()


def test_a_model_that_is_busy_is_asked_again_and_one_that_stays_busy_is_an_error():
    busy = {"status": 429, "headers": {"retry-after": "0"}, "body": {"error": {"message": "slow down"}}}
    with world() as lab, lab.agent() as agent:
        session = agent.new_session()
        lab.model.script(busy, busy, {"text": ["at last"]}, busy, busy, busy)
        assert stop_reason(agent.prompt(session)) == "end_turn"
        assert "HTTP 429" in agent.prompt(session)["error"]["message"]
        assert texts(agent.updates(session)) == "at last"


def test_a_fault_that_waits_for_servers_does_not_wait_for_quick_ones():
    server = {
        "name": "s",
        "command": sys.executable,
        "args": ["-S", "-c", SERVER],
        "env": [{"name": "A", "value": "b"}],
    }
    with world("waits-for-servers") as lab, lab.agent() as agent:
        session = agent.new_session(mcpServers=[server])
        agent.prompt(session)
        assert "mcp_s_echo" in json.dumps(lab.model.requests[0].body["tools"])


def test_a_deletion_that_is_only_claimed_keeps_the_session():
    with world("delete-keeps") as lab, lab.agent() as agent:
        session = agent.new_session()
        agent.call("session/close", {"sessionId": session})
        agent.call("session/delete", {"sessionId": session})
        assert [row["sessionId"] for row in agent.call("session/list")["sessions"]] == [session]


def test_a_turn_that_is_saved_at_its_end_is_there_after_it():
    with world("saves-at-the-end") as lab, lab.agent() as agent:
        session = agent.new_session()
        lab.model.script({"text": ["said"]})
        agent.prompt(session)
        since = len(agent.entries)
        agent.call("session/close", {"sessionId": session})
        agent.call("session/load", {"sessionId": session, "cwd": str(lab.cwd), "mcpServers": []})
        assert texts(agent.updates(session, since=since)) == "said"


def test_a_command_with_an_odd_word_changes_nothing():
    with world() as lab, lab.agent() as agent:
        session = agent.new_session()
        agent.prompt(session, "/mode sideways")
        assert texts(agent.updates(session)) == "0 messages, mode ask"


def test_a_signal_ends_it_in_good_order():
    with world() as lab, lab.agent() as agent:
        agent.new_session()
        agent.signal(signal.SIGTERM)
        assert agent.exit(10.0) == 0


def test_it_ends_when_nobody_can_read_it_any_more():
    with world() as lab, lab.agent() as agent:
        agent.close_stdout()
        agent.request("session/list")
        assert agent.exit(10.0) == 0


def test_an_unknown_fault_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["broken_agent", "--fault", "nobody-knows"])
    with pytest.raises(SystemExit) as ended:
        broken_agent.main()
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err
