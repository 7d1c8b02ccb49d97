import http.client
import json
import threading
from contextlib import contextmanager

import pytest

from acp_bridge.testing.conformance.model import LabModel, optional
from acp_bridge.testing.conformance.stimulus import NO_TOOL, said, shell
from acp_bridge.testing.conformance.verdicts import NotProvoked

_TOOL = {"function": {"name": "sh", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}}


@contextmanager
def model(*, is_idle=lambda: True, seconds=10.0):
    served = LabModel(is_idle=is_idle, seconds=seconds)
    served.start()
    try:
        yield served
    finally:
        served.stop()


@contextmanager
def response(url, path="/v1/chat/completions", **body):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", path, json.dumps(body).encode())
        yield connection.getresponse()
    finally:
        connection.close()


def ask(url, **body):
    with response(url, **body) as answer:
        return answer.read().decode()


def test_answers_come_in_order_and_a_short_text_when_they_are_used_up():
    with model() as served:
        served.script(said("one"), said("two"))
        answers = [ask(served.url, stream=True) for _ in range(3)]
        assert ['"content":"one"' in answers[0], '"content":"two"' in answers[1]] == [True, True]
        assert '"content":"done"' in answers[2]
        assert len(served.requests) == 3


def test_a_caller_that_wants_no_stream_gets_one_piece():
    with model() as served:
        served.script(shell("ls", call_id="c1"), {"stream": [{"text": ["a", "b"]}, {"usage": {"prompt_tokens": 7}}]})
        called = json.loads(ask(served.url, tools=[_TOOL], model="m"))
        assert called["choices"][0]["finish_reason"] == "tool_calls"
        call = called["choices"][0]["message"]["tool_calls"][0]
        assert (call["id"], call["function"]["name"]) == ("c1", "sh")
        assert json.loads(call["function"]["arguments"])["command"] == "ls"
        told = json.loads(ask(served.url))
        assert told["choices"][0]["message"]["content"] == "ab"
        assert told["usage"] == {"prompt_tokens": 7}


def test_a_gated_answer_in_one_piece_waits_too():
    with model(is_idle=lambda: False) as served:
        served.script({"gate": "g", "text": ["late"]})
        answers = []
        caller = threading.Thread(target=lambda: answers.append(ask(served.url)))
        caller.start()
        served.reached("g")
        assert answers == []
        served.release("g")
        caller.join(10)
        assert '"late"' in answers[0]


def test_an_error_is_answered_as_it_was_scripted():
    with model() as served:
        served.script({"status": 401, "body": {"error": {"message": "no"}}})
        with response(served.url) as answer:
            assert (answer.status, json.loads(answer.read())) == (401, {"error": {"message": "no"}})


def test_a_missing_tool_is_noted_unless_it_is_optional():
    with model() as served:
        served.script(optional(shell("ls")), optional(said_maker()), shell("ls"))
        assert "nothing to run" in ask(served.url, stream=True)
        assert "made" in ask(served.url, stream=True)
        assert served.unprovoked == []
        ask(served.url, stream=True)
        assert served.unprovoked == [NO_TOOL]


def said_maker():
    return lambda _body: said("made")


def test_tools_of_an_unknown_shape_are_noted():
    with model() as served:
        served.script(shell("ls"))
        ask(served.url, stream=True, tools=[7])
        assert "another shape" in served.unprovoked[0]


def test_a_call_that_never_comes_is_not_waited_for_when_no_prompt_is_open():
    with model() as served:
        with pytest.raises(NotProvoked, match="called 0 times, not 2"):
            served.called(2)
        with pytest.raises(NotProvoked, match="never came to 'g'"):
            served.reached("g")


def test_a_call_that_never_comes_is_waited_for_no_longer_than_allowed():
    looks = []
    with model(is_idle=lambda: looks.append(1)) as served, pytest.raises(NotProvoked):
        served.called(1, seconds=0.3)
    assert len(looks) == 2


def test_a_call_is_handed_out_as_soon_as_it_was_made():
    with model() as served:
        ask(served.url, stream=True, model="x")
        assert served.called().body["model"] == "x"


def test_a_call_is_waited_for():
    asked = threading.Event()
    with model(is_idle=asked.set) as served:
        caller = threading.Thread(target=lambda: [asked.wait(10), ask(served.url, stream=True, model="y")])
        caller.start()
        assert served.called().body["model"] == "y"
        caller.join(10)


def test_calls_elsewhere_are_no_model_calls():
    with model() as served:
        with response(served.url, "/v1/models") as answer:
            assert answer.status == 404
        assert served.requests == []


def test_who_leaves_a_running_answer_is_seen_to_leave():
    with model(is_idle=lambda: False) as served:
        served.script({"stream": [{"text": ["x"]}, {"gate": "g"}]}, said("whole"))
        with response(served.url, stream=True):
            served.reached("g")
            assert not served.left(served.requests[0], seconds=0.01)
        assert served.left(served.requests[0], seconds=10)


def test_a_wrong_script_fails_when_the_model_stops():
    served = LabModel(is_idle=lambda: True, seconds=10.0)
    served.start()
    served.script({"stream": [{"nonsense": 1}]})
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(served.url, stream=True)
    with pytest.raises(ValueError, match="nonsense"):
        served.stop()
