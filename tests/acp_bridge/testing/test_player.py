"""Every operation of a script, played on the stub agent."""

import json

import pytest

from acp_bridge.testing.harness import Run, run_scenario
from tests.support.stub_scenario import prompt, stub_scenario


def play(tmp_path, *steps, **fields) -> Run:
    seconds = fields.pop("seconds", 30.0)
    return run_scenario(stub_scenario(tmp_path / "scenario", *steps, **fields), seconds=seconds)


def texts(run: Run) -> list[str]:
    updates = [frame["params"]["update"] for frame in run.transcript if frame.get("method") == "session/update"]
    return [update["content"]["text"] for update in updates if "content" in update]


def requests(run: Run) -> list[dict]:
    return [entry.frame for entry in run.entries if entry.sender == "client" and "method" in entry.frame]


def test_a_prompt_is_sent_and_awaited(tmp_path):
    run = play(tmp_path, prompt("say hello"), {"op": "prompt", "blocks": [{"type": "text", "text": "say {{cwd}}"}]})
    assert run.failures == []
    assert texts(run) == ["hello", "{{cwd}}"]
    sent = requests(run)[-1]["params"]["prompt"][0]["text"]
    assert sent.startswith("say /")


def test_initialize_advertises_nothing_by_default(tmp_path):
    assert requests(play(tmp_path))[0]["params"]["clientCapabilities"] == {}


def test_initialize_advertises_what_the_script_says(tmp_path):
    step = {"op": "initialize", "terminalOutput": True, "capabilities": {"fs": {"readTextFile": True}}}
    assert requests(play(tmp_path, step))[2]["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": True},
        "_meta": {"terminal_output": True},
    }


def test_a_prompt_that_fails_fails_the_run(tmp_path):
    run = play(tmp_path, prompt("fail badly"), prompt("say never"))
    assert run.failures == ['step 3 (prompt): answered with an error: {"code":-32603,"message":"badly"}']


def test_an_expected_error_must_come(tmp_path):
    fails = {"op": "promptExpectError", "text": "fail badly"}
    assert play(tmp_path, fails).failures == []
    run = play(tmp_path, {**fails, "text": "say fine"})
    assert run.failures == [
        'step 3 (promptExpectError): an error was expected, it succeeded: {"stopReason":"end_turn"}'
    ]


def test_a_session_can_be_refused_as_expected(tmp_path):
    assert play(tmp_path, {"op": "newSessionExpectError", "cwd": "relative"}).failures == []
    assert "it succeeded" in play(tmp_path, {"op": "newSessionExpectError"}).failures[0]


def test_any_method_can_be_asked_for_with_either_outcome(tmp_path):
    known = {"op": "request", "method": "initialize", "params": {"protocolVersion": 1}}
    refused = {"op": "requestExpectError", "method": "session/new", "params": {"cwd": "relative"}}
    assert play(tmp_path, known, refused).failures == []
    assert "step 3 (request): answered with an error" in play(tmp_path, refused | {"op": "request"}).failures[0]
    assert "it succeeded" in play(tmp_path, known | {"op": "requestExpectError"}).failures[0]


def test_a_session_that_does_not_exist_yet_fails_the_run(tmp_path):
    run = play(tmp_path, prompt("say x", session="b"))
    assert run.failures == ["step 3 (prompt): session 'b' does not exist yet"]


def test_two_sessions_are_told_apart(tmp_path):
    run = play(
        tmp_path,
        {"op": "newSession", "session": "b"},
        prompt("say one"),
        prompt("say two", session="b"),
        prompt("say 3"),
    )
    updates = [frame["params"] for frame in run.transcript if frame.get("method") == "session/update"]
    assert [row["sessionId"] for row in updates if "content" in row["update"]] == [
        "{{sessionId}}",
        "{{sessionId2}}",
        "{{sessionId}}",
    ]


def test_a_turn_is_cancelled_after_its_first_words(tmp_path):
    run = play(tmp_path, {"op": "promptAndCancel", "text": "hang"})
    assert run.failures == []
    assert run.transcript[-1]["result"] == {"stopReason": "cancelled"}


def test_a_turn_is_cancelled_after_a_named_update(tmp_path):
    match = {"sessionUpdate": "agent_message_chunk", "content": {"text": "partial"}}
    assert play(tmp_path, {"op": "promptAndCancel", "text": "hang", "afterUpdate": match}).failures == []
    named = {"op": "promptAndCancel", "text": "hang", "afterUpdate": "agent_message_chunk"}
    assert play(tmp_path, named).failures == []


def test_a_turn_is_cancelled_once_a_file_appears(tmp_path):
    run = play(tmp_path, {"op": "promptAndCancel", "text": "file", "waitForFile": "started"})
    assert run.failures == []
    assert run.transcript[-1]["result"] == {"stopReason": "cancelled"}


def test_a_file_that_never_appears_fails_the_run(tmp_path):
    answered = play(tmp_path, {"op": "promptAndCancel", "text": "say x", "waitForFile": "started"})
    assert "started did not appear while the prompt ran" in answered.failures[0]
    running = play(tmp_path, {"op": "promptAndCancel", "text": "hang", "waitForFile": "started"}, seconds=4)
    assert "started did not appear while the prompt ran" in running.failures[0]


def test_prompts_can_be_sent_without_waiting(tmp_path):
    run = play(
        tmp_path,
        prompt("say one", wait=False),
        prompt("say two", wait=False),
        {"op": "waitForTurnEnd", "timeoutMs": 9e3},
    )
    assert run.failures == []
    assert [request["method"] for request in requests(run)][-2:] == ["session/prompt"] * 2
    assert texts(run) == ["one", "two"]


def test_a_cancel_stands_alone(tmp_path):
    steps = [prompt("hang", wait=False), {"op": "waitForUpdate", "match": "agent_message_chunk"}, {"op": "cancel"}]
    run = play(tmp_path, *steps, {"op": "waitForTurnEnd"})
    assert run.failures == []
    assert run.transcript[-1]["result"] == {"stopReason": "cancelled"}


def test_each_wait_for_an_update_finds_the_next_one(tmp_path):
    wait = {"op": "waitForUpdate", "match": {"content": {"text": "x"}}, "timeoutMs": 200}
    assert play(tmp_path, prompt("say x"), prompt("say x"), wait, wait).failures == []
    run = play(tmp_path, prompt("say x"), wait, wait)
    assert run.failures == ['step 5 (waitForUpdate): no update {"content":{"text":"x"}} within 0.2 s']


def test_quiet_is_expected(tmp_path):
    assert play(tmp_path, {"op": "expectQuiet", "ms": 1}).failures == []


@pytest.mark.parametrize(
    ("step", "method", "params"),
    [
        ({"op": "setMode", "modeId": "full"}, "session/set_mode", {"modeId": "full"}),
        (
            {"op": "setConfigOption", "configId": "m", "value": "x"},
            "session/set_config_option",
            {"configId": "m", "value": "x"},
        ),
        ({"op": "closeSession"}, "session/close", {}),
    ],
)
def test_a_session_method_is_called(tmp_path, step, method, params):
    run = play(tmp_path, step)
    sent = requests(run)[-1]
    assert run.failures == []
    assert sent["method"] == method
    assert {key: value for key, value in sent["params"].items() if key != "sessionId"} == params


def test_sessions_are_listed_resumed_and_the_clock_is_moved(tmp_path):
    steps = [{"op": "listSessions", "cwd": "{{cwd}}"}, {"op": "advance", "ms": 5}, {"op": "loadSession"}]
    run = play(tmp_path, *steps)
    assert run.failures == []
    listed, advanced, loaded = requests(run)[-3:]
    assert (listed["method"], listed["params"]["cwd"][0]) == ("session/list", "/")
    assert (advanced["method"], advanced["params"]) == ("_dsh/clock/advance", {"ms": 5})
    assert loaded["method"] == "session/load"
    resumed = play(tmp_path, {"op": "resumeSession"}, seconds=4)
    assert "step 3 (resumeSession): no update" in resumed.failures[0]  # the stub settles only what it loads


def test_sessions_live_on_over_a_restart(tmp_path):
    run = play(
        tmp_path, prompt("say x"), {"op": "restart"}, {"op": "initialize"}, {"op": "loadSession"}, prompt("say y")
    )
    assert run.failures == []
    assert texts(run) == ["x", "loaded", "y"]


def test_permissions_and_files_are_answered(tmp_path):
    run = play(tmp_path, prompt("ask"), prompt("ask"), prompt("read"), answers=[{"kind": "reject_once"}])
    assert run.failures == []
    assert [json.loads(text) for text in texts(run)] == [
        {"outcome": "selected", "optionId": "reject_once"},
        {"outcome": "cancelled"},
        {"code": -32601, "message": "no answer for fs/read_text_file"},
    ]


def test_a_late_answer_comes_after_the_prompt_that_asked(tmp_path):
    run = play(tmp_path, prompt("ask-and-go"), prompt("hear"), answers=[{"late": "allow_once"}])
    assert run.failures == []
    assert json.loads(texts(run)[-1]) == {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


def test_a_permission_that_is_never_answered_stays_open(tmp_path):
    run = play(tmp_path, prompt("ask-and-go"), answers=[{"never": True}])
    assert run.failures == []
    assert not [entry for entry in run.entries if entry.sender == "client" and "method" not in entry.frame]


def test_a_kind_that_was_not_offered_fails_the_run(tmp_path):
    run = play(tmp_path, prompt("ask"), answers=[{"kind": "allow_always"}])
    assert run.failures == [
        "step 3 (prompt): the script answers allow_always, which was not offered (allow_once, reject_once)"
    ]


def test_a_prompt_that_is_answered_before_its_update_fails_the_run_at_once(tmp_path):
    run = play(tmp_path, {"op": "promptAndCancel", "text": "fail early", "afterUpdate": "plan"})
    assert run.failures[0].startswith(
        'step 3 (promptAndCancel): answered before its update {"sessionUpdate":"plan"}: {"jsonrpc":"2.0","id":3,"error"'
    )
    assert "early" in run.failures[0]


def test_an_answer_of_the_script_can_be_for_one_session(tmp_path):
    run = play(
        tmp_path,
        {"op": "newSession", "session": "b"},
        prompt("ask"),
        prompt("ask", session="b"),
        answers=[{"kind": "reject_once", "session": "b"}, {"kind": "allow_once"}],
    )
    said = [frame["params"]["update"]["content"]["text"] for frame in run.transcript if "selected" in str(frame)]
    assert [json.loads(text)["optionId"] for text in said] == ["allow_once", "reject_once"]
